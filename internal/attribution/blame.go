package attribution

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Blame is who wrote each line of a file.
type Blame struct {
	Path    superqode.RelPath
	OldPath superqode.RelPath // where it was in the base, when that was elsewhere
	Binary  bool              // then there are no lines
	Link    bool              // a symbolic link; the same
	Lines   []BlamedLine
	Agents  []superqode.AgentID // who changed the file, down to its mode; empty: nobody, or not known
	Changed bool                // it is not as in the base
}

// BlamedLine is one line of a file.
type BlamedLine struct {
	Author    Author
	Agent     superqode.AgentID // with AuthorAgent
	FirstSeen time.Time         // zero for a line of the base
	BaseLine  int               // the line's number in the base, 0 for a new one
	Text      []byte            // without its newline
}

// Author says who wrote a line, as far as it is known.
type Author string

// The authors. Nobody is guessed: a new line that no agent is known to have
// written is AuthorUnknown.
const (
	AuthorBase    Author = "base"
	AuthorAgent   Author = "agent"
	AuthorUnknown Author = "unknown"
)

// Blame tells who wrote each line of a file as the session has it: of a session
// of several agents, merged. The error wraps superqode.ErrNotFound for a path that
// neither the session nor its base has as a file.
func (s *Authorship) Blame(ctx context.Context, path superqode.RelPath) (*Blame, error) {
	h := &history{Authorship: s}
	changes, err := h.commits(ctx)
	if err != nil {
		return nil, err
	}
	b := &Blame{Path: path}
	var seen time.Time
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Path == path:
			b.OldPath, b.Changed, seen = c.OldPath, true, c.FirstSeen
			if b.Agents = c.Agents; len(b.Agents) == 0 && !c.Agent.IsZero() {
				b.Agents = []superqode.AgentID{c.Agent}
			}
		case c.OldPath == path:
			return nil, s.renamed(c)
		}
		if c.Path == path && c.Type == superqode.ChangeDeleted {
			who := "somebody"
			if len(b.Agents) > 0 {
				who = "agent " + b.Agents[0].String()
			}
			return nil, superqode.Errorf(superqode.ErrNotFound, "%s was deleted by %s",
				text.Printable(path.String()), who)
		}
	}
	if err := h.find(ctx, path); err != nil {
		return nil, err
	}
	last := h.versions[len(h.versions)-1].entry
	if last == nil {
		err := superqode.Errorf(superqode.ErrNotFound, "session %s has no file %s",
			s.Rec.ID, text.Printable(path.String()))
		return nil, superqode.WithHint(err, "superqode workspace changes --session %s", s.Rec.ID)
	}
	if b.Link = last.Kind == snapshot.Link; b.Link {
		return b, nil
	}
	if err := h.blame(ctx, b, seen); err != nil || !b.Changed || !s.Tracked() {
		return b, err
	}
	e, err := s.Ends(ctx)
	if err != nil {
		return b, err
	}
	p, err := s.openParts(ctx, e)
	if err != nil {
		return b, err
	}
	p.blame(b)
	return b, p.Close()
}

// renamed is the error for the old name of a file.
func (s *Authorship) renamed(c *superqode.Change) error {
	to := c.Path.String()
	err := superqode.Errorf(superqode.ErrNotFound, "%s was renamed to %s",
		text.Printable(c.OldPath.String()), text.Printable(to))
	return superqode.WithHint(err, "superqode workspace blame --session %s %s", s.Rec.ID, text.QuotePOSIX(to))
}

// history is a file as each author left it, the base first.
type history struct {
	*Authorship
	versions []version
}

// version is a file as one author left it.
type version struct {
	ref   string // the commit
	entry *snapshot.Entry
	agent superqode.AgentID // zero: not known
}

// commits finds the commits that lead from the base to what the session has now,
// and returns its changes.
func (h *history) commits(ctx context.Context) ([]superqode.Change, error) {
	changes, err := h.Changes(ctx)
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return nil, err
	}
	if err := h.OpenStore(ctx); err != nil {
		return nil, err
	}
	h.versions = []version{{ref: h.Ref("base")}}
	if len(h.Rec.Agents) > 0 && !h.Rec.Shared {
		for i, a := range h.Rec.Agents {
			h.versions = append(h.versions, version{ref: h.mergedRef(i), agent: a.Agent})
		}
		return changes, nil
	}
	e, err := h.Ends(ctx)
	if err != nil {
		return nil, err
	}
	if e.Base == "" {
		return nil, h.unchanged(ctx)
	}
	h.versions = append(h.versions, version{ref: h.Ref("final"), agent: h.Rec.Agent})
	return changes, nil
}

// unchanged stores the base of a session that has changed nothing.
func (h *history) unchanged(ctx context.Context) (err error) {
	if h.Past() {
		return superqode.Errorf(superqode.ErrNotFound, "session %s changed nothing: every line is the base's", h.Rec.ID)
	}
	l, err := h.Look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	h.versions[0].ref, _, err = mode.StoreEnds(ctx, h.Site, l)
	return err
}

// find finds the file in each commit, following it back through renames.
func (h *history) find(ctx context.Context, path superqode.RelPath) (err error) {
	for i := len(h.versions) - 1; i >= 0 && path != ""; i-- {
		v := &h.versions[i]
		if v.entry, err = h.Store.EntryAt(ctx, v.ref, path); err != nil || i == 0 {
			return err
		}
		pairs, err := h.Store.DiffTree(ctx, store.DiffOptions{Base: h.versions[i-1].ref, Final: v.ref})
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if p.New != nil && p.New.Path == path {
				path = ""
				if p.Old != nil {
					path = p.Old.Path
				}
				break
			}
		}
	}
	return nil
}

// blame follows the lines of the file through its versions.
func (h *history) blame(ctx context.Context, b *Blame, seen time.Time) (err error) {
	scratch, err := h.openScratch(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	f, before := &fold{}, ""
	for i, v := range h.versions {
		name := fmt.Sprintf("version-%d", i)
		var content []byte
		isText := false
		if v.entry != nil && v.entry.Kind == snapshot.File {
			if content, isText, err = scratch.Text(name, v.entry.ID); err != nil {
				return err
			}
			b.Binary = !isText
		}
		switch {
		case !isText:
			f, before = &fold{}, ""
			continue
		case i == 0:
			f = newFold(scratch, content)
		default:
			lines := splitLines(content)
			hunks := []merge.Hunk{{NewStart: 1, NewLines: len(lines)}}
			if before != "" {
				if hunks, err = scratch.Hunks(ctx, before, name); err != nil {
					return err
				}
			}
			f.advance(lines, hunks, cover{by: foldBy{v.agent, seen}, whole: true})
		}
		before = name
	}
	b.Lines = f.blamed()
	return nil
}

// String returns "base", "unknown" or the agent's name.
func (l BlamedLine) String() string {
	if l.Author == AuthorAgent {
		return l.Agent.String()
	}
	return string(l.Author)
}
