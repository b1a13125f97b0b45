package attribution

import (
	"maps"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Where one agent renames a folder and another one makes something new in it, the
// new file goes along, as it does in git's merge with merge.directoryRenames=true:
// left behind it would be in a folder that nobody has any more. A folder counts as
// renamed when nothing of the base is in it any more and most of its files that
// were renamed went to one and the same other folder. Where the file's new place
// is taken, or most went to two folders alike, it stays where it was made.

// movedBefore are the folders that agents before have renamed.
func (m *TeamMerge) movedBefore() map[superqode.RelPath]string {
	return merge.FolderMoves(m.moved, func(dir superqode.RelPath) bool {
		return !slices.ContainsFunc(m.Now.Below(dir), func(e snapshot.Entry) bool { return e.Kind != snapshot.Dir })
	})
}

// redirect puts what an agent has made in folders that agents before have renamed
// where these folders are now. Files too big for the store stay where they are:
// they are taken out of the agent's workspace by their names there.
func (m *TeamMerge) redirect(w *AgentWork, changes []merge.Change) []merge.Change {
	m.went = m.movedBefore()
	if len(m.went) == 0 {
		return changes
	}
	made := map[superqode.RelPath]bool{}
	for _, c := range changes {
		if c.New != nil {
			made[c.New.Path] = true
		}
	}
	out := slices.Clone(changes)
	for i := range out {
		c := &out[i]
		if c.New == nil || c.Old != nil && !c.Renamed() || c.New.IsLarge() {
			continue
		}
		to, ok := merge.Along(m.went, c.New.Path)
		if !ok || made[to] || m.Now.Find(to) != nil {
			continue
		}
		made[to] = true
		m.place(w, c.New.Path, to)
		fresh := *c.New
		fresh.Path = to
		c.New = &fresh
	}
	return out
}

// place remembers that a file which an agent made at one path is at another one.
func (m *TeamMerge) place(w *AgentWork, from, to superqode.RelPath) {
	m.placed[to] = from
	w.Notes = append(w.Notes,
		text.Printable(from)+" is merged as "+text.Printable(to)+", because its folder was renamed")
}

// follow takes what agents before made in folders along that this one has renamed.
func (m *TeamMerge) follow(w *AgentWork, steps []merge.Step, entries map[superqode.RelPath]snapshot.Entry) {
	renames := map[superqode.RelPath]superqode.RelPath{}
	for i := range steps {
		if st := &steps[i]; st.Renamed() && st.Put != nil && st.Remove != nil {
			renames[st.Old.Path] = st.Put.Path
		}
	}
	if len(renames) == 0 {
		return
	}
	moves := merge.FolderMoves(renames, func(dir superqode.RelPath) bool { return !m.holdsBase(dir, entries) })
	if len(moves) == 0 {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(entries)) {
		e := entries[p]
		to, ok := merge.Along(moves, p)
		if _, taken := entries[to]; !ok || taken || e.Kind == snapshot.Dir || e.IsLarge() || w.Final.Find(p) != nil ||
			m.blocked(to, entries) {
			continue
		}
		delete(entries, p)
		e.Path = to
		m.stand(w, e, entries)
		m.touched[to] = m.touched[p]
		delete(m.touched, p)
		m.place(w, p, to)
	}
}

// holdsBase reports whether something of the base is still in a folder.
func (m *TeamMerge) holdsBase(dir superqode.RelPath, entries map[superqode.RelPath]snapshot.Entry) bool {
	return slices.ContainsFunc(m.base.Below(dir), func(e snapshot.Entry) bool {
		now, ok := entries[e.Path]
		return ok && now.Kind != snapshot.Dir
	})
}

// stand puts an entry in its place, with the folders above.
func (m *TeamMerge) stand(w *AgentWork, e snapshot.Entry, entries map[superqode.RelPath]snapshot.Entry) {
	entries[e.Path] = e
	for dir := e.Path.Parent(); dir != ""; dir = dir.Parent() {
		if have, ok := entries[dir]; ok && have.Kind == snapshot.Dir {
			return
		}
		d := snapshot.Entry{Path: dir, Kind: snapshot.Dir, Perm: 0o755}
		if own := w.Final.Find(dir); own != nil && own.Kind == snapshot.Dir {
			d = *own
		}
		entries[dir] = d
	}
}
