package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestChangedWhileLooked holds that a batch tells the last state that it met:
// what came and went while it looked was never there.
func TestChangedWhileLooked(t *testing.T) {
	at := time.Now()
	for name, c := range map[string]struct {
		told  []string // folders end in "/"
		steps func(x *looked)
		want  []string
	}{
		"a new file goes": {steps: func(x *looked) {
			x.make("d/", "d/f")
			x.look("d")
			x.remove("d/f")
			x.look("d/f")
		}, want: []string{"created d/"}},
		"a new folder goes with all in it": {steps: func(x *looked) {
			x.make("d/", "d/e/", "d/e/f")
			x.look("d")
			x.remove("d")
			x.look("d")
		}},
		"a new file is written to": {steps: func(x *looked) {
			x.make("d/", "d/f")
			x.look("d")
			x.write("d/f", "longer")
			x.look("d/f")
		}, want: []string{"created d/", "created d/f"}},
		"a changed file goes with its folder": {told: []string{"d/", "d/f"}, steps: func(x *looked) {
			x.write("d/f", "longer")
			x.look("d/f")
			x.remove("d")
			x.look("d")
		}, want: []string{"deleted d/", "deleted d/f"}},
		"a file is replaced and goes": {told: []string{"f"}, steps: func(x *looked) {
			x.remove("f")
			x.make("f/", "f/g")
			x.look("f")
			x.remove("f")
			x.look("f")
		}, want: []string{"deleted f"}},
		"a moved file goes": {told: []string{"f"}, steps: func(x *looked) {
			x.t.Helper()
			x.rename("f", "g")
			x.look("f")
			x.look("g")
			x.remove("g")
			x.look("g")
		}, want: []string{"deleted f"}},
		"moved into a new folder, which is looked at first": {told: []string{"d/", "d/e/", "d/e/f"}, steps: func(x *looked) {
			x.make("y/")
			x.rename("d/e", "y/e")
			x.look("y")
		}, want: []string{"created y/", "moved d/e → y/e/", "moved d/e/f → y/e/f"}},
		"new in a new folder": {told: []string{"d/", "d/f"}, steps: func(x *looked) {
			x.make("y/", "y/f")
			x.look("y")
		}, want: []string{"created y/", "created y/f"}},
		"a second name in a new folder": {told: []string{"d/", "d/f"}, steps: func(x *looked) {
			x.make("y/")
			x.must(os.Link(filepath.Join(x.root, "d/f"), filepath.Join(x.root, "y/f")))
			x.look("y")
		}, want: []string{"created y/", "created y/f"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &looked{t: t, root: t.TempDir(), at: at}
			x.make(c.told...)
			st, err := os.Stat(x.root)
			if err != nil {
				t.Fatal(err)
			}
			e := newEngine(Options{Root: x.root}, st)
			x.batch = newBatch(e)
			x.batch.look("d", at)
			x.batch.look("f", at)
			x.batch = newBatch(e)
			c.steps(x)
			x.batch.strays()
			var got []string
			for _, ev := range x.batch.events() {
				got = append(got, line(ev))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// looked is a batch over a folder that changes meanwhile.
type looked struct {
	t     *testing.T
	root  string
	at    time.Time
	batch *batch
}

func (x *looked) look(rel string) { x.batch.look(rel, x.at) }

func (x *looked) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *looked) make(rel ...string) {
	for _, p := range rel {
		if p[len(p)-1] == '/' {
			x.must(os.Mkdir(filepath.Join(x.root, p), 0o755))
		} else {
			x.write(p, "1")
		}
	}
}

func (x *looked) write(rel, text string) {
	x.must(os.WriteFile(filepath.Join(x.root, rel), []byte(text), 0o644))
}
func (x *looked) remove(rel string) { x.must(os.RemoveAll(filepath.Join(x.root, rel))) }
func (x *looked) rename(old, rel string) {
	x.must(os.Rename(filepath.Join(x.root, old), filepath.Join(x.root, rel)))
}
