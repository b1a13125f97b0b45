package attribution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

func (s *Authorship) TakeBack(ctx context.Context, agent superqode.AgentID, opt mode.RevertOptions, r *AgentReverted) (err error) {
	l, err := s.Look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(string(s.Rec.Workspace))) }()
	e := merge.Ends{Changes: l.Changes}
	if e.Base, e.Final, err = mode.StoreEnds(ctx, s.Site, l); err != nil {
		return err
	}
	b, err := s.openMergeScratch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	files, err := s.sharedFiles(ctx, &e, b.Scratch)
	if err != nil {
		return err
	}
	target, paths, err := s.withoutAgent(l, b.Scratch, files, agent, opt.Paths, r)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		if r.Verified = true; len(r.Mixed) == 0 {
			return s.noAgent(agent)
		}
		return nil
	}
	if err := b.Keep(ctx); err != nil {
		return err
	}
	tree := &revert.Tree{Dir: string(s.Rec.Workspace), Base: target, Skip: mode.Skip(s.Site), Store: s.Store}
	res, err := tree.Restore(ctx, revert.RestoreOptions{Within: paths, How: opt.How, DryRun: opt.DryRun, Keep: mode.KeepOverwritten(s.Site, tree.Dir, "")})
	if res != nil {
		r.Restored = *res
	}
	return err
}

// withoutAgent returns what the workspace would be without an agent's changes, and
// the paths that would differ.
func (s *Authorship) withoutAgent(l *mode.Look, b *merge.Scratch, files []sharedFile, agent superqode.AgentID, within []superqode.RelPath, r *AgentReverted) (*snapshot.Snapshot, []superqode.RelPath, error) {
	entries := map[string]snapshot.Entry{}
	for _, e := range l.Final.Entries {
		entries[e.Path] = e
	}
	var paths []superqode.RelPath
	touch := func(p string) {
		rel, _ := superqode.ParseRelPath(p) // it came out of a scan
		paths = append(paths, rel)
	}
	for i := range files {
		f := &files[i]
		if len(within) > 0 && !slices.ContainsFunc(within, func(p superqode.RelPath) bool { return merge.InPaths(f.Path(), []string{p.String()}) }) {
			continue
		}
		keep := func(i int) bool { return !f.of(i, agent) }
		mine, mixed := 0, len(f.hunks) == 0 && slices.Contains(f.said, agent) && !f.whole(agent)
		for k := range f.hunks {
			if f.of(k, agent) {
				mine++
			}
			if f.partly(k, agent) {
				mixed = true
				r.Mixed = append(r.Mixed, fmt.Sprintf("%s: lines %s: changed together with %s", text.Printable(f.Path()), rangeText(f.hunks[k]), f.others(k, agent)))
			}
		}
		switch {
		case f.whole(agent):
			if f.New != nil {
				delete(entries, f.New.Path)
				touch(f.New.Path)
			}
			if f.Old != nil {
				old := l.Base.Find(f.Old.Path)
				entries[f.Old.Path] = *old
				touch(f.Old.Path)
			}
		case mine > 0 && f.Old != nil && f.New != nil:
			made, err := b.Write(fmt.Sprintf("without-%d", i), f.with(keep))
			if err != nil {
				return nil, nil, err
			}
			e := entries[f.New.Path]
			e.ID, e.Size, e.Stat = made.ID, made.Size, snapshot.Stat{}
			entries[f.New.Path] = e
			touch(f.New.Path)
		case mine > 0 || mixed && len(f.hunks) == 0:
			r.Mixed = append(r.Mixed, text.Printable(f.Path())+": made or deleted by more than one")
		}
	}
	target := l.Final.With(nil)
	for _, p := range slices.Sorted(maps.Keys(entries)) {
		target.Entries = append(target.Entries, entries[p])
	}
	return target, paths, nil
}

// others names who else changed a hunk.
func (f *sharedFile) others(i int, agent superqode.AgentID) string {
	var names []string
	for _, o := range f.owners[i] {
		if o.agent != agent {
			names = append(names, o.agent.String())
		}
	}
	if !f.known[i] {
		names = append(names, "nobody known")
	}
	return strings.Join(names, ", ")
}

// rangeText is a hunk's lines as the file has them now.
func rangeText(h merge.Hunk) string {
	if h.NewLines <= 1 {
		return fmt.Sprint(h.NewStart)
	}
	return fmt.Sprintf("%d-%d", h.NewStart, h.NewStart+h.NewLines-1)
}

// sharedBlame is Blame where several agents work in one workspace.
func (s *Authorship) sharedBlame(ctx context.Context, b *Blame) (err error) {
	e, err := s.Ends(ctx)
	if err != nil {
		return err
	}
	scratch, err := s.openMergeScratch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	files, err := s.sharedFiles(ctx, &e, scratch.Scratch)
	if err != nil {
		return err
	}
	for i := range files {
		f := &files[i]
		if f.Path() != b.Path.String() || f.New == nil {
			continue
		}
		if b.Agents = f.credit().agents; f.fold == nil {
			b.Binary, b.Link = f.New.Kind == snapshot.File, f.New.Kind == snapshot.Link
			return nil
		}
		b.Lines = nil
		for k, l := range f.fold.lines {
			out := BlamedLine{Author: AuthorBase, BaseLine: l.base, Text: trimNewline(f.now[k])}
			switch {
			case l.base > 0:
			case l.agent.IsZero():
				out.Author = AuthorUnknown
			default:
				out.Author, out.Agent, out.FirstSeen = AuthorAgent, l.agent, l.at
			}
			b.Lines = append(b.Lines, out)
		}
		return nil
	}
	return nil
}

func trimNewline(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return line[:n-1]
	}
	return line
}

// AgentReverted is what TakeBack did.
type AgentReverted struct {
	mode.Reverted
	// Mixed names, one line each, what is left as it is because the agent and
	// others, or nobody known, changed it together.
	Mixed []string
}
