package attribution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/text"
)

// sharedFile is a changed file of a workspace in which several agents work, with
// what is known of who changed what in it.
type sharedFile struct {
	merge.Change
	base, now [][]byte     // the lines of both sides; nil where there is none, or no text
	hunks     []merge.Hunk // between them
	owners    [][]foldBy
	known     []bool
	said      []superqode.AgentID // who made a statement about the file at all
	first     time.Time           // the first of these
	fold      *fold               // nil for what is no text
}

// of reports whether hunk i is known to be an agent's, and nobody else's.
func (f *sharedFile) of(i int, agent superqode.AgentID) bool {
	return f.known[i] && len(f.owners[i]) == 1 && f.owners[i][0].agent == agent
}

// partly reports whether an agent had a part in hunk i beside somebody else.
func (f *sharedFile) partly(i int, agent superqode.AgentID) bool {
	return !f.of(i, agent) && slices.ContainsFunc(f.owners[i], func(o foldBy) bool { return o.agent == agent })
}

// whole reports whether all that is known of the file's change is one agent's: a
// file that was made or deleted, of bytes, or of which only the mode changed.
func (f *sharedFile) whole(agent superqode.AgentID) bool {
	if len(f.hunks) == 0 {
		return len(f.said) == 1 && f.said[0] == agent
	}
	for i := range f.hunks {
		if !f.of(i, agent) {
			return false
		}
	}
	return true
}

// sharedFiles finds out who changed what between two commits of the store.
func (s *Authorship) sharedFiles(ctx context.Context, e *merge.Ends, b *merge.Scratch) ([]sharedFile, error) {
	tracks, err := s.readTracks()
	if err != nil {
		return nil, err
	}
	changes, err := e.Pairs(ctx, s.Store, nil)
	if err != nil {
		return nil, err
	}
	leases, err := s.grants()
	if err != nil {
		return nil, err
	}
	files := make([]sharedFile, len(changes))
	for i, c := range changes {
		if files[i], err = s.sharedFile(ctx, c, tracks, b); err != nil {
			return nil, fmt.Errorf("who changed %s: %w", text.Printable(c.Path()), err)
		}
		files[i].byClaims(leases)
	}
	return files, nil
}

func (s *Authorship) sharedFile(ctx context.Context, c merge.Change, tracks map[string][]trackEvent, b *merge.Scratch) (sharedFile, error) {
	f := sharedFile{Change: c}
	events := slices.Clone(tracks[c.Path()])
	if c.Renamed() {
		events = append(events, tracks[c.Old.Path]...)
		slices.SortStableFunc(events, func(a, b trackEvent) int { return a.At.Compare(b.At) })
	}
	for _, e := range events {
		if !slices.Contains(f.said, e.Agent) {
			f.said = append(f.said, e.Agent)
		}
		f.first = earlier(f.first, e.At)
	}
	base, text, err := sideText(b, c.Old)
	if err != nil || !text {
		return f, err
	}
	now, text, err := sideText(b, c.New)
	if err != nil || !text {
		return f, err
	}
	f.fold = newFold(b, base)
	for i := range events {
		if events[i].Content == "-" {
			continue
		}
		content, err := s.trackedContent(&events[i])
		if err == nil {
			err = f.fold.step(ctx, content, &events[i])
		}
		if err != nil {
			return f, err
		}
	}
	if err := f.fold.step(ctx, now, nil); err != nil {
		return f, err
	}
	f.base, f.now = splitLines(base), splitLines(now)
	all := newFold(b, base)
	if f.hunks, err = all.diff(ctx, f.now); err != nil {
		return f, err
	}
	for _, h := range f.hunks {
		owners, known := f.fold.owners(h)
		f.owners, f.known = append(f.owners, owners), append(f.known, known)
	}
	return f, nil
}

// byClaims gives places that no statement is about to the agent that had a claim
// on all of them, if no other agent had one there.
func (f *sharedFile) byClaims(leases []coordinator.Lease) {
	for i, h := range f.hunks {
		if len(f.owners[i]) > 0 {
			continue
		}
		edit := coordinator.Edit{Path: f.Path(), Lines: coordinator.Lines(h.Old())}
		if f.Old == nil || f.New == nil {
			edit.Lines = coordinator.Lines{}
		} else if f.Renamed() {
			edit.Path = f.Old.Path
		}
		var by foldBy
		several := false
		for _, l := range leases {
			v := coordinator.Check([]coordinator.Lease{l}, coordinator.Owner{}, []coordinator.Edit{edit})
			if len(v.Held) == 0 { // it is about another place
				continue
			}
			mine := len(coordinator.Check([]coordinator.Lease{l}, l.Owner, []coordinator.Edit{edit}).Uncovered) == 0
			several = several || !mine || !by.agent.IsZero() && by.agent != l.Agent
			by = foldBy{l.Agent, earlier(by.at, l.Since)}
		}
		if several || by.agent.IsZero() {
			continue
		}
		f.owners[i], f.known[i] = []foldBy{by}, true
		for n := range h.NewLines {
			f.fold.lines[h.NewStart-1+n].foldBy = by
		}
	}
}

// sideText returns what a side holds, and whether that is text; none is empty
// text.
func sideText(b *merge.Scratch, e *snapshot.Entry) ([]byte, bool, error) {
	switch {
	case e == nil:
		return nil, true, nil
	case e.Kind != snapshot.File || e.IsLarge() || e.ID.IsZero():
		return nil, false, nil
	}
	if err := b.Fetch("side", e.ID); err != nil {
		return nil, false, err
	}
	if binary, err := merge.IsBinary(b.Path("side")); binary || err != nil {
		return nil, false, err
	}
	data, err := os.ReadFile(b.Path("side"))
	return data, true, err
}

// with returns the base with those hunks that take says.
func (f *sharedFile) with(take func(i int) bool) []byte {
	var out bytes.Buffer
	at := 0
	for i, h := range f.hunks {
		r := h.Old()
		for ; at < r.Start-1; at++ {
			out.Write(f.base[at])
		}
		if take(i) {
			first := h.NewStart - 1
			for n := range h.NewLines {
				out.Write(f.now[first+n])
			}
		} else {
			for ; at < r.End; at++ {
				out.Write(f.base[at])
			}
		}
		at = r.End
	}
	for ; at < len(f.base); at++ {
		out.Write(f.base[at])
	}
	return out.Bytes()
}

// sharedCredits says whose the changes in a shared workspace are, as far as it is
// known.
func (s *Authorship) sharedCredits(ctx context.Context, e *merge.Ends) (_ credits, err error) {
	b, err := s.openMergeScratch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	files, err := s.sharedFiles(ctx, e, b.Scratch)
	if err != nil {
		return nil, err
	}
	out := credits{}
	for i := range files {
		out[files[i].Path()] = files[i].credit()
	}
	return out, nil
}

func (f *sharedFile) credit() credit {
	c := credit{seen: f.first}
	if len(f.hunks) == 0 {
		c.agents = f.said
	}
	for i, h := range f.hunks {
		ch := superqode.ChangeHunk{OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines}
		for _, o := range f.owners[i] {
			if !slices.Contains(c.agents, o.agent) {
				c.agents = append(c.agents, o.agent)
			}
		}
		if f.known[i] && len(f.owners[i]) == 1 {
			ch.Agent, ch.FirstSeen = f.owners[i][0].agent, f.owners[i][0].at
		} else {
			c.unsure = true
		}
		c.hunks = append(c.hunks, ch)
	}
	return c
}

// sharedEnds is agentEnds for agents that work in one workspace: the base with
// those places, and those whole files, that are known to be the agent's alone.
func (s *Authorship) sharedEnds(ctx context.Context, agent superqode.AgentID) (e merge.Ends, err error) {
	all, err := s.Ends(ctx)
	if err != nil || all.Base == "" {
		return e, err
	}
	if err := s.OpenStore(ctx); err != nil {
		return e, err
	}
	e, err = s.SharedPart(ctx, &all, agent)
	if err == nil && len(e.Changes)+len(e.Left) == 0 {
		err = s.noAgent(agent)
	}
	return e, err
}

// SharedPart is sharedEnds between two commits of the store.
func (s *Authorship) SharedPart(ctx context.Context, all *merge.Ends, agent superqode.AgentID) (e merge.Ends, err error) {
	b, err := s.openMergeScratch(ctx)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	files, err := s.sharedFiles(ctx, all, b.Scratch)
	if err != nil {
		return e, err
	}
	base, err := s.Store.Tree(ctx, all.Base)
	if err != nil {
		return e, err
	}
	entries := map[string]snapshot.Entry{}
	for _, x := range base.Entries {
		entries[x.Path] = x
	}
	var made []snapshot.Entry
	for i := range files {
		f := &files[i]
		entry, mixed, err := s.agentsPart(b.Scratch, f, agent, i)
		if err != nil {
			return e, err
		}
		if mixed {
			e.Left = append(e.Left, text.Printable(f.Path())+": places that "+agent.String()+" and others, or nobody known, changed together")
		}
		if entry == nil {
			continue
		}
		if f.Old != nil && (f.New == nil || f.Renamed()) {
			delete(entries, f.Old.Path)
		}
		if f.New != nil {
			entries[entry.Path] = *entry
			if name, ok := b.Made[entry.ID.String()]; ok {
				made = append(made, snapshot.Entry{Path: name, Kind: snapshot.File, Size: entry.Size, ID: entry.ID})
			}
		}
		e.Changes = append(e.Changes, agentChange(all.Changes, f, agent)...)
	}
	if len(e.Changes) == 0 {
		return e, nil
	}
	if err := s.Store.WriteBlobs(ctx, b.Dir, made); err != nil {
		return e, err
	}
	part := &snapshot.Snapshot{Root: base.Root, Format: base.Format}
	for _, p := range slices.Sorted(maps.Keys(entries)) {
		part.Entries = append(part.Entries, entries[p])
	}
	ids, err := s.Store.CommitAll(ctx, []store.CommitRequest{{
		Ref: s.Ref("shared/part"), Snap: part, CommitOptions: store.CommitOptions{Message: "the part of agent " + agent.String(), When: s.Rec.CreatedAt},
	}})
	if err != nil {
		return e, err
	}
	e.Base, e.Final = all.Base, ids[0]
	return e, nil
}

// agentsPart is what a file would be with one agent's changes only; nil where it
// has none of its own. mixed says that there are some that cannot be told apart.
func (s *Authorship) agentsPart(b *merge.Scratch, f *sharedFile, agent superqode.AgentID, n int) (entry *snapshot.Entry, mixed bool, err error) {
	if f.whole(agent) {
		if f.New == nil {
			return f.Old, false, nil
		}
		return f.New, false, nil
	}
	if len(f.hunks) == 0 {
		return nil, slices.Contains(f.said, agent), nil
	}
	some := false
	for i := range f.hunks {
		some = some || f.of(i, agent)
		mixed = mixed || f.partly(i, agent)
	}
	if !some || f.Old == nil || f.New == nil {
		return nil, mixed || some, nil
	}
	made, err := b.Write(fmt.Sprintf("part-%d", n), f.with(func(i int) bool { return f.of(i, agent) }))
	if err != nil {
		return nil, mixed, err
	}
	e := *f.New
	e.ID, e.Size = made.ID, made.Size
	return &e, mixed, nil
}

// agentChange is the change of a file as it is reported for one agent.
func agentChange(all []superqode.Change, f *sharedFile, agent superqode.AgentID) []superqode.Change {
	for _, c := range all {
		if c.Path.String() == f.Path() {
			c.Agent, c.Agents, c.Hunks = agent, nil, nil
			if len(f.hunks) > 0 {
				c.LinesAdded, c.LinesRemoved = 0, 0
				for i, h := range f.hunks {
					if f.of(i, agent) {
						c.LinesAdded, c.LinesRemoved = c.LinesAdded+h.NewLines, c.LinesRemoved+h.OldLines
						c.Hunks = append(c.Hunks, superqode.ChangeHunk{
							OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Agent: agent, FirstSeen: f.owners[i][0].at,
						})
					}
				}
			}
			return []superqode.Change{c}
		}
	}
	return nil
}
