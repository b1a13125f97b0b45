// Package frozen keeps states of an origin's tree that nobody changes any more: the
// layers on which overlays stand. A state is a copy of the whole tree, made once, and
// over it layers that hold what has changed since; whoever has the origin as it is now
// gets a state in the time of one look at it.
//
//	<project>/base/<n>/tree         a layer: all of the tree, or what differs from the layer below
//	<project>/base/<n>/layers       the numbers of the layers of this state, the topmost first
//	<project>/base/<n>/origin.snap  the origin as it was looked at
//	<project>/base/<n>/base.snap    what the layers show, with their stat data; it comes last
//	<project>/base/<n>/checked      when all of it was last looked at, see intact
//	<project>/base/looks            how often the origin was looked at, see looks
//
// Nothing that a state shows is written after that.
package frozen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/dirfd"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Options say what of what is frozen.
type Options struct {
	Dir    string // the folder of the states
	Top    string // the origin
	Format snapshot.Format
	Skip   snapshot.Skip // what is no part of a state
	Trash  string        // takes what nobody uses any more
	Leave  Leave         // nil: nothing else
	Meter  *treecopy.Meter
	Used   Used // says what is in use, once a new state was made; nil: all of it
}

// State is an origin's tree as it was.
type State struct {
	Number       int
	Lower        []string           // its layers, the topmost first
	Origin, Base *snapshot.Snapshot // the origin, and what the layers show, with content ids
	Unread       []snapshot.Problem // what could not be read, and is in no layer
	Bad          error              // what somebody else did to a state that this one stands in for, or nil
}

// Used returns the layers that somebody uses, as they stand in State.Lower, and whether
// that is known of everybody.
type Used func() (layers map[string]bool, known bool)

// Leave returns what of the origin comes into no state, each path by itself; nil for
// nothing.
type Leave func(origin *snapshot.Snapshot) (map[superqode.RelPath]bool, error)

// mostLayers is how many layers a state has at most: the kernel looks into each for a
// name that is in none.
const mostLayers = 8

// Current returns the state of the origin as it is now, and makes it where there is none.
// The caller keeps Sweep away from it.
func Current(ctx context.Context, opt Options) (_ *State, err error) {
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, err
	}
	asked := readLooks(opt.Dir)
	unlock, err := lockfile.Lock(ctx, filepath.Join(opt.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	old, next, bad, err := newest(opt.Dir)
	if err != nil {
		return nil, err
	}
	last := readLooks(opt.Dir)
	if old != nil && bad == nil && last.begun > asked.begun && last.state == old.Number {
		if left, err := opt.left(old.Origin); err != nil || len(left) == 0 {
			return old, err
		}
	}
	this := looks{begun: last.begun + 1}
	counted := this.write(opt.Dir) == nil
	st, err := opt.current(ctx, old, next, bad)
	if err == nil && counted && len(st.Unread) == 0 {
		this.state = st.Number
		_ = this.write(opt.Dir) // else all look for themselves
	}
	return st, err
}

// newest returns the newest state that is whole, nil where there is none, the number of
// the next one, and what somebody else did to one that would be the newest.
func newest(dir string) (old *State, next int, bad, err error) {
	list, err := numbers(dir)
	next = 1
	for _, n := range slices.Backward(list) { // one that cannot be read is not believed
		if next = max(next, n+1); old != nil {
			break
		}
		st, err := load(dir, n)
		if err == nil {
			if err = st.intact(); err == nil {
				old = st
			}
		}
		if bad == nil && (errors.Is(err, errChanged) || errors.Is(err, snapshot.ErrCorrupt)) {
			bad = err
		}
	}
	return old, next, bad, err
}

// left is what of the origin comes into no state.
func (opt Options) left(origin *snapshot.Snapshot) (map[superqode.RelPath]bool, error) {
	if opt.Leave == nil {
		return nil, nil
	}
	return opt.Leave(origin)
}

// current looks at the origin. The caller has the lock.
func (opt Options) current(ctx context.Context, old *State, next int, bad error) (*State, error) {
	now, unread, err := opt.look(ctx, old)
	if err != nil {
		return nil, err
	}
	left, err := opt.left(now)
	if err != nil {
		return nil, err
	}
	want := now.Only(func(e *snapshot.Entry) bool { return !left[e.Path] })
	st := &State{Number: next, Origin: now, Unread: unread, Bad: bad}
	var changed []snapshot.Entry
	var gone []superqode.RelPath
	if old != nil {
		var shut []snapshot.Problem
		if changed, gone, shut = differences(old, want, left); len(changed)+len(gone) == 0 {
			old.Unread, old.Bad = append(unread, shut...), bad
			if len(left) > 0 { // it may have changed
				old.Origin = now
			}
			return old, nil
		}
	}
	if old == nil || len(old.Lower) >= mostLayers || len(changed) > len(want.Entries)/4 {
		err = opt.make(ctx, st, want)
	} else {
		err = opt.makeDelta(ctx, st, old, want, changed, gone)
	}
	if err == nil {
		err = opt.sweep(st.Lower)
	}
	return st, err
}

// Sweep removes the states that nobody uses, but for the newest; with all that one, too.
func Sweep(ctx context.Context, opt Options, all bool) (err error) {
	if !atomicfile.Exists(opt.Dir) {
		return nil
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(opt.Dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	list, err := numbers(opt.Dir)
	if err != nil || len(list) == 0 || all {
		return errors.Join(err, opt.sweep(nil))
	}
	newest, err := load(opt.Dir, list[len(list)-1])
	if err != nil {
		return opt.sweep(nil)
	}
	return opt.sweep(newest.Lower)
}

// sweep removes what is neither used nor one of the layers to keep. The caller has the lock.
func (opt Options) sweep(keep []string) error {
	if opt.Used == nil {
		return nil
	}
	used, known := opt.Used()
	list, err := numbers(opt.Dir)
	for _, n := range list {
		dir := filepath.Join(opt.Dir, strconv.Itoa(n))
		if tree := filepath.Join(dir, "tree"); known && !used[tree] && !slices.Contains(keep, tree) {
			err = errors.Join(err, trash.Put(dir, opt.Trash))
		}
	}
	return err
}

func (opt Options) look(ctx context.Context, old *State) (*snapshot.Snapshot, []snapshot.Problem, error) {
	scan := snapshot.ScanOptions{Format: opt.Format, Contents: snapshot.StatOnly, Skip: opt.Skip}
	if old != nil {
		scan.Previous, scan.Known = old.Origin, old.Origin.Known()
	}
	now, unread, err := snapshot.Scan(ctx, opt.Top, scan)
	if err != nil {
		return nil, nil, fmt.Errorf("look at %s: %w", opt.Top, err)
	}
	if old == nil {
		return now, unread, nil
	}
	doubtful := now.With(nil) // changed right before the last look, or right after it
	for a, b := range snapshot.Join(old.Origin.Entries, now.Entries) {
		if a != nil && b != nil && b.Kind == snapshot.File && b.ID.IsZero() && !a.ID.IsZero() && a.SameState(b) {
			doubtful.Entries = append(doubtful.Entries, *b)
		}
	}
	if len(doubtful.Entries) == 0 {
		return now, unread, nil
	}
	problems, err := snapshot.HashMissing(ctx, doubtful)
	for e, b := range snapshot.Join(doubtful.Entries, now.Entries) {
		if e != nil && b != nil {
			b.ID = e.ID
		}
	}
	return now, append(unread, problems...), err
}

// differences lists what of now, which lacks what is left out, is not as it was. A file
// whose content nobody vouches for is not, but for one that could not be read then and
// cannot be now: that is shut.
func differences(then *State, now *snapshot.Snapshot, left map[superqode.RelPath]bool) (changed []snapshot.Entry, gone []superqode.RelPath, shut []snapshot.Problem) {
	shown := then.Base.Entries
	for a, b := range snapshot.Join(then.Origin.Entries, now.Entries) {
		path := cmp.Or(b, a).Path
		for len(shown) > 0 && shown[0].Path < path {
			shown = shown[1:]
		}
		had := len(shown) > 0 && shown[0].Path == path
		if a != nil && b != nil && !had && b.Kind == snapshot.File && a.ID.IsZero() && b.ID.IsZero() && a.SameState(b) {
			if err := unix.Access(path.In(now.Root), unix.R_OK); err != nil {
				shut = append(shut, snapshot.Problem{Path: path, Err: err})
				continue
			}
		}
		switch {
		case b == nil:
			if had || !left[path] {
				gone = append(gone, path)
			}
		case a == nil, a.Kind != b.Kind, a.Perm != b.Perm, a.Link != b.Link, b.Kind == snapshot.File && (b.ID.IsZero() || a.ID != b.ID),
			a.Stat.UID != b.Stat.UID || a.Stat.GID != b.Stat.GID, b.Kind != snapshot.Dir && !a.SameState(b),
			!had && (b.Kind == snapshot.Dir || b.Kind == snapshot.Link): // it was left out
			changed = append(changed, *b)
		}
	}
	return changed, gone, shut
}

// make makes a state of the whole tree.
func (opt Options) make(ctx context.Context, st *State, src *snapshot.Snapshot) error {
	dir, err := opt.begin(st.Number)
	if err != nil {
		return err
	}
	base, problems, err := treecopy.Copy(ctx, src, filepath.Join(dir, "tree"), treecopy.CopyOptions{Meter: opt.Meter})
	if err != nil {
		return errors.Join(err, trash.Put(dir, opt.Trash))
	}
	st.Unread = append(st.Unread, problems...)
	st.Base = base
	return opt.finish(ctx, st, nil)
}

// makeDelta makes a state that stands on another one.
func (opt Options) makeDelta(ctx context.Context, st, old *State, want *snapshot.Snapshot, changed []snapshot.Entry, gone []superqode.RelPath) error {
	dir, err := opt.begin(st.Number)
	if err != nil {
		return err
	}
	if err := opt.delta(ctx, filepath.Join(dir, "tree"), st, old, want, changed, gone); err != nil {
		return errors.Join(err, trash.Put(dir, opt.Trash))
	}
	below, err := layersOf(opt.Dir, old.Number)
	if err != nil {
		return err
	}
	return opt.finish(ctx, st, below)
}

// Over makes a state that stands on old and is nobody else's, in the folder tree, which
// is not there yet: changed, as it lies below want.Root, and nothing at the paths of gone,
// make it want. Nothing is asked of opt but Meter.
func Over(ctx context.Context, opt Options, tree string, old *State, want *snapshot.Snapshot, changed []snapshot.Entry, gone []superqode.RelPath) (*State, error) {
	st := &State{Origin: old.Origin, Lower: slices.Insert(slices.Clone(old.Lower), 0, tree), Unread: old.Unread}
	err := Mkdir(tree)
	if err == nil {
		err = opt.delta(ctx, tree, st, old, want, changed, gone)
	}
	if err == nil {
		err = errors.Join(st.Base.Settle(ctx), treecopy.Sync(tree))
	}
	return st, err
}

// delta fills a layer over old, and sets what both show then.
func (opt Options) delta(ctx context.Context, tree string, st, old *State, want *snapshot.Snapshot, changed []snapshot.Entry, gone []superqode.RelPath) error {
	src := want.With(withFolders(want, changed, gone))
	made, problems, err := treecopy.Copy(ctx, src, tree, treecopy.CopyOptions{Meter: opt.Meter})
	if err != nil {
		return err
	}
	lost := map[superqode.RelPath]bool{}
	hide := slices.Clone(gone)
	for _, p := range gone {
		lost[p] = true
	}
	for _, e := range changed {
		if lost[e.Path] = true; old.Base.Find(e.Path) != nil { // where it cannot be copied, what it was must not show
			hide = append(hide, e.Path)
		}
	}
	if err := markGone(tree, old.Base, made, hide); err != nil {
		return err
	}
	st.Unread = append(st.Unread, problems...)
	st.Base = made.With(nil)
	for was, e := range snapshot.Join(old.Base.Entries, made.Entries) {
		switch {
		case e != nil:
			st.Base.Entries = append(st.Base.Entries, *e)
		case !lost[was.Path]:
			st.Base.Entries = append(st.Base.Entries, *was)
		}
	}
	return nil
}

// withFolders returns what changed with the folders that it, and what is gone, lie in.
func withFolders(now *snapshot.Snapshot, changed []snapshot.Entry, gone []superqode.RelPath) []snapshot.Entry {
	list := slices.Clone(changed)
	seen := map[superqode.RelPath]bool{}
	for _, e := range changed {
		seen[e.Path] = true
	}
	add := func(path superqode.RelPath) {
		for p := path.Parent(); p != "" && !seen[p]; p = p.Parent() {
			seen[p] = true
			if e := now.Find(p); e != nil && e.Kind == snapshot.Dir {
				list = append(list, *e)
			}
		}
	}
	for _, e := range changed {
		add(e.Path)
	}
	for _, p := range gone {
		add(p)
	}
	slices.SortFunc(list, snapshot.ByPath)
	return list
}

// markGone leaves whiteouts where something was that is no more, and marks folders that
// took the place of something else.
func markGone(tree string, old, made *snapshot.Snapshot, gone []superqode.RelPath) (err error) {
	at, err := openLayer(tree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	times := map[superqode.RelPath]int64{}
	for _, p := range gone {
		dir, name := dirfd.Split(p)
		parent := made.Find(dir)
		if dir != "" && (parent == nil || parent.Kind != snapshot.Dir) || made.Find(p) != nil {
			continue // gone with the folder
		}
		mark := func(in string) error { return unix.Mknod(in+"/"+name, unix.S_IFCHR, 0) }
		if err := at.write(dir, mark); err != nil {
			return fmt.Errorf("mark %s as deleted: %w", p.In(tree), err)
		}
		if parent != nil {
			times[dir] = parent.Stat.Mtime
		}
	}
	for i := range made.Entries {
		e := &made.Entries[i]
		if was := old.Find(e.Path); e.Kind == snapshot.Dir && was != nil && was.Kind != snapshot.Dir {
			mark := func(in string) error { return unix.Setxattr(in, opaque, []byte("y"), 0) }
			if err := at.write(e.Path, mark); err != nil {
				return fmt.Errorf("mark %s as new: %w", e.Path.In(tree), err)
			}
		}
	}
	for path, mtime := range times {
		dir, err := at.folder(path)
		t := unix.NsecToTimespec(mtime)
		if err == nil {
			err = unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{t, t}, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write calls do with a folder while its owner may write to it; its mode is afterwards
// what it was.
func (l *layer) write(path superqode.RelPath, do func(dir string) error) error {
	dir, err := l.folder(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode()&0o300 == 0o300 {
		return do(dir)
	}
	return errors.Join(os.Chmod(dir, info.Mode()|0o300), do(dir), os.Chmod(dir, info.Mode()))
}

// opaque is the attribute of a folder below which nothing of the lower layers shows
// (overlayfs, mount option userxattr).
const opaque = "user.overlay.opaque"

func (opt Options) begin(n int) (string, error) {
	dir := filepath.Join(opt.Dir, strconv.Itoa(n))
	if err := Mkdir(dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(filepath.Join(dir, "tree"), 0o700)
}

// Mkdir makes a folder for layers or what is written over them. Where the folder above
// gives its group to all that is made in it, this one does not: an overlay of a user
// writes nothing of a group that is not the user's own (EOVERFLOW).
func Mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Chown(dir, -1, os.Getegid()), os.Chmod(dir, 0o700))
}

// finish writes down what the state is.
func (opt Options) finish(ctx context.Context, st *State, below []int) error {
	dir := filepath.Join(opt.Dir, strconv.Itoa(st.Number))
	if err := st.Base.Settle(ctx); err != nil {
		return err
	}
	for e, b := range snapshot.Join(st.Origin.Entries, st.Base.Entries) {
		if e != nil && b != nil && e.Kind == snapshot.File && e.ID.IsZero() && b.LooksCopied(e) {
			e.ID = b.ID
		}
	}
	var text strings.Builder
	for _, n := range append([]int{st.Number}, below...) {
		fmt.Fprintln(&text, n)
		st.Lower = append(st.Lower, filepath.Join(opt.Dir, strconv.Itoa(n), "tree"))
	}
	if err := atomicfile.Loose.WriteFunc(filepath.Join(dir, "layers"), 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, text.String())
		return err
	}); err != nil {
		return err
	}
	origin, shown := filesOf(dir)
	if err := st.Origin.SaveAs(origin, atomicfile.Loose); err != nil {
		return err
	}
	failpoint.Hit("frozen.made")
	if err := treecopy.Sync(dir); err != nil { // base.snap vouches for all of it
		return err
	}
	if err := st.Base.Save(shown); err != nil {
		return err
	}
	st.Origin.File, st.Base.File = origin, shown
	return nil
}

// filesOf are the files that hold what was looked at, and what the layers show.
func filesOf(dir string) (origin, shown string) {
	return filepath.Join(dir, "origin.snap"), filepath.Join(dir, "base.snap")
}

func load(dir string, n int) (*State, error) {
	layers, err := layersOf(dir, n)
	if err != nil {
		return nil, err
	}
	st := &State{Number: n}
	for _, n := range layers {
		tree := filepath.Join(dir, strconv.Itoa(n), "tree")
		if !atomicfile.Exists(tree) {
			return nil, fmt.Errorf("%s is gone: %w", tree, fs.ErrNotExist)
		}
		st.Lower = append(st.Lower, tree)
	}
	origin, shown := filesOf(filepath.Join(dir, strconv.Itoa(n)))
	var both errgroup.Group
	both.Go(func() (err error) { st.Origin, err = loadFile(origin); return err })
	both.Go(func() (err error) { st.Base, err = loadFile(shown); return err })
	return st, both.Wait()
}

func loadFile(path string) (*snapshot.Snapshot, error) {
	sn, err := snapshot.Load(path)
	if err == nil {
		sn.File = path
	}
	return sn, err
}

func layersOf(dir string, n int) (list []int, err error) {
	data, err := atomicfile.Read(filepath.Join(dir, strconv.Itoa(n), "layers"))
	if err != nil {
		return nil, err
	}
	for word := range strings.FieldsSeq(string(data)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func numbers(dir string) (list []int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, err
}
