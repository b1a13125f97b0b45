package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// both runs a test with the system's hints and with polling.
func both(t *testing.T, test func(t *testing.T, opt Options)) {
	t.Helper()
	t.Parallel()
	for name, poll := range map[string]time.Duration{"notify": 0, "poll": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			test(t, Options{Root: root, Poll: poll, Debounce: 30 * time.Millisecond, Ceiling: 300 * time.Millisecond})
		})
	}
}

// liveness is how long a busy machine may take for what merely has to happen.
const liveness = 2 * time.Minute

// watched is a watcher whose events are collected.
type watched struct {
	*Watcher
	t    *testing.T
	root string
	mu   sync.Mutex
	list []Event
	end  chan struct{}
}

func begin(t *testing.T, opt Options) *watched {
	t.Helper()
	w, err := Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	x := &watched{Watcher: w, t: t, root: opt.Root, end: make(chan struct{})}
	go func() {
		defer close(x.end)
		for e := range w.Events() {
			x.mu.Lock()
			x.list = append(x.list, e)
			x.mu.Unlock()
		}
	}()
	t.Cleanup(func() { <-x.end }) // the context has ended by then
	return x
}

func line(e Event) string {
	s := string(e.Type) + " "
	if e.Old != "" {
		s += e.Old + " → "
	}
	s += e.Path
	if e.Dir {
		s += "/"
	}
	return s
}

// sorted are the events so far.
func (x *watched) sorted() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for _, e := range x.list {
		out = append(out, line(e))
	}
	slices.Sort(out)
	return out
}

// want waits until the events are these, which must be all, and forgets them.
func (x *watched) want(events ...string) {
	x.t.Helper()
	slices.Sort(events)
	for wait := time.Now().Add(liveness); ; time.Sleep(2 * time.Millisecond) {
		if got := x.sorted(); slices.Equal(got, events) {
			break
		} else if time.Now().After(wait) || len(got) > len(events) {
			x.t.Fatalf("got  %q\nwant %q", got, events)
		}
	}
	time.Sleep(60 * time.Millisecond) // nothing more may come
	if got := x.sorted(); !slices.Equal(got, events) {
		x.t.Fatalf("got  %q\nwant %q", got, events)
	}
	x.mu.Lock()
	x.list = nil
	x.mu.Unlock()
}

func (x *watched) write(name, text string) {
	x.t.Helper()
	full := filepath.Join(x.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		x.t.Fatal(err)
	}
}

func (x *watched) do(errs ...error) {
	x.t.Helper()
	if err := errors.Join(errs...); err != nil {
		x.t.Fatal(err)
	}
}

func (x *watched) path(name string) string { return filepath.Join(x.root, name) }

func TestEvents(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		x := &watched{t: t, root: opt.Root}
		x.write("old", "1")
		x.write("dir/kept", "1")
		x.write("dir/sub/deep", "1")
		x = begin(t, opt)
		x.want()
		x.write("new", "1")
		x.want("created new")
		x.write("new", "12")
		x.want("modified new")
		x.do(os.Chmod(x.path("new"), 0o600))
		x.want("modified new")
		x.do(os.Rename(x.path("new"), x.path("newer")))
		x.want("moved new → newer")
		x.do(os.Remove(x.path("newer")))
		x.want("deleted newer")
		x.write("a/b/c", "1")
		x.want("created a/", "created a/b/", "created a/b/c")
		x.write("a/b/d", "1")
		x.want("created a/b/d")
		x.do(os.Rename(x.path("a"), x.path("z")))
		x.want("moved a → z/", "moved a/b → z/b/", "moved a/b/c → z/b/c", "moved a/b/d → z/b/d")
		x.write("z/b/c", "changed")
		x.want("modified z/b/c")
		x.do(os.Mkdir(x.path("y"), 0o755), os.Rename(x.path("z/b"), x.path("y/b")))
		x.want("created y/", "moved z/b → y/b/", "moved z/b/c → y/b/c", "moved z/b/d → y/b/d")
		x.write("y/b/c", "once more")
		x.want("modified y/b/c")
		x.do(os.RemoveAll(x.path("y")))
		x.want("deleted y/", "deleted y/b/", "deleted y/b/c", "deleted y/b/d")
		x.do(os.Remove(x.path("old")), os.Mkdir(x.path("old"), 0o755))
		x.want("created old/", "deleted old")
		x.do(os.Rename(x.path("dir/sub"), x.path("dir/bus")))
		x.want("moved dir/sub → dir/bus/", "moved dir/sub/deep → dir/bus/deep")
	})
}

// TestEditorSaves holds that the ways in which editors save are one modification.
func TestEditorSaves(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		x := &watched{t: t, root: opt.Root}
		x.write("f", "1")
		x = begin(t, opt)
		x.write(".f.tmp123", "12")
		x.do(os.Rename(x.path(".f.tmp123"), x.path("f")))
		x.want("modified f")
		x.do(os.Rename(x.path("f"), x.path("f~"))) // vim: away, write anew, drop the old one
		x.write("f", "123")
		x.do(os.Remove(x.path("f~")))
		x.want("modified f")
		x.write("4913", "")
		x.do(os.Remove(x.path("4913")))
		x.want()
	})
}

func TestIgnored(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		opt.Ignore = []string{"node_modules/**", "*.pyc", "build/"}
		x := &watched{t: t, root: opt.Root}
		x.write("node_modules/a/b", "1")
		x.write(".git/HEAD", "1")
		x = begin(t, opt)
		x.write("node_modules/a/b", "12")
		x.write("node_modules/c/d", "12")
		x.write("x.pyc", "1")
		x.write("deep/y.pyc", "1")
		x.write(".git/index", "1")
		x.write("sub/.git/index", "1")
		x.write("sub/.git/deep/er", "1")
		x.write("build/out", "1")
		x.write("seen", "1")
		x.want("created deep/", "created seen", "created sub/")
	})
}

func TestNames(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		x := begin(t, opt)
		names := []string{"new\nline", "\xff\xfe", "-dash", " space ", "tab\t", "日本", "a:1-2", strings.Repeat("n", 255)}
		var want []string
		for _, n := range names {
			x.write(n, "1")
			x.write("d"+n[1:]+"/in", "1")
			want = append(want, "created "+n, "created d"+n[1:]+"/", "created d"+n[1:]+"/in")
		}
		x.want(want...)
	})
}

// TestLinks holds that links are told of and not followed.
func TestLinks(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		outside := t.TempDir()
		x := begin(t, opt)
		x.do(os.Symlink(outside, x.path("out")), os.Symlink(".", x.path("self")), syscall.Mkfifo(x.path("fifo"), 0o600))
		x.want("created fifo", "created out", "created self")
		x.do(os.WriteFile(filepath.Join(outside, "f"), nil, 0o600))
		x.want()
		x.do(os.Remove(x.path("out")), os.Symlink("elsewhere", x.path("out")))
		x.want("modified out")
	})
}

// TestBusyFile holds that a file that is never quiet is reported again and again.
func TestBusyFile(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		x := begin(t, opt)
		f, err := os.Create(x.path("busy"))
		x.do(err)
		defer f.Close()
		for wait := time.Now().Add(liveness); len(x.sorted()) < 3; {
			if time.Now().After(wait) {
				t.Fatalf("%q", x.sorted())
			}
			fmt.Fprintln(f, "more")
			time.Sleep(time.Millisecond)
		}
		if got := x.sorted(); got[0] != "created busy" || got[1] != "modified busy" {
			t.Errorf("%q", got)
		}
	})
}

// TestMany creates many files and folders at once, from several goroutines.
func TestMany(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		const writers, each = 4, 2500
		x := begin(t, opt)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					x.write(fmt.Sprintf("w%d/%d/%d/f%d", w, i%10, i%7, i), "1")
				}
			})
		}
		wg.Wait()
		files := func() int {
			n := 0
			for _, l := range x.sorted() {
				if !strings.HasSuffix(l, "/") && strings.HasPrefix(l, "created ") {
					n++
				}
			}
			return n
		}
		for wait := time.Now().Add(liveness); files() < writers*each; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(wait) {
				t.Fatalf("%d of %d files", files(), writers*each)
			}
		}
		seen := map[string]bool{}
		for _, l := range x.sorted() {
			if seen[l] {
				t.Errorf("%s was told twice", l)
			}
			seen[l] = true
		}
	})
}

// TestRandom plays random changes; what the events tell, applied to what was
// there, is what is there in the end.
func TestRandom(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		x := begin(t, opt)
		churn(t, x.root, 300)
		for wait := time.Now().Add(liveness); ; time.Sleep(20 * time.Millisecond) {
			got, want := x.replay(), tree(t, x.root)
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(wait) {
				t.Fatalf("got  %q\nwant %q", got, want)
			}
		}
	})
}

// replay is what must be there if the events are right.
func (x *watched) replay() []string {
	there := map[string]bool{}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.list {
		switch e.Type {
		case Deleted:
			delete(there, e.Path)
		case Moved:
			delete(there, e.Old)
			there[e.Path] = true
		default:
			there[e.Path] = true
		}
	}
	var out []string
	for p := range there {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

func TestRootGone(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		opt.Root = filepath.Join(opt.Root, "root")
		x := &watched{t: t, root: opt.Root}
		x.write("a/b", "1")
		x = begin(t, opt)
		x.do(os.RemoveAll(opt.Root))
		<-x.end
		if got := x.sorted(); !slices.Equal(got, []string{"deleted a/", "deleted a/b"}) {
			t.Errorf("%q", got)
		}
		if err := x.Err(); !errors.Is(err, ErrRootGone) {
			t.Error(err)
		}
	})
}

// TestLimit holds that polling takes over where the system's limit is reached, at
// the start and later, and that nothing is lost by it.
func TestLimit(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"at the start": 1, "later": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var warned []string
			opt := Options{Root: t.TempDir(), Debounce: 20 * time.Millisecond, limit: limit, Warn: func(s string) {
				mu.Lock()
				warned = append(warned, s)
				mu.Unlock()
			}}
			x := &watched{t: t, root: opt.Root}
			x.write("a/f", "1")
			x = begin(t, opt)
			x.write("b/f", "1")
			x.write("c/d/e", "1")
			x.write("a/f", "12")
			x.want("created b/", "created b/f", "created c/", "created c/d/", "created c/d/e", "modified a/f")
			mu.Lock()
			defer mu.Unlock()
			if len(warned) != 1 || !strings.Contains(warned[0], "sysctl fs.inotify.max_user_watches") {
				t.Errorf("%q", warned)
			}
		})
	}
}

// TestRescan loses hints and makes up for them.
func TestRescan(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	st, err := os.Lstat(root)
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(Options{Root: root, Debounce: DefaultDebounce, Ceiling: DefaultCeiling}, st)
	x := &watched{t: t, root: root}
	x.write("a", "1")
	x.write("b", "1")
	if err := e.sweep(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	x.write("a", "12")
	x.do(os.Remove(x.path("b")))
	x.write("d/c", "1")
	if err := e.sweep(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for p := range e.dirty {
		got = append(got, p)
	}
	slices.Sort(got)
	if fmt.Sprint(got) != "[a b d d/c]" {
		t.Error(got)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []Options{{Root: file}, {Root: file + "x"}, {Root: t.TempDir(), Ignore: []string{"[a"}}} {
		if _, err := Start(t.Context(), opt); err == nil {
			t.Errorf("%+v", opt)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w, err := Start(ctx, Options{Root: t.TempDir()}); err == nil {
		for range w.Events() {
			t.Error("an event")
		}
	}
}
