package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/workspace"
)

const secret = "the secret of the machine"

// outside returns a folder beside the workspace that holds a secret, and a check that
// nothing there was changed.
func outside(t testing.TB) (dir string, check func()) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600))
	return dir, func() {
		t.Helper()
		list, err := os.ReadDir(dir)
		must(t, err)
		data, err := os.ReadFile(filepath.Join(dir, "secret"))
		if err != nil || len(list) != 1 || string(data) != secret {
			t.Errorf("outside was changed: %v %q %v", list, data, err)
		}
	}
}

// TestLinks states what links do in a Dir and in the views of one.
func TestLinks(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]func(workspace.FS) workspace.FS{
		"Dir":    func(f workspace.FS) workspace.FS { return f },
		"Scoped": func(f workspace.FS) workspace.FS { return workspace.Scoped(f, workspace.WithAllowWrite("**")) },
		"Sub":    func(f workspace.FS) workspace.FS { return workspace.Sub(f, ".") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			away, unchanged := outside(t)
			s := suite{view(dir), context.Background()}
			s.put(t, "real/data")
			link := func(target, name string) { must(t, os.Symlink(target, filepath.Join(dir.Root(), name))) }
			link(away, "out")
			link(filepath.Join(away, "secret"), "outfile")
			link("../../../../../../../../"+away, "real/up")
			link(filepath.Join(away, "new"), "dangling-out")
			link("real", "in")
			link(filepath.Join(dir.Root(), "real"), "abs")
			link(filepath.Join(dir.Root(), "abs", "data"), "absfile")
			link("real/none", "dangling")
			link("circle", "circle")
			link("..", "real/root")
			for _, name := range []string{"out/secret", "outfile", "real/up/secret", "out", "dangling-out", "out/new", "real/root/out/secret", "real/root/../out"} {
				for op, err := range map[string]error{
					"read": second(s.Read(s.ctx, name)), "write": s.Write(s.ctx, name, []byte("x")), "append": s.Append(s.ctx, name, []byte("x")),
					"stat": second(s.Stat(s.ctx, name)), "exists": second(s.Exists(s.ctx, name)), "list": second(s.List(s.ctx, name)),
					"atomic": workspace.AtomicWrite(s.ctx, s.FS, name, []byte("x")), "copy": workspace.Copy(s.ctx, s.FS, name, "copied"),
					"copy to": workspace.Copy(s.ctx, s.FS, "real/data", name), "sub": second(workspace.Sub(s.FS, name).List(s.ctx, "")),
				} {
					if !errors.Is(err, workspace.ErrPathTraversal) {
						t.Errorf("%s %s: %v", op, name, err)
					}
				}
			}
			for _, err := range []error{
				s.Rename(s.ctx, "out/secret", "x"), s.Rename(s.ctx, "real/data", "out/x"), s.Delete(s.ctx, "out/secret"), s.RemoveAll(s.ctx, "real/up/secret"),
			} {
				is(t, err, workspace.ErrPathTraversal)
			}
			unchanged()
			for _, name := range []string{"in/data", "abs/data", "absfile", "real/root/abs/data"} {
				s.has(t, name, "real/data")
				s.exists(t, name, true)
			}
			info, err := s.Stat(s.ctx, "absfile")
			if err != nil || info.Name() != "absfile" || info.Size() != 9 || !info.Mode().IsRegular() {
				t.Errorf("%v %v", info, err)
			}
			must(t, s.Append(s.ctx, "abs/data", []byte("!")))
			must(t, workspace.AtomicWrite(s.ctx, s.FS, "absfile", []byte("atomic")))
			s.has(t, "real/data", "atomic")
			must(t, s.Write(s.ctx, "abs/new/er", []byte("n")))
			s.has(t, "real/new/er", "n")
			// a link that leads nowhere: missing, until it is written through
			is(t, second(s.Read(s.ctx, "dangling")), superqode.ErrNotFound)
			s.exists(t, "dangling", false)
			must(t, s.Write(s.ctx, "dangling", []byte("d")))
			s.has(t, "real/none", "d")
			is(t, second(s.Read(s.ctx, "circle")), syscall.ELOOP)
			list, err := s.List(s.ctx, "abs")
			must(t, err)
			for _, e := range list {
				if info, err := e.Info(); err != nil || info.Mode().Type() != e.Type() {
					t.Errorf("%s: %v %v", e.Name(), info, err)
				}
			}
			got, err := workspace.Glob(s.ctx, s.FS, "**")
			if want := "absfile dangling real/data real/new/er real/none"; err != nil || strings.Join(got, " ") != want {
				t.Errorf("%q %v", got, err)
			}
			// what removes and renames takes the link itself
			must(t, s.RemoveAll(s.ctx, "out"))
			must(t, s.Delete(s.ctx, "outfile"))
			must(t, s.Delete(s.ctx, "dangling-out"))
			must(t, s.Rename(s.ctx, "in", "renamed"))
			must(t, s.RemoveAll(s.ctx, "abs"))
			s.has(t, "renamed/data", "atomic")
			must(t, s.RemoveAll(s.ctx, "real"))
			unchanged()
		})
	}
}

// TestSubKeepsIn holds that a Sub of a Dir is not left for another place in the Dir.
func TestSubKeepsIn(t *testing.T) {
	t.Parallel()
	dir, ctx := open(t), context.Background()
	must(t, dir.Write(ctx, "mine/f", []byte("mine")))
	must(t, dir.Write(ctx, "other/f", []byte(secret)))
	for target, name := range map[string]string{"../other": "mine/rel", filepath.Join(dir.Root(), "other"): "mine/abs", "mine": "alias", "../mine": "other/back"} {
		must(t, os.Symlink(target, filepath.Join(dir.Root(), name)))
	}
	for _, sub := range []workspace.FS{workspace.Sub(dir, "mine"), workspace.Sub(dir, "alias"), workspace.Sub(workspace.Scoped(dir), "mine"), workspace.Scoped(workspace.Sub(dir, "other/back"))} {
		if data, err := sub.Read(ctx, "f"); err != nil || string(data) != "mine" {
			t.Errorf("%q %v", data, err)
		}
		for _, name := range []string{"rel/f", "abs/f", "rel", "abs/new"} {
			is(t, second(sub.Read(ctx, name)), workspace.ErrPathTraversal)
		}
	}
	is(t, second(workspace.Sub(workspace.Sub(dir, "mine"), "rel").Read(ctx, "f")), workspace.ErrPathTraversal)
	is(t, workspace.Sub(dir, "mine").Write(ctx, "rel/new", nil), workspace.ErrPathTraversal)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	ctx, base := context.Background(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(base, "real"), 0o755))
	must(t, os.Symlink("real", filepath.Join(base, "link")))
	dir, err := workspace.Open(filepath.Join(base, "link", "made", "here"))
	must(t, err)
	want, err := filepath.EvalSymlinks(filepath.Join(base, "real", "made", "here"))
	if err != nil || dir.Root() != want {
		t.Errorf("%s %v", dir.Root(), err)
	}
	// the link that led there is swapped: the workspace stays where it was
	must(t, os.Remove(filepath.Join(base, "link")))
	must(t, os.Symlink(t.TempDir(), filepath.Join(base, "link")))
	must(t, dir.Write(ctx, "f", []byte("x")))
	if _, err := os.Stat(filepath.Join(want, "f")); err != nil {
		t.Error(err)
	}
	must(t, dir.Close())
	is(t, second(dir.Read(ctx, "f")), fs.ErrClosed)
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	must(t, syscall.Mkfifo(filepath.Join(base, "fifo"), 0o600))
	for _, bad := range []string{"file", "fifo", "file/x"} {
		if _, err := workspace.Open(filepath.Join(base, bad)); err == nil {
			t.Errorf("%s was opened", bad)
		}
	}
}

// TestSpecialFiles holds that nothing waits for a FIFO, and that no mode is lost.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir, ctx := open(t), context.Background()
	for _, f := range []workspace.FS{dir, workspace.Scoped(dir, workspace.WithAllowWrite("**"))} {
		must(t, syscall.Mkfifo(filepath.Join(dir.Root(), "fifo"), 0o600))
		reader, err := os.OpenFile(filepath.Join(dir.Root(), "fifo"), os.O_RDWR, 0)
		for range 2 { // with somebody at the other end, and without
			for op, err := range map[string]error{
				"read": second(f.Read(ctx, "fifo")), "write": f.Write(ctx, "fifo", []byte("x")), "append": f.Append(ctx, "fifo", []byte("x")),
				"atomic": workspace.AtomicWrite(ctx, f, "fifo", nil), "list": second(f.List(ctx, "fifo")),
			} {
				if err == nil {
					t.Errorf("%s of a FIFO", op)
				}
			}
			must(t, err)
			err = reader.Close()
			reader, _ = os.Open(os.DevNull)
		}
		must(t, reader.Close())
		must(t, f.Delete(ctx, "fifo"))
		must(t, f.Write(ctx, "run.sh", []byte("1")))
		must(t, os.Chmod(filepath.Join(dir.Root(), "run.sh"), 0o757))
		must(t, f.Write(ctx, "run.sh", []byte("2")))
		must(t, workspace.AtomicWrite(ctx, f, "run.sh", []byte("3")))
		must(t, f.Append(ctx, "run.sh", []byte("4")))
		must(t, workspace.Copy(ctx, f, "run.sh", "bin/run.sh"))
		for name, want := range map[string]fs.FileMode{"run.sh": 0o757, "bin/run.sh": 0o755} {
			if info, err := f.Stat(ctx, name); err != nil || info.Mode() != want || info.Size() != 2 {
				t.Errorf("%s: %v %v", name, info, err)
			}
		}
		long := strings.Repeat("n", 255)
		must(t, workspace.AtomicWrite(ctx, f, long, nil))
		must(t, f.RemoveAll(ctx, "bin"))
	}
}

func TestScoped(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]workspace.FS{"Dir": open(t), "Mem": workspace.NewMem(), "another's": other{workspace.NewMem()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := suite{tree, context.Background()}
			base.put(t, "pub/a", "pub/b", "hid/key", "deep/er/hid/key", "deep/x", "cert.pem", "sub/c.pem", "cfg/token", "cfg/plain", "ro/f", "zone/ok.txt", "zone/no.bin")
			var mu sync.Mutex
			var told []string
			s := suite{workspace.Scoped(tree,
				workspace.WithAllowWrite("pub/**", "deep/**", "cfg/**", "hid/**", "zone/*.txt", "zon[e]", "dro[p]"),
				workspace.WithDenyRead("hid/**", "**/hid", "**/*.pem"), workspace.WithMandatoryDeny("cfg/token"),
				workspace.WithViolationLogger(func(_ context.Context, v workspace.Violation) {
					mu.Lock()
					defer mu.Unlock()
					if v.Time.IsZero() {
						t.Error("no time")
					}
					told = append(told, v.Operation+" "+v.Path+" "+v.Rule)
				})), base.ctx}
			denied := func(err error, want string) {
				t.Helper()
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, workspace.ErrAccessDenied) || !errors.Is(err, superqode.ErrDenied) || !errors.Is(err, fs.ErrPermission) || !slices.Equal(told, []string{want}) {
					t.Errorf("%v, told %q, want %q", err, told, want)
				}
				told = nil
			}
			denied(second(s.Read(s.ctx, "hid/key")), "read hid/key deny-read hid/**")
			denied(second(s.Stat(s.ctx, "hid")), "stat hid deny-read hid/**")
			denied(second(s.Exists(s.ctx, "hid/none")), "exists hid/none deny-read hid/**")
			denied(second(s.List(s.ctx, "deep/er/hid")), "list deep/er/hid deny-read **/hid")
			denied(second(s.Read(s.ctx, "deep/er/hid/key")), "read deep/er/hid/key deny-read **/hid")
			denied(second(s.Read(s.ctx, "sub/c.pem")), "read sub/c.pem deny-read **/*.pem")
			denied(second(s.Read(s.ctx, "cfg/token")), "read cfg/token mandatory-deny cfg/token")
			denied(s.Write(s.ctx, "cfg/token", nil), "write cfg/token mandatory-deny cfg/token")
			denied(s.Append(s.ctx, "cfg/token/x", nil), "append cfg/token/x mandatory-deny cfg/token")
			denied(workspace.AtomicWrite(s.ctx, s.FS, "ro/f", nil), "atomic write ro/f not in allow-write")
			denied(s.Write(s.ctx, "new", nil), "write new not in allow-write")
			denied(s.Delete(s.ctx, "ro/f"), "delete ro/f not in allow-write")
			denied(workspace.Copy(s.ctx, s.FS, "hid/key", "pub/k"), "read hid/key deny-read hid/**")
			denied(workspace.Copy(s.ctx, s.FS, "pub/a", "ro/a"), "write ro/a not in allow-write")
			// a parent of what is denied stays; so does one of what may not be written
			denied(s.RemoveAll(s.ctx, "cfg"), "remove cfg/token mandatory-deny cfg/token")
			denied(s.Rename(s.ctx, "cfg", "pub/cfg"), "rename cfg/token mandatory-deny cfg/token")
			denied(s.Rename(s.ctx, "deep", "pub/deep"), "rename deep/er/hid deny-read **/hid")
			denied(s.RemoveAll(s.ctx, "deep/er"), "remove deep/er/hid deny-read **/hid")
			denied(s.RemoveAll(s.ctx, "zone"), "remove zone/no.bin not in allow-write")
			denied(s.Rename(s.ctx, "hid/key", "pub/key"), "rename hid/key deny-read hid/**")
			denied(s.Rename(s.ctx, "pub", "drop"), "rename drop/a not in allow-write")
			denied(s.Rename(s.ctx, "pub/a", "cfg/token"), "rename cfg/token mandatory-deny cfg/token")
			if err := s.Write(s.ctx, "../x", nil); !errors.Is(err, workspace.ErrPathTraversal) || !slices.Equal(told, []string{"write ../x path-traversal"}) {
				t.Error(err, told)
			}
			told = nil
			for _, name := range []string{"hid/key", "deep/er/hid/key", "cfg/token", "ro/f", "zone/no.bin", "pub/a"} {
				base.has(t, name, name)
			}
			if got := s.names(t, "") + " | " + s.names(t, "cfg") + " | " + s.names(t, "deep/er"); got != "cfg/ deep/ pub/ ro/ sub/ zone/ | plain | " {
				t.Error(got)
			}
			got, err := workspace.Glob(s.ctx, s.FS, "**")
			if want := "cfg/plain deep/x pub/a pub/b ro/f zone/no.bin zone/ok.txt"; err != nil || strings.Join(got, " ") != want {
				t.Error(got, err)
			}
			must(t, s.Write(s.ctx, "hid/new", []byte("dropped"))) // what may be written and not read
			must(t, s.Rename(s.ctx, "pub/a", "deep/a"))
			must(t, s.RemoveAll(s.ctx, "pub"))
			must(t, s.Delete(s.ctx, "cfg/plain"))
			if len(told) != 0 {
				t.Errorf("told of what was allowed, or of what nobody named: %q", told)
			}
		})
	}
	for _, bad := range []workspace.ScopeOption{workspace.WithAllowWrite("["), workspace.WithDenyRead(""), workspace.WithMandatoryDeny("../x"), workspace.WithMandatoryDeny("ok", "/etc")} {
		f := workspace.Scoped(workspace.NewMem(), workspace.WithAllowWrite("**"), bad)
		is(t, f.Write(context.Background(), "x", nil), superqode.ErrUsage)
		is(t, second(f.List(context.Background(), "")), superqode.ErrUsage)
	}
}

// TestScopedResolves holds that rules see where a path leads, not how it is written.
func TestScopedResolves(t *testing.T) {
	t.Parallel()
	dir, ctx := open(t), context.Background()
	for _, name := range []string{"hid/key", "pub/f", "ro/f"} {
		must(t, dir.Write(ctx, name, []byte(name)))
	}
	for name, target := range map[string]string{"pub/rel": "../hid", "pub/abs": filepath.Join(dir.Root(), "hid"), "pub/key": "../hid/key", "pub/two": "rel/key", "pub/ro": "../ro", "hid/pub": "../pub"} {
		must(t, os.Symlink(target, filepath.Join(dir.Root(), name)))
	}
	f := workspace.Scoped(dir, workspace.WithAllowWrite("pub/**"), workspace.WithDenyRead("hid"))
	for _, name := range []string{"pub/rel/key", "pub/abs/key", "pub/key", "pub/two", "hid/pub/f", "pub/rel"} {
		for op, err := range map[string]error{
			"read": second(f.Read(ctx, name)), "write": f.Write(ctx, name, []byte("x")), "list": second(f.List(ctx, name)),
			"stat": second(f.Stat(ctx, name)), "copy": workspace.Copy(ctx, f, name, "pub/stolen"), "sub": second(workspace.Sub(f, name).List(ctx, "")),
		} {
			if !errors.Is(err, workspace.ErrAccessDenied) && !(op == "write" && name == "hid/pub/f") {
				t.Errorf("%s %s: %v", op, name, err)
			}
		}
	}
	is(t, f.Write(ctx, "pub/ro/f", nil), workspace.ErrAccessDenied)
	is(t, f.Rename(ctx, "pub/f", "pub/ro/g"), workspace.ErrAccessDenied)
	is(t, f.Rename(ctx, "pub/rel/key", "pub/k"), workspace.ErrAccessDenied)
	is(t, f.RemoveAll(ctx, "pub/abs/key"), workspace.ErrAccessDenied)
	must(t, f.Delete(ctx, "pub/key"))
	for _, name := range []string{"hid/key", "ro/f"} {
		if data, err := dir.Read(ctx, name); err != nil || string(data) != name {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
}

// TestRace swaps links in a loop while calls run: none leaves the root, and none passes a
// rule.
func TestRace(t *testing.T) {
	t.Parallel()
	dir := open(t)
	away, unchanged := outside(t)
	ctx := context.Background()
	must(t, dir.Write(ctx, "hid/secret", []byte(secret)))
	must(t, os.Mkdir(filepath.Join(dir.Root(), "real"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir.Root(), "real/secret"), []byte("mine"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir.Root(), "one"), 0o755))
	at := func(name string) string { return filepath.Join(dir.Root(), name) }
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swap := func(name string, targets ...string) {
		swaps.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				target := targets[i%len(targets)]
				if target == "" { // a folder of its own
					_ = os.Rename(at("one"), at(name))
					_ = os.Rename(at(name), at("one"))
					continue
				}
				_ = os.Symlink(target, at(name))
				_ = os.Remove(at(name))
			}
		})
	}
	swap("s", "real", away, "hid", at("hid"), "")
	swap("f", "real/secret", filepath.Join(away, "secret"), "hid/secret", at("hid/secret"))
	scoped := workspace.Scoped(dir, workspace.WithAllowWrite("s/**", "f", "real/**", "to/**", "one/**"), workspace.WithMandatoryDeny("hid"))
	for name, f := range map[string]workspace.FS{"Dir": dir, "Scoped": scoped, "Sub": workspace.Sub(dir, "s"), "Scoped Sub": workspace.Scoped(workspace.Sub(dir, "."), workspace.WithAllowWrite("**"), workspace.WithMandatoryDeny("hid"))} {
		bounded := strings.HasPrefix(name, "Scoped")
		for range 300 {
			must(t, dir.Write(ctx, "hid/secret", []byte(secret)))
			for _, path := range []string{"s/secret", "f", "secret"} {
				data, err := f.Read(ctx, path)
				if err == nil && bounded && string(data) == secret {
					t.Fatalf("%s read what is denied at %s", name, path)
				}
				if bounded {
					_ = f.Write(ctx, path, []byte("mine"))
					_ = f.Append(ctx, path, nil)
					_ = workspace.AtomicWrite(ctx, f, path, []byte("mine"))
					_ = f.Rename(ctx, path, "to/x")
					_ = f.Rename(ctx, "to/x", path)
					_ = f.Delete(ctx, path)
				} else {
					_ = workspace.AtomicWrite(ctx, f, path, []byte("others"))
					_ = f.Write(ctx, path, []byte("others"))
				}
			}
			list, _ := f.List(ctx, "s")
			for _, e := range list {
				_, _ = e.Info()
			}
			_ = f.RemoveAll(ctx, "s/secret")
			data, err := os.ReadFile(at("hid/secret"))
			if bounded && (err != nil || string(data) != secret) {
				t.Fatalf("%s wrote what is denied: %q %v", name, data, err)
			}
		}
	}
	close(stop)
	swaps.Wait()
	unchanged()
}

// TestReadBounded holds that a file which seems large takes no memory.
func TestReadBounded(t *testing.T) {
	t.Parallel()
	dir := open(t)
	name := filepath.Join(dir.Root(), "large")
	must(t, os.WriteFile(name, []byte("x"), 0o600))
	for _, size := range []int64{workspace.MaxRead + 1, 1 << 43} {
		must(t, os.Truncate(name, size))
		for what, f := range map[string]workspace.FS{"Dir": dir, "Scoped": workspace.Scoped(dir, workspace.WithAllowWrite("**"))} {
			_, err := f.Read(t.Context(), "large")
			if cerr := workspace.Copy(t.Context(), f, "large", "copy"); !errors.Is(err, syscall.EFBIG) || !errors.Is(cerr, syscall.EFBIG) {
				t.Errorf("%s: %v, %v", what, err, cerr)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(dir.Root(), "copy")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
