package attribution

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/site"
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

// version is a file as one author left it.
type version struct {
	ref   string // the commit
	entry *snapshot.Entry
	agent superqode.AgentID // zero: not known
}

// Blame tells who wrote each line of a file as the session has it: of a session
// of several agents, merged. The error wraps superqode.ErrNotFound for a path that
// neither the session nor its base has as a file.
func (s *Authorship) Blame(ctx context.Context, path superqode.RelPath) (*Blame, error) {
	chain, changes, err := s.chain(ctx)
	if err != nil {
		return nil, err
	}
	b := &Blame{Path: path}
	var seen time.Time
	for _, c := range changes {
		switch {
		case c.Path == path:
			b.OldPath, b.Changed, seen = c.OldPath, true, c.FirstSeen
			if b.Agents = c.Agents; len(b.Agents) == 0 && !c.Agent.IsZero() {
				b.Agents = []superqode.AgentID{c.Agent}
			}
		case c.OldPath == path && b.Path == path:
			return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "%s was renamed to %s", text.Printable(path.String()), text.Printable(c.Path.String())), "superqode workspace blame --session %s %s", s.Rec.ID, site.QuoteWord(c.Path.String()))
		}
		if c.Path == path && c.Type == superqode.ChangeDeleted {
			who := "somebody"
			if len(b.Agents) > 0 {
				who = "agent " + b.Agents[0].String()
			}
			return nil, superqode.Errorf(superqode.ErrNotFound, "%s was deleted by %s", text.Printable(path.String()), who)
		}
	}
	versions, err := s.versions(ctx, chain, path.String())
	if err != nil {
		return nil, err
	}
	last := versions[len(versions)-1].entry
	if last == nil {
		return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s has no file %s", s.Rec.ID, text.Printable(path.String())), "superqode workspace changes --session %s", s.Rec.ID)
	}
	if b.Link = last.Kind == snapshot.Link; b.Link {
		return b, nil
	}
	err = s.blameLines(ctx, b, versions, seen)
	if err == nil && b.Changed && s.Tracked() {
		err = s.sharedBlame(ctx, b)
	}
	return b, err
}

// chain returns the commits that lead from the base to what the session has now,
// and its changes.
func (s *Authorship) chain(ctx context.Context) ([]version, []superqode.Change, error) {
	changes, err := s.Changes(ctx)
	if err != nil && !errors.Is(err, superqode.ErrNotFound) {
		return nil, nil, err
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, nil, err
	}
	chain := []version{{ref: s.Ref("base")}}
	switch {
	case len(s.Rec.Agents) > 0 && !s.Rec.Shared:
		for i, a := range s.Rec.Agents {
			chain = append(chain, version{ref: s.mergedRef(i), agent: a.Agent})
		}
	default:
		e, err := s.Ends(ctx)
		if err != nil {
			return nil, nil, err
		}
		if e.Base == "" {
			return s.unchanged(ctx)
		}
		chain = append(chain, version{ref: s.Ref("final"), agent: s.Rec.Agent})
	}
	return chain, changes, nil
}

// unchanged is the chain of a session that has changed nothing.
func (s *Authorship) unchanged(ctx context.Context) (_ []version, _ []superqode.Change, err error) {
	if s.Past() {
		return nil, nil, superqode.Errorf(superqode.ErrNotFound, "session %s changed nothing: every line is the base's", s.Rec.ID)
	}
	l, err := s.Look(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, l.Close(string(s.Rec.Workspace))) }()
	base, _, err := mode.StoreEnds(ctx, s.Site, l)
	return []version{{ref: base}}, nil, err
}

// versions returns a file as it was after each commit of a chain, following it
// back through renames.
func (s *Authorship) versions(ctx context.Context, chain []version, path string) ([]version, error) {
	out := make([]version, len(chain))
	copy(out, chain)
	for i := len(out) - 1; i >= 0; i-- {
		var err error
		if path == "" {
			continue
		}
		if out[i].entry, err = s.Store.EntryAt(ctx, out[i].ref, path); err != nil {
			return nil, err
		}
		if i == 0 {
			break
		}
		pairs, err := s.Store.DiffTree(ctx, store.DiffOptions{Base: out[i-1].ref, Final: out[i].ref})
		if err != nil {
			return nil, err
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
	return out, nil
}

// blameLines follows the lines of a file through its versions.
func (s *Authorship) blameLines(ctx context.Context, b *Blame, versions []version, seen time.Time) (err error) {
	scratch, err := s.openMergeScratch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	var lines []BlamedLine
	before := ""
	for i, v := range versions {
		name := fmt.Sprintf("version-%d", i)
		if v.entry == nil || v.entry.Kind != snapshot.File {
			lines, before = nil, ""
			continue
		}
		if err := scratch.Fetch(name, v.entry.ID); err != nil {
			return err
		}
		if b.Binary, err = merge.IsBinary(scratch.Path(name)); err != nil {
			return err
		}
		if b.Binary {
			lines, before = nil, ""
			continue
		}
		text, err := readLines(scratch.Path(name))
		if err != nil {
			return err
		}
		fresh := BlamedLine{Author: AuthorUnknown, FirstSeen: seen}
		switch {
		case i == 0:
			fresh = BlamedLine{Author: AuthorBase}
		case !v.agent.IsZero():
			fresh.Author, fresh.Agent = AuthorAgent, v.agent
		}
		hunks := []merge.Hunk{{OldStart: 0, OldLines: 0, NewStart: 1, NewLines: len(text)}}
		if before != "" {
			if hunks, err = scratch.Hunks(ctx, before, name); err != nil {
				return err
			}
		}
		lines = follow(lines, hunks, text, fresh)
		if i == 0 {
			for n := range lines {
				lines[n].BaseLine = n + 1
			}
		}
		before = name
	}
	b.Lines = lines
	return nil
}

// follow returns the lines of a new version: those that stayed keep their author,
// the others are like fresh.
func follow(old []BlamedLine, hunks []merge.Hunk, text [][]byte, fresh BlamedLine) []BlamedLine {
	out := make([]BlamedLine, 0, len(text))
	at := 0
	for _, h := range hunks {
		r := h.Old()
		for at < min(r.Start-1, len(old)) {
			out = append(out, old[at])
			at++
		}
		at = min(r.End, len(old))
		for range h.NewLines {
			out = append(out, fresh)
		}
	}
	out = append(out, old[min(at, len(old)):]...)
	for i := range out {
		if i < len(text) {
			out[i].Text = text[i]
		}
	}
	return out[:min(len(out), len(text))]
}

// readLines returns the lines of a file without their newlines.
func readLines(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	in := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			out = append(out, bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil {
			return out, nil
		}
	}
}

// String returns "base", "unknown" or the agent's name.
func (l BlamedLine) String() string {
	if l.Author == AuthorAgent {
		return l.Agent.String()
	}
	return string(l.Author)
}
