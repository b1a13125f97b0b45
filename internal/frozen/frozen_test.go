package frozen_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/frozen"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"golang.org/x/sync/errgroup"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// shown lists what an overlay of layers shows, in the way of the kernel: the topmost name
// counts, a whiteout deletes, an opaque folder hides what is below it.
func shown(t *testing.T, lower []string) map[superqode.RelPath]snapshot.Entry {
	t.Helper()
	base := &snapshot.Snapshot{Format: snapshot.SHA1}
	for i := len(lower) - 1; i >= 0; i-- {
		next, problems, err := frozen.Look(t.Context(), lower[i], base, snapshot.ScanOptions{Format: snapshot.SHA1})
		if must(t, err); len(problems) > 0 {
			t.Fatal(problems)
		}
		base = next
	}
	out := map[superqode.RelPath]snapshot.Entry{}
	for _, e := range base.Entries {
		out[e.Path] = e
	}
	return out
}

// TestStates holds the law of this package: after any change the current state's layers
// show the origin, base says what they show, and an old state stays what it was.
func TestStates(t *testing.T) {
	t.Parallel()
	top, dir := t.TempDir(), t.TempDir()
	opt := frozen.Options{Dir: filepath.Join(dir, "base"), Top: top, Format: snapshot.SHA1, Trash: filepath.Join(dir, "trash")}
	r := rand.New(rand.NewPCG(1, 2))
	var first *frozen.State
	layers := 0
	left := ""
	opt.Leave = func(now *snapshot.Snapshot) (map[superqode.RelPath]bool, error) {
		out := map[superqode.RelPath]bool{}
		for _, e := range now.Entries {
			out[e.Path] = left != "" && superqode.Within(e.Path, superqode.RelPath(left))
		}
		return out, nil
	}
	for round := range 60 {
		left = []string{"", "a", "b/c"}[round/7%3]
		for range r.IntN(4) {
			change(t, r, top)
		}
		st, err := frozen.Current(t.Context(), opt)
		must(t, err)
		again, err := frozen.Current(t.Context(), opt)
		if must(t, err); again.Number != st.Number {
			t.Fatalf("round %d: nothing was changed, and state %d became %d", round, st.Number, again.Number)
		}
		layers = max(layers, len(st.Lower))
		origin, _, err := snapshot.Scan(t.Context(), top, snapshot.ScanOptions{Format: snapshot.SHA1})
		must(t, err)
		if then, now := st.Origin.Entries, origin.Entries; !slices.EqualFunc(then, now, func(a, b snapshot.Entry) bool { return a.Path == b.Path && a.SameState(&b) }) {
			t.Fatalf("round %d: the origin was not remembered as it is", round)
		}
		origin = origin.Only(func(e *snapshot.Entry) bool { return left == "" || !superqode.Within(e.Path, superqode.RelPath(left)) })
		agree(t, round, origin, shown(t, st.Lower))
		agree(t, round, origin, index(st.Base))
		if first == nil {
			first = st
		}
	}
	if layers < 3 {
		t.Errorf("no more than %d layers", layers)
	}
	agree(t, -1, first.Base, shown(t, first.Lower))
	opt.Leave = nil
	opt.Used = func() (map[string]bool, bool) { return map[string]bool{first.Lower[0]: true}, true }
	must(t, frozen.Sweep(t.Context(), opt, true))
	trees, err := filepath.Glob(filepath.Join(opt.Dir, "*", "tree"))
	if must(t, err); len(trees) != 1 || trees[0] != first.Lower[0] {
		t.Errorf("left of the states: %q", trees)
	}
}

func index(sn *snapshot.Snapshot) map[superqode.RelPath]snapshot.Entry {
	out := map[superqode.RelPath]snapshot.Entry{}
	for _, e := range sn.Entries {
		out[e.Path] = e
	}
	return out
}

func agree(t *testing.T, round int, want *snapshot.Snapshot, got map[superqode.RelPath]snapshot.Entry) {
	t.Helper()
	for i := range want.Entries {
		e := &want.Entries[i]
		o, ok := got[e.Path]
		if !ok || !e.Same(&o) || e.Kind == snapshot.File && e.Stat.Mtime != o.Stat.Mtime {
			t.Fatalf("round %d: %s is %+v, want %+v", round, e.Path, o, *e)
		}
		delete(got, e.Path)
	}
	if len(got) > 0 {
		t.Fatalf("round %d: also there: %v", round, got)
	}
}

// change does something to the origin, as a user would.
func change(t *testing.T, r *rand.Rand, top string) {
	t.Helper()
	name := func() string {
		p := top
		for range 1 + r.IntN(3) {
			p = filepath.Join(p, fmt.Sprintf("%c", 'a'+r.IntN(3)))
		}
		return p
	}
	at := name()
	switch r.IntN(7) {
	case 0:
		_ = os.RemoveAll(at) // below a file there is nothing
	case 1:
		_ = os.Rename(at, name()) // where it cannot be moved there, it stays
	case 2:
		_ = os.RemoveAll(at)
		_ = os.Symlink(fmt.Sprint(r.Int()), at)
	case 3:
		_ = os.Chmod(at, os.FileMode(0o700|r.IntN(0o100)))
	case 4:
		_ = os.MkdirAll(at, 0o755)
	default:
		if os.MkdirAll(filepath.Dir(at), 0o755) == nil {
			_ = os.WriteFile(at, fmt.Append(nil, r.Int()), 0o644)
		}
	}
}

// TestHalfMade holds that a state that a crash left half made is none, and that what a
// state lost is not believed.
func TestHalfMade(t *testing.T) {
	t.Parallel()
	top, dir := t.TempDir(), t.TempDir()
	opt := frozen.Options{Dir: filepath.Join(dir, "base"), Top: top, Format: snapshot.SHA1, Trash: filepath.Join(dir, "trash"),
		Used: func() (map[string]bool, bool) { return nil, true }}
	must(t, os.WriteFile(filepath.Join(top, "f"), []byte("1"), 0o600))
	a, err := frozen.Current(t.Context(), opt)
	must(t, err, os.MkdirAll(filepath.Join(opt.Dir, "7", "tree"), 0o700))
	b, err := frozen.Current(t.Context(), opt)
	if must(t, err); b.Number != a.Number {
		t.Errorf("state %d became %d", a.Number, b.Number)
	}
	must(t, os.WriteFile(filepath.Join(top, "g"), []byte("1"), 0o600), os.Truncate(a.Base.File, 20))
	c, err := frozen.Current(t.Context(), opt)
	if must(t, err); c.Number != 8 || len(c.Lower) != 1 {
		t.Errorf("state %d with the layers %q", c.Number, c.Lower)
	}
	if left, err := os.ReadDir(opt.Dir); err != nil || len(left) != 3 { // and the lock, and looks
		t.Errorf("left: %v (%v)", left, err)
	}
}

// TestChangedByHand holds that a state is not believed any more once somebody has changed
// what lies in one of its layers.
func TestChangedByHand(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(tree string) error{
		"written to":       func(tree string) error { return os.WriteFile(tree+"/d/f", []byte("2"), 0o600) },
		"its mode":         func(tree string) error { return os.Chmod(tree+"/d/f", 0o640) },
		"removed":          func(tree string) error { return os.Remove(tree + "/d/f") },
		"added":            func(tree string) error { return os.WriteFile(tree+"/d/g", nil, 0o600) },
		"added at the top": func(tree string) error { return os.Mkdir(tree+"/g", 0o700) },
		"folder's mode":    func(tree string) error { return os.Chmod(tree+"/d", 0o755) },
		"replaced, as old": func(tree string) error {
			return errors.Join(os.WriteFile(tree+"/x", []byte("2"), 0o600), os.Chtimes(tree+"/x", time.Unix(1, 0), time.Unix(1, 0)), os.Rename(tree+"/x", tree+"/d/f"))
		},
		"all of it removed": os.RemoveAll,
	} {
		for layer := range 2 {
			top, dir := t.TempDir(), t.TempDir()
			opt := frozen.Options{Dir: filepath.Join(dir, "base"), Top: top, Format: snapshot.SHA1, Trash: filepath.Join(dir, "trash")}
			must(t, os.Mkdir(top+"/d", 0o700), os.WriteFile(top+"/d/f", []byte("1"), 0o600), os.WriteFile(top+"/e", []byte("1"), 0o600))
			for i := range 30 { // so that what changes is little
				must(t, os.WriteFile(fmt.Sprint(top, "/", i), nil, 0o600))
			}
			_, err := frozen.Current(t.Context(), opt)
			must(t, err, os.WriteFile(top+"/d/f", []byte("11"), 0o600), os.Chmod(top+"/d", 0o711))
			old, err := frozen.Current(t.Context(), opt)
			if must(t, err); len(old.Lower) != 2 {
				t.Fatalf("layers: %q", old.Lower)
			}
			time.Sleep(20 * time.Millisecond) // the kernel's clock of files ticks
			must(t, do(old.Lower[layer]))
			st, err := frozen.Current(t.Context(), opt)
			must(t, err)
			hidden := layer == 1 && slices.Contains([]string{"written to", "its mode"}, name) // by the layer above
			if stays := st.Number == old.Number; stays != hidden || !stays && slices.Contains(st.Lower, old.Lower[layer]) {
				t.Errorf("%s in layer %d: state %d stands on %q", name, layer, st.Number, st.Lower)
			}
			if told := st.Bad != nil; told == hidden && name != "all of it removed" {
				t.Errorf("%s in layer %d: %v", name, layer, st.Bad)
			}
		}
	}
}

// TestManyAsk holds that of many who ask at once not all look, and that each gets what was
// there when it asked.
func TestManyAsk(t *testing.T) {
	t.Parallel()
	const many = 12
	top, dir := t.TempDir(), t.TempDir()
	opt := frozen.Options{Dir: filepath.Join(dir, "base"), Top: top, Format: snapshot.SHA1, Trash: filepath.Join(dir, "trash")}
	_, err := frozen.Current(t.Context(), opt)
	must(t, err)
	fewer := false
	for round := range 12 {
		unlock, err := lockfile.Lock(t.Context(), filepath.Join(opt.Dir, "lock"))
		must(t, err)
		var group errgroup.Group
		for i := range many {
			group.Go(func() error {
				name := superqode.RelPath(fmt.Sprint("f", i))
				if i < round { // else it asks for what is there
					if err := os.WriteFile(name.In(top), fmt.Appendln(nil, round, i), 0o600); err != nil {
						return err
					}
				}
				st, err := frozen.Current(t.Context(), opt)
				if err != nil || i >= round {
					return err
				}
				data, err := os.ReadFile(name.In(st.Lower[slices.IndexFunc(st.Lower, func(l string) bool {
					_, err := os.Stat(name.In(l))
					return err == nil
				})]))
				if got := string(data); err == nil && got != fmt.Sprintln(round, i) {
					err = fmt.Errorf("round %d: %s is %q", round, name, got)
				}
				return err
			})
		}
		time.Sleep(50 * time.Millisecond) // most have asked; it matters to nothing but whether this test tries anything
		before := looks(t, opt.Dir)
		must(t, unlock(), group.Wait())
		fewer = fewer || looks(t, opt.Dir)-before < many
	}
	if !fewer {
		t.Error("each looked for itself")
	}
}

// looks is how many looks were begun.
func looks(t *testing.T, dir string) (n int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "looks"))
	must(t, err)
	_, err = fmt.Sscan(string(data), &n)
	must(t, err)
	return n
}
