package attribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// The merge of several agents' work: one after the other, in the order given,
// each agent's changes are brought into what the ones before made of the base,
// by the rules of package merge with the base in the middle. Texts are merged
// by git merge-file. What conflicts is left out as a whole file, so that the
// earlier agent's version stays as it was written, and is reported; it is in
// the agent's own patch, and a text's conflict also as a file with git's marks.
// Nothing is done in the origin or in a workspace: contents come from the store
// and go there.

// AgentConflict is a change of an agent that could not be merged with those of
// the agents before.
type AgentConflict struct {
	Agent   superqode.AgentID
	With    []superqode.AgentID // whose changes stand in the way, where that is known
	Path    superqode.RelPath
	Kind    merge.ConflictKind
	Message string
	Lines   []merge.LineRange // of the base; none where it is not about lines
	File    string            // in the scratch folder: the text with git's conflict markers; "" for none
}

// TeamMerge is a merge under way.
type TeamMerge struct {
	s         *Authorship
	B         *merge.Scratch
	base      *snapshot.Snapshot
	Now       *snapshot.Snapshot // base with what was merged so far
	Works     []*AgentWork
	moved     map[superqode.RelPath]superqode.RelPath   // paths of the base that were renamed
	origins   map[superqode.RelPath]superqode.RelPath   // and back
	went      map[superqode.RelPath]string              // folders that the agents before the one at hand have renamed
	placed    map[superqode.RelPath]superqode.RelPath   // files that went along with a folder: their first names
	touched   map[superqode.RelPath][]superqode.AgentID // who changed what stands at a path now, in order
	Conflicts []AgentConflict
	stages    []*snapshot.Snapshot // now, after each agent
	claims    *claimCheck
}

// Merge merges what the agents did. Close it.
func (s *Authorship) Merge(ctx context.Context, base *snapshot.Snapshot, works []*AgentWork) (*TeamMerge, error) {
	b, err := s.openScratch(ctx, "")
	if err != nil {
		return nil, err
	}
	m := &TeamMerge{
		s: s, B: b, base: base, Now: base, Works: works,
		moved: map[superqode.RelPath]superqode.RelPath{}, origins: map[superqode.RelPath]superqode.RelPath{},
		placed: map[superqode.RelPath]superqode.RelPath{}, touched: map[superqode.RelPath][]superqode.AgentID{},
	}
	if m.claims, err = s.claimCheck(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	for _, w := range works {
		if err := m.add(ctx, w); err != nil {
			return nil, errors.Join(fmt.Errorf("merge the changes of agent %s: %w", w.Agent, err), m.Close())
		}
		m.stages = append(m.stages, m.Now)
	}
	return m, nil
}

func (m *TeamMerge) Close() error { return m.B.Close() }

// add brings one agent's changes in. Where some conflict the others are decided
// upon again without them: one may have needed what the other would have done.
func (m *TeamMerge) add(ctx context.Context, w *AgentWork) error {
	m.B.Labels[1] = w.Agent.String()
	d := &merge.Decider{Now: m.Now, Merge: m.B.Merge(ctx), Similar: m.B.Similar, Ours: m.before,
		Theirs: w.Agent.String(), Moved: m.moved}
	todo := m.redirect(w, m.refuseUnclaimed(ctx, w))
	for {
		steps, err := d.Decide(todo)
		if err != nil {
			return err
		}
		var rest []merge.Change
		for i := range steps {
			if st := &steps[i]; st.Conflict != nil {
				if err := m.note(ctx, w, st); err != nil {
					return err
				}
			} else {
				rest = append(rest, st.Change)
			}
		}
		if len(rest) == len(todo) {
			m.take(w, steps)
			return nil
		}
		todo = rest
	}
}

// refuseUnclaimed takes out the changes that an agent had no right to make.
func (m *TeamMerge) refuseUnclaimed(ctx context.Context, w *AgentWork) []merge.Change {
	return slices.DeleteFunc(slices.Concat(w.changes, w.Large), func(c merge.Change) bool {
		why := m.claims.refuses(ctx, w.Agent, &c)
		if why != "" {
			m.Conflicts = append(m.Conflicts, AgentConflict{Agent: w.Agent, Path: c.Path(), Kind: merge.ConflictClaim,
				Message: "CONFLICT (claim): " + why})
		}
		return why != ""
	})
}

// names are the agents whose changes are in already.
func (m *TeamMerge) names() string {
	var names []string
	for _, w := range m.Works[:len(m.stages)] {
		if len(w.List) > 0 {
			names = append(names, w.Agent.String())
		}
	}
	return strings.Join(names, "+")
}

// before names who changed a path before, as messages do.
func (m *TeamMerge) before(path superqode.RelPath) string {
	var names []string
	for _, a := range m.who(path) {
		names = append(names, a.String())
	}
	if len(names) == 0 {
		return m.names()
	}
	return strings.Join(names, "+")
}

// who returns the agents before that changed a path: what stands there, what
// stood there in the base, or something below or above it.
func (m *TeamMerge) who(path superqode.RelPath) []superqode.AgentID {
	var list []superqode.AgentID
	add := func(p superqode.RelPath) {
		for _, a := range m.touched[p] {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	add(path)
	add(m.moved[path])
	if len(list) > 0 {
		return list
	}
	for p := range m.touched {
		if p != path && (superqode.Within(p, path) || superqode.Within(path, p)) {
			add(p)
		}
	}
	slices.SortFunc(list, func(a, b superqode.AgentID) int { return m.rank(a) - m.rank(b) })
	return list
}

func (m *TeamMerge) rank(a superqode.AgentID) int {
	return slices.IndexFunc(m.Works, func(w *AgentWork) bool { return w.Agent == a })
}

// note remembers a conflict.
func (m *TeamMerge) note(ctx context.Context, w *AgentWork, st *merge.Step) error {
	c := AgentConflict{Agent: w.Agent, Kind: st.Conflict.Kind, Message: st.Conflict.Message}
	c.Path = st.Conflict.Path
	c.With = m.who(st.Path())
	if len(c.With) == 0 && st.Old != nil {
		c.With = m.who(st.Old.Path)
	}
	err := m.mark(ctx, &c, st)
	m.Conflicts = append(m.Conflicts, c)
	return err
}

// mark writes a file with git's marks for a conflict of two texts. Of two that
// were both made the base is empty.
func (m *TeamMerge) mark(ctx context.Context, c *AgentConflict, st *merge.Step) (err error) {
	if st.New == nil || st.New.Kind != snapshot.File {
		return nil
	}
	at := st.New.Path
	switch {
	case st.Conflict.Kind == merge.ConflictAddAdd:
	case st.Conflict.Kind == merge.ConflictContent && st.Old != nil:
		at = cmp.Or(m.moved[st.Old.Path], st.Old.Path)
	default:
		return nil
	}
	ours := m.Now.Find(at)
	if ours == nil || ours.Kind != snapshot.File || ours.IsLarge() || st.New.IsLarge() {
		return nil
	}
	m.B.Labels[0] = m.before(ours.Path)
	c.File, c.Lines, err = m.B.Marks(ctx, st.Old, ours, st.New)
	return err
}

// take does the steps in m.now.
func (m *TeamMerge) take(w *AgentWork, steps []merge.Step) {
	entries := entriesOf(m.Now)
	for i := range steps {
		if e := steps[i].Remove; e != nil {
			delete(entries, e.Path)
		}
	}
	for i := range steps {
		m.put(w, &steps[i], entries)
	}
	m.follow(w, steps, entries)
	m.folders(w, entries)
	m.Now = m.Now.With(sortedEntries(entries))
}

// put does one step and remembers whose it was. What an earlier agent has done
// just so stays that agent's.
func (m *TeamMerge) put(w *AgentWork, st *merge.Step, entries map[superqode.RelPath]snapshot.Entry) {
	if st.Done() {
		return
	}
	var before []superqode.AgentID
	if st.Remove != nil {
		before = m.touched[st.Remove.Path]
	}
	if st.Put != nil {
		e := *st.Put
		mtime := e.Stat.Mtime
		if from := w.Final.Find(st.Path()); from != nil && !st.Bits {
			mtime = from.Stat.Mtime
		}
		// it is not the file of the workspace whose stat data it came with
		e.Stat = snapshot.Stat{Mtime: mtime, UID: e.Stat.UID, GID: e.Stat.GID}
		m.stand(w, e, entries)
		m.credit(e.Path, append(before, w.Agent))
	}
	if st.Remove == nil {
		return
	}
	if st.Put == nil || st.Put.Path != st.Remove.Path {
		m.credit(st.Remove.Path, []superqode.AgentID{w.Agent})
	}
	if st.Renamed() && st.Put != nil {
		from := st.Remove.Path
		if base, ok := m.origins[from]; ok {
			delete(m.origins, from)
			from = base
		}
		m.moved[from], m.origins[st.Put.Path] = st.Put.Path, from
	}
}

func (m *TeamMerge) credit(path superqode.RelPath, who []superqode.AgentID) {
	for _, a := range who {
		if !slices.Contains(m.touched[path], a) {
			m.touched[path] = append(m.touched[path], a)
		}
	}
}

// folders makes and removes what the agent did of folders, as far as nothing
// lies in them.
func (m *TeamMerge) folders(w *AgentWork, entries map[superqode.RelPath]snapshot.Entry) {
	if w.Final == nil {
		return
	}
	used := map[superqode.RelPath]bool{}
	for p, e := range entries {
		if e.Kind == snapshot.Dir && m.base.Find(p) != nil {
			continue
		}
		for dir := p.Parent(); dir != "" && !used[dir]; dir = dir.Parent() {
			used[dir] = true
		}
	}
	for i := range m.base.Entries {
		e := &m.base.Entries[i]
		if now, ok := entries[e.Path]; ok && e.Kind == snapshot.Dir && now.Kind == snapshot.Dir {
			own := w.Final.Find(e.Path)
			switch {
			case own != nil && own.Kind == snapshot.Dir && own.Perm != e.Perm:
				now.Perm = own.Perm
				entries[e.Path] = now
			case (own == nil || own.Kind != snapshot.Dir) && !used[e.Path]:
				delete(entries, e.Path)
			}
		}
	}
	for i := range w.Final.Entries {
		e := w.Final.Entries[i]
		if e.Kind != snapshot.Dir || m.base.Find(e.Path) != nil {
			continue
		}
		if to, ok := merge.Along(m.went, e.Path); ok {
			e.Path = to
		}
		if _, ok := entries[e.Path]; !ok && !m.blocked(e.Path, entries) {
			entries[e.Path] = e
		}
	}
	for p, e := range entries { // folders that gave way to a file
		if up := p.Parent(); up != "" && e.Kind == snapshot.Dir && m.blocked(p, entries) {
			delete(entries, p)
		}
	}
}

// blocked reports whether something else than a folder stands above a path.
func (m *TeamMerge) blocked(p superqode.RelPath, entries map[superqode.RelPath]snapshot.Entry) bool {
	for dir := p.Parent(); dir != ""; dir = dir.Parent() {
		if e, ok := entries[dir]; ok && e.Kind != snapshot.Dir {
			return true
		}
	}
	return false
}
