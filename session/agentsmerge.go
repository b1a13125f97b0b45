package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/snapshot"
)

// The merge of several agents' work: one after the other, in the order given,
// each agent's changes are brought into what the ones before made of the base,
// by the rules of applydecide.go with the base in the middle. Texts are merged by
// git merge-file. What conflicts is left out as a whole file, so that the earlier
// agent's version stays as it was written, and is told of; it is in the agent's
// own patch, and a text's conflict also as a file with git's marks. Nothing is
// done in the origin or in a workspace: contents come from the store and go
// there.

// AgentConflict is a change of an agent that could not be merged with those of
// the agents before.
type AgentConflict struct {
	Agent   superqode.AgentID
	With    []superqode.AgentID // whose changes stand in the way, where that is known
	Path    superqode.RelPath
	Kind    ConflictKind
	Message string
	Lines   []LineRange // of the base; none where it is not about lines
	file    string      // in the bench: the text with git's marks; "" for none
}

// teamMerge is a merge under way.
type teamMerge struct {
	s         *Session
	b         *mergeBench
	base      *snapshot.Snapshot
	now       *snapshot.Snapshot // base with what was merged so far
	works     []*agentWork
	moved     map[string]string              // paths of the base that were renamed
	origins   map[string]string              // and back
	touched   map[string][]superqode.AgentID // who changed what stands at a path now, in order
	conflicts []AgentConflict
	stages    []*snapshot.Snapshot // now, after each agent
	judge     func(w *agentWork, c *applyChange) string
}

// merge merges what the agents did. Close it.
func (s *Session) merge(ctx context.Context, base *snapshot.Snapshot, works []*agentWork) (*teamMerge, error) {
	b, err := s.openMergeBench(ctx)
	if err != nil {
		return nil, err
	}
	m := &teamMerge{
		s: s, b: b, base: base, now: base, works: works,
		moved: map[string]string{}, origins: map[string]string{}, touched: map[string][]superqode.AgentID{},
	}
	if m.judge, err = s.claimJudge(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	for _, w := range works {
		if err := m.add(ctx, w); err != nil {
			return nil, errors.Join(fmt.Errorf("merge the changes of agent %s: %w", w.agent, err), m.close())
		}
		m.stages = append(m.stages, m.now)
	}
	return m, nil
}

func (m *teamMerge) close() error { return m.b.close() }

// add brings one agent's changes in. Where some conflict the others are decided
// upon again without them: one may have needed what the other would have done.
func (m *teamMerge) add(ctx context.Context, w *agentWork) error {
	m.b.labels[1] = w.agent.String()
	d := &decider{now: m.now, merge: m.b.merge(ctx), similar: m.b.similar, ours: m.before, theirs: w.agent.String(), moved: m.moved}
	todo := m.refuseUnclaimed(w)
	for {
		steps, err := d.decide(todo)
		if err != nil {
			return err
		}
		var rest []applyChange
		for i := range steps {
			if st := &steps[i]; st.conflict != nil {
				if err := m.note(ctx, w, st); err != nil {
					return err
				}
			} else {
				rest = append(rest, st.applyChange)
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
func (m *teamMerge) refuseUnclaimed(w *agentWork) []applyChange {
	all := append(slices.Clone(w.changes), w.large...)
	if m.judge == nil {
		return all
	}
	var out []applyChange
	for i := range all {
		c := &all[i]
		why := m.judge(w, c)
		if why == "" {
			out = append(out, *c)
			continue
		}
		p, _ := superqode.ParseRelPath(c.path())
		m.conflicts = append(m.conflicts, AgentConflict{Agent: w.agent, Path: p, Kind: ConflictClaim, Message: "CONFLICT (claim): " + why})
	}
	return out
}

// names are the agents whose changes are in already.
func (m *teamMerge) names() string {
	var names []string
	for _, w := range m.works[:len(m.stages)] {
		if len(w.list) > 0 {
			names = append(names, w.agent.String())
		}
	}
	return strings.Join(names, "+")
}

// before names who changed a path before, as messages do.
func (m *teamMerge) before(path string) string {
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
func (m *teamMerge) who(path string) []superqode.AgentID {
	var list []superqode.AgentID
	add := func(p string) {
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
		if strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/") {
			add(p)
		}
	}
	slices.SortFunc(list, func(a, b superqode.AgentID) int { return m.rank(a) - m.rank(b) })
	return list
}

func (m *teamMerge) rank(a superqode.AgentID) int {
	return slices.IndexFunc(m.works, func(w *agentWork) bool { return w.agent == a })
}

// note remembers a conflict.
func (m *teamMerge) note(ctx context.Context, w *agentWork, st *applyStep) error {
	c := AgentConflict{Agent: w.agent, Kind: st.conflict.Kind, Message: st.conflict.Message}
	c.Path, _ = superqode.ParseRelPath(st.conflict.Path) // it came out of git's tree
	c.With = m.who(st.path())
	if len(c.With) == 0 && st.old != nil {
		c.With = m.who(st.old.Path)
	}
	err := m.mark(ctx, &c, st)
	m.conflicts = append(m.conflicts, c)
	return err
}

// mark writes a file with git's marks for a conflict of two texts. Of two that
// were both made the base is empty.
func (m *teamMerge) mark(ctx context.Context, c *AgentConflict, st *applyStep) (err error) {
	if st.new == nil || st.new.Kind != snapshot.File {
		return nil
	}
	at := st.new.Path
	switch {
	case st.conflict.Kind == ConflictAddAdd:
	case st.conflict.Kind == ConflictContent && st.old != nil:
		at = m.at(st.old.Path)
	default:
		return nil
	}
	ours := m.now.Find(at)
	if ours == nil || ours.Kind != snapshot.File || ours.IsLarge() || st.new.IsLarge() {
		return nil
	}
	m.b.labels[0] = m.before(ours.Path)
	c.file, c.Lines, err = m.b.marks(ctx, st.old, ours, st.new)
	return err
}

func (m *teamMerge) at(path string) string {
	if to, ok := m.moved[path]; ok {
		return to
	}
	return path
}

// take does the steps in m.now.
func (m *teamMerge) take(w *agentWork, steps []applyStep) {
	entries := make(map[string]snapshot.Entry, len(m.now.Entries))
	for _, e := range m.now.Entries {
		entries[e.Path] = e
	}
	for i := range steps {
		if e := steps[i].remove; e != nil {
			delete(entries, e.Path)
		}
	}
	for i := range steps {
		m.put(w, &steps[i], entries)
	}
	m.folders(w, entries)
	now := &snapshot.Snapshot{Root: m.now.Root, Format: m.now.Format, Taken: m.now.Taken, Entries: make([]snapshot.Entry, 0, len(entries))}
	for _, e := range entries {
		now.Entries = append(now.Entries, e)
	}
	slices.SortFunc(now.Entries, func(a, b snapshot.Entry) int { return strings.Compare(a.Path, b.Path) })
	m.now = now
}

// put does one step and remembers whose it was. What an earlier agent has done
// just so stays that agent's.
func (m *teamMerge) put(w *agentWork, st *applyStep, entries map[string]snapshot.Entry) {
	if st.done() {
		return
	}
	var before []superqode.AgentID
	if st.remove != nil {
		before = m.touched[st.remove.Path]
	}
	if st.put != nil {
		e := *st.put
		mtime := e.Stat.Mtime
		if from := w.final.Find(st.path()); from != nil && !st.bits {
			mtime = from.Stat.Mtime
		}
		e.Stat = snapshot.Stat{Mtime: mtime, UID: e.Stat.UID, GID: e.Stat.GID} // it is not the file of the workspace whose stat data it came with
		entries[e.Path] = e
		for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
			if have, ok := entries[dir]; ok && have.Kind == snapshot.Dir {
				break
			}
			d := snapshot.Entry{Path: dir, Kind: snapshot.Dir, Perm: 0o755}
			if own := w.final.Find(dir); own != nil && own.Kind == snapshot.Dir {
				d = *own
			}
			entries[dir] = d
		}
		m.credit(e.Path, append(before, w.agent))
	}
	if st.remove == nil {
		return
	}
	if st.put == nil || st.put.Path != st.remove.Path {
		m.credit(st.remove.Path, []superqode.AgentID{w.agent})
	}
	if st.renamed() && st.put != nil {
		from := st.remove.Path
		if base, ok := m.origins[from]; ok {
			delete(m.origins, from)
			from = base
		}
		m.moved[from], m.origins[st.put.Path] = st.put.Path, from
	}
}

func (m *teamMerge) credit(path string, who []superqode.AgentID) {
	for _, a := range who {
		if !slices.Contains(m.touched[path], a) {
			m.touched[path] = append(m.touched[path], a)
		}
	}
}

// folders makes and removes what the agent did of folders, as far as nothing
// lies in them.
func (m *teamMerge) folders(w *agentWork, entries map[string]snapshot.Entry) {
	if w.final == nil {
		return
	}
	used := map[string]bool{}
	for p, e := range entries {
		if e.Kind == snapshot.Dir && m.base.Find(p) != nil {
			continue
		}
		for dir := path.Dir(p); dir != "." && !used[dir]; dir = path.Dir(dir) {
			used[dir] = true
		}
	}
	for i := range m.base.Entries {
		e := &m.base.Entries[i]
		if now, ok := entries[e.Path]; ok && e.Kind == snapshot.Dir && now.Kind == snapshot.Dir {
			own := w.final.Find(e.Path)
			switch {
			case own != nil && own.Kind == snapshot.Dir && own.Perm != e.Perm:
				now.Perm = own.Perm
				entries[e.Path] = now
			case (own == nil || own.Kind != snapshot.Dir) && !used[e.Path]:
				delete(entries, e.Path)
			}
		}
	}
	for i := range w.final.Entries {
		e := &w.final.Entries[i]
		if _, ok := entries[e.Path]; ok || e.Kind != snapshot.Dir || m.base.Find(e.Path) != nil || m.blocked(e.Path, entries) {
			continue
		}
		entries[e.Path] = *e
	}
	for p, e := range entries { // folders that gave way to a file
		if up := path.Dir(p); up != "." && e.Kind == snapshot.Dir && m.blocked(p, entries) {
			delete(entries, p)
		}
	}
}

// blocked reports whether something else than a folder stands above a path.
func (m *teamMerge) blocked(p string, entries map[string]snapshot.Entry) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if e, ok := entries[dir]; ok && e.Kind != snapshot.Dir {
			return true
		}
	}
	return false
}
