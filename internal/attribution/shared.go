package attribution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/aside"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// parts is what agents that work in one workspace have changed: the files that
// differ between two commits of the store, with what is known of who changed what.
type parts struct {
	*site.Site
	ends  merge.Ends
	b     *merge.Scratch
	said  map[string][]trackEvent // the agents' statements, by path
	files []sharedFile
}

// openParts finds out who changed what. Close it.
func (s *Authorship) openParts(ctx context.Context, e merge.Ends) (*parts, error) {
	b, err := s.openScratch(ctx, "")
	if err != nil {
		return nil, err
	}
	p := &parts{Site: s.Site, ends: e, b: b}
	if err := p.read(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return p, nil
}

// partsOf is openParts for what a look has found.
func (s *Authorship) partsOf(ctx context.Context, l *mode.Look) (*parts, error) {
	e, err := s.endsOf(ctx, l)
	if err != nil {
		return nil, err
	}
	return s.openParts(ctx, e)
}

func (p *parts) Close() error { return p.b.Close() }

func (p *parts) read(ctx context.Context) (err error) {
	if p.said, err = (statements{p.Site}).read(); err != nil {
		return err
	}
	changes, err := p.ends.Pairs(ctx, p.Store, nil)
	if err != nil {
		return err
	}
	leases, err := grantsOf(p.Site)
	if err != nil {
		return err
	}
	p.files = make([]sharedFile, len(changes))
	for i, c := range changes {
		f := &p.files[i]
		f.Change = c
		if err := p.follow(ctx, f); err != nil {
			return fmt.Errorf("who changed %s: %w", text.Printable(c.Path()), err)
		}
		f.byClaims(leases)
	}
	return nil
}

// sharedFile is a changed file of a workspace in which several agents work.
type sharedFile struct {
	merge.Change
	base, now [][]byte            // the lines of both sides; nil where there is none, or no text
	hunks     []sharedHunk        // between them
	said      []superqode.AgentID // who made a statement about the file at all
	first     time.Time           // the first of these
	fold      *fold               // nil for what is no text
}

// sharedHunk is a place of a file with those who are known to have changed it.
type sharedHunk struct {
	merge.Hunk
	owners []foldBy
	known  bool // all of it is theirs
}

// of reports whether a hunk is known to be an agent's, and nobody else's.
func (h *sharedHunk) of(agent superqode.AgentID) bool {
	return h.known && len(h.owners) == 1 && h.owners[0].agent == agent
}

// partly reports whether an agent had a part in a hunk beside somebody else.
func (h *sharedHunk) partly(agent superqode.AgentID) bool {
	return !h.of(agent) && slices.ContainsFunc(h.owners, func(o foldBy) bool { return o.agent == agent })
}

// others names who else than an agent changed a hunk.
func (h *sharedHunk) others(agent superqode.AgentID) string {
	var names []string
	for _, o := range h.owners {
		if o.agent != agent {
			names = append(names, o.agent.String())
		}
	}
	if !h.known {
		names = append(names, "nobody known")
	}
	return strings.Join(names, ", ")
}

// shares tells whether some hunks are known to be an agent's alone, and whether
// it has changed some together with others.
func (f *sharedFile) shares(agent superqode.AgentID) (some, mixed bool) {
	for i := range f.hunks {
		some = some || f.hunks[i].of(agent)
		mixed = mixed || f.hunks[i].partly(agent)
	}
	return some, mixed
}

// whole reports whether all that is known of the file's change is one agent's: a
// file that was made or deleted, of bytes, or of which only the mode changed.
func (f *sharedFile) whole(agent superqode.AgentID) bool {
	if len(f.hunks) == 0 {
		return len(f.said) == 1 && f.said[0] == agent
	}
	return !slices.ContainsFunc(f.hunks, func(h sharedHunk) bool { return !h.of(agent) })
}

// follow follows a file's lines through the statements about it.
func (p *parts) follow(ctx context.Context, f *sharedFile) error {
	events := slices.Clone(p.said[string(f.Path())])
	if f.Renamed() {
		events = append(events, p.said[string(f.Old.Path)]...)
		slices.SortStableFunc(events, func(a, b trackEvent) int { return a.At.Compare(b.At) })
	}
	for _, e := range events {
		if !slices.Contains(f.said, e.Agent) {
			f.said = append(f.said, e.Agent)
		}
		f.first = earlier(f.first, e.At)
	}
	base, isText, err := p.content(f.Old)
	if err != nil || !isText {
		return err
	}
	now, isText, err := p.content(f.New)
	if err != nil || !isText {
		return err
	}
	f.fold = newFold(p.b, base)
	for i := range events {
		if events[i].Content == "-" {
			continue
		}
		content, err := statements{p.Site}.content(&events[i])
		if err == nil {
			err = f.fold.step(ctx, content, &events[i])
		}
		if err != nil {
			return err
		}
	}
	if err := f.fold.step(ctx, now, nil); err != nil {
		return err
	}
	f.base, f.now = splitLines(base), splitLines(now)
	hunks, err := newFold(p.b, base).diff(ctx, f.now)
	for _, h := range hunks {
		owners, known := f.fold.owners(h)
		f.hunks = append(f.hunks, sharedHunk{h, owners, known})
	}
	return err
}

// content returns what a side of a change holds, and whether that is text; none
// is empty text.
func (p *parts) content(e *snapshot.Entry) (data []byte, isText bool, err error) {
	switch {
	case e == nil:
		return nil, true, nil
	case e.Kind != snapshot.File || e.IsLarge() || e.ID.IsZero():
		return nil, false, nil
	}
	return p.b.Text("side", e.ID)
}

// byClaims gives places that no statement is about to the agent that had a claim
// on all of them, if no other agent had one there.
func (f *sharedFile) byClaims(leases []coordinator.Lease) {
	for i := range f.hunks {
		h := &f.hunks[i]
		if len(h.owners) > 0 {
			continue
		}
		edit := coordinator.Edit{Path: f.Path(), Lines: coordinator.Lines(h.Old())}
		if f.Old == nil || f.New == nil {
			edit.Lines = coordinator.Lines{}
		} else if f.Renamed() {
			edit.Path = f.Old.Path
		}
		by, ok := claimant(leases, edit)
		if !ok {
			continue
		}
		h.owners, h.known = []foldBy{by}, true
		for n := range h.NewLines {
			f.fold.lines[h.NewStart-1+n].foldBy = by
		}
	}
}

// claimant returns who alone had a claim on a place, and on all of it.
func claimant(leases []coordinator.Lease, edit coordinator.Edit) (by foldBy, ok bool) {
	edits := []coordinator.Edit{edit}
	for _, l := range leases {
		one := []coordinator.Lease{l}
		if len(coordinator.Check(one, coordinator.Owner{}, edits).Held) == 0 {
			continue // it is about another place
		}
		if len(coordinator.Check(one, l.Owner, edits).Uncovered) > 0 || !by.agent.IsZero() && by.agent != l.Agent {
			return foldBy{}, false
		}
		by = foldBy{l.Agent, earlier(by.at, l.Since)}
	}
	return by, !by.agent.IsZero()
}

// with returns the base with those hunks that take chooses.
func (f *sharedFile) with(take func(h *sharedHunk) bool) []byte {
	var out [][]byte
	at := 0
	for i := range f.hunks {
		old, fresh := f.hunks[i].Old(), f.hunks[i].New()
		out = append(out, f.base[at:old.Start-1]...)
		if take(&f.hunks[i]) {
			out = append(out, f.now[fresh.Start-1:fresh.End]...)
		} else {
			out = append(out, f.base[old.Start-1:old.End]...)
		}
		at = old.End
	}
	return bytes.Join(append(out, f.base[at:]...), nil)
}

// credits says whose the changes are, as far as it is known.
func (p *parts) credits() credits {
	out := credits{}
	for i := range p.files {
		out[p.files[i].Path()] = p.files[i].credit()
	}
	return out
}

func (f *sharedFile) credit() credit {
	c := credit{Seen: f.first}
	if len(f.hunks) == 0 {
		c.Agents = f.said
	}
	for _, h := range f.hunks {
		ch := changeHunk(h.Hunk)
		for _, o := range h.owners {
			if !slices.Contains(c.Agents, o.agent) {
				c.Agents = append(c.Agents, o.agent)
			}
		}
		if h.known && len(h.owners) == 1 {
			ch.Agent, ch.FirstSeen = h.owners[0].agent, h.owners[0].at
		} else {
			c.unsure = true
		}
		c.Hunks = append(c.Hunks, ch)
	}
	return c
}

// sharedEnds is AgentEnds for agents that work in one workspace: the base with
// those places, and those whole files, that are known to be the agent's alone.
func (s *Authorship) sharedEnds(ctx context.Context, agent superqode.AgentID) (e merge.Ends, err error) {
	all, err := s.Ends(ctx)
	if err != nil || all.Base == "" {
		return e, err
	}
	e, err = s.SharedPart(ctx, &all, agent)
	if err == nil && len(e.Changes)+len(e.Left) == 0 {
		err = s.noAgent(agent)
	}
	return e, err
}

// SharedPart returns what lies between two commits of the store and is known to
// be one agent's.
func (s *Authorship) SharedPart(
	ctx context.Context, all *merge.Ends, agent superqode.AgentID,
) (e merge.Ends, err error) {
	p, err := s.openParts(ctx, *all)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.of(ctx, agent)
}

// of returns what lies between the base and the base with an agent's part only.
func (p *parts) of(ctx context.Context, agent superqode.AgentID) (e merge.Ends, err error) {
	base, err := p.Store.Tree(ctx, p.ends.Base)
	if err != nil {
		return e, err
	}
	entries := entriesOf(base)
	for i := range p.files {
		f := &p.files[i]
		entry, mixed, err := p.entry(f, agent)
		if err != nil {
			return e, err
		}
		if mixed {
			e.Left = append(e.Left, text.Printable(f.Path())+": places that "+agent.String()+
				" and others, or nobody known, changed together")
		}
		if entry == nil {
			continue
		}
		if f.Old != nil && (f.New == nil || f.Renamed()) {
			delete(entries, f.Old.Path)
		}
		if f.New != nil {
			entries[entry.Path] = *entry
		}
		e.Changes = append(e.Changes, f.changesOf(agent, p.ends.Changes)...)
	}
	if len(e.Changes) == 0 {
		return e, nil
	}
	if err := p.b.Keep(ctx); err != nil {
		return e, err
	}
	part := &snapshot.Snapshot{Root: base.Root, Format: base.Format, Entries: sortedEntries(entries)}
	ids, err := p.Store.CommitAll(ctx, []store.CommitRequest{{
		Ref: p.Ref("shared/part"), Snap: part,
		CommitOptions: store.CommitOptions{Message: "the part of agent " + agent.String(), When: p.Rec.CreatedAt},
	}})
	if err != nil {
		return e, err
	}
	e.Base, e.Final = p.ends.Base, ids[0]
	return e, nil
}

// entry is what a file would be with one agent's changes only; nil where it has
// none of its own. mixed says that there are some that cannot be told apart.
func (p *parts) entry(f *sharedFile, agent superqode.AgentID) (entry *snapshot.Entry, mixed bool, err error) {
	if f.whole(agent) {
		if f.New == nil {
			return f.Old, false, nil
		}
		return f.New, false, nil
	}
	if len(f.hunks) == 0 {
		return nil, slices.Contains(f.said, agent), nil
	}
	some, mixed := f.shares(agent)
	if !some || f.Old == nil || f.New == nil {
		return nil, mixed || some, nil
	}
	made, err := p.b.Write(p.b.Fresh("part-"), f.with(func(h *sharedHunk) bool { return h.of(agent) }))
	e := *f.New
	e.ID, e.Size = made.ID, made.Size
	return &e, mixed, err
}

// changesOf is the change of a file as it is reported for one agent.
func (f *sharedFile) changesOf(agent superqode.AgentID, all []superqode.Change) []superqode.Change {
	i := slices.IndexFunc(all, func(c superqode.Change) bool { return c.Path == f.Path() })
	if i < 0 {
		return nil
	}
	c := all[i]
	c.Agent, c.Agents, c.Hunks = agent, nil, nil
	if len(f.hunks) > 0 {
		c.LinesAdded, c.LinesRemoved = 0, 0
	}
	for _, h := range f.hunks {
		if h.of(agent) {
			c.LinesAdded, c.LinesRemoved = c.LinesAdded+h.NewLines, c.LinesRemoved+h.OldLines
			ch := changeHunk(h.Hunk)
			ch.Agent, ch.FirstSeen = agent, h.owners[0].at
			c.Hunks = append(c.Hunks, ch)
		}
	}
	return []superqode.Change{c}
}

// AgentReverted is what TakeBack did.
type AgentReverted struct {
	mode.Reverted
	// Mixed names, one line each, what is left as it is because the agent and
	// others, or nobody known, changed it together.
	Mixed []string
}

// TakeBack reverts what is known to be one agent's in a workspace that it shares
// with others, and tells in r what it did.
func (s *Authorship) TakeBack(
	ctx context.Context, agent superqode.AgentID, opt mode.RevertOptions, r *AgentReverted,
) (err error) {
	l, err := s.Look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	p, err := s.partsOf(ctx, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	back := &takenBack{parts: p, agent: agent, entries: entriesOf(l.Final)}
	for i := range p.files {
		f := &p.files[i]
		under := func(within superqode.RelPath) bool { return superqode.Within(f.Path(), within) }
		if len(opt.Paths) > 0 && !slices.ContainsFunc(opt.Paths, under) {
			continue
		}
		if err := back.take(f, l.Base); err != nil {
			return err
		}
	}
	if r.Mixed = back.mixed; len(back.paths) == 0 {
		if r.Verified = true; len(r.Mixed) == 0 {
			return s.noAgent(agent)
		}
		return nil
	}
	if err := p.b.Keep(ctx); err != nil {
		return err
	}
	target := l.Final.With(sortedEntries(back.entries))
	tree := &revert.Tree{Dir: s.WorkDir(), Base: target, Skip: mode.Skip(s.Site), Store: s.Store}
	res, err := tree.Restore(ctx, revert.RestoreOptions{
		Within: back.paths, How: opt.How, DryRun: opt.DryRun, Keep: aside.KeepOverwritten(s.Site, tree.Dir, ""),
	})
	if res != nil {
		r.Restored = *res
	}
	return err
}

// takenBack is what the workspace would be without an agent's part.
type takenBack struct {
	*parts
	agent   superqode.AgentID
	entries map[superqode.RelPath]snapshot.Entry
	paths   []superqode.RelPath // that would differ
	mixed   []string            // see AgentReverted
}

// take takes the agent's part of a file back.
func (t *takenBack) take(f *sharedFile, base *snapshot.Snapshot) error {
	touch := func(p superqode.RelPath) {
		t.paths = append(t.paths, p)
	}
	some, _ := f.shares(t.agent)
	for i := range f.hunks {
		if h := &f.hunks[i]; h.partly(t.agent) {
			t.mixed = append(t.mixed, fmt.Sprintf("%s: lines %s: changed together with %s",
				text.Printable(f.Path()), rangeText(h.Hunk), h.others(t.agent)))
		}
	}
	switch {
	case f.whole(t.agent):
		if f.New != nil {
			delete(t.entries, f.New.Path)
			touch(f.New.Path)
		}
		if f.Old != nil {
			t.entries[f.Old.Path] = *base.Find(f.Old.Path)
			touch(f.Old.Path)
		}
	case some && f.Old != nil && f.New != nil:
		made, err := t.b.Write(t.b.Fresh("without-"), f.with(func(h *sharedHunk) bool { return !h.of(t.agent) }))
		if err != nil {
			return err
		}
		e := t.entries[f.New.Path]
		e.ID, e.Size, e.Stat = made.ID, made.Size, snapshot.Stat{}
		t.entries[f.New.Path] = e
		touch(f.New.Path)
	case some || len(f.hunks) == 0 && slices.Contains(f.said, t.agent):
		t.mixed = append(t.mixed, text.Printable(f.Path())+": made or deleted by more than one")
	}
	return nil
}

// rangeText is a hunk's lines as the file has them now.
func rangeText(h merge.Hunk) string {
	if h.NewLines <= 1 {
		return fmt.Sprint(h.NewStart)
	}
	return fmt.Sprintf("%d-%d", h.NewStart, h.NewStart+h.NewLines-1)
}

// blame tells who wrote the lines of a file, if it was changed.
func (p *parts) blame(b *Blame) {
	i := slices.IndexFunc(p.files, func(f sharedFile) bool { return f.New != nil && f.Path() == b.Path })
	if i < 0 {
		return
	}
	f := &p.files[i]
	if b.Agents = f.credit().Agents; f.fold == nil {
		b.Binary, b.Link = f.New.Kind == snapshot.File, f.New.Kind == snapshot.Link
		return
	}
	b.Lines = f.fold.blamed()
}

// entriesOf returns a snapshot's entries by path.
func entriesOf(sn *snapshot.Snapshot) map[superqode.RelPath]snapshot.Entry {
	entries := make(map[superqode.RelPath]snapshot.Entry, len(sn.Entries))
	for _, e := range sn.Entries {
		entries[e.Path] = e
	}
	return entries
}

func sortedEntries(entries map[superqode.RelPath]snapshot.Entry) []snapshot.Entry {
	return slices.SortedFunc(maps.Values(entries), snapshot.ByPath)
}
