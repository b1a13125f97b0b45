//go:build linux

package overlay

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/runner"
)

// TestProgramAtTheOriginsPath: a program finds the overlay where the origin is, and
// nothing of the origin but what is bound for it.
func TestProgramAtTheOriginsPath(t *testing.T) {
	t.Parallel()
	l := layers(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	origin, own := dir+"/p/origin", dir+"/home/s/tmp"
	for _, d := range []string{origin + "/.git/objects", own + "/objects", kernel.SocketsDir(dir + "/home")} {
		must(t, os.MkdirAll(d, 0o755))
	}
	for _, f := range []string{origin + "/a", origin + "/real", origin + "/.git/objects/o", kernel.SocketsDir(dir+"/home") + "/other"} {
		write(t, f, "of the origin")
	}
	m := open(t, l)
	must(t, os.Mkdir(m.Dir()+"/only here", 0o755))
	k, err := kernel.Open(kernel.Options{
		Env: os.Environ(), Home: dir + "/home", Origin: origin, GitDirs: []string{origin + "/.git"}, Own: []string{own}, Scratch: own, Helper: helper,
		Overlay: m.Copy, Binds: map[string]string{own + "/objects": origin + "/.git/objects"},
	})
	must(t, err)
	defer k.Close()
	if k.Layer.By != kernel.Mounts {
		t.Fatalf("the kernel layer is %+v", k.Layer)
	}
	const script = `pwd; cat ../a; cat $1/o; ls "$2"
echo x 2>/dev/null >$1/new || echo closed
echo written >../a; mkdir ../made; cd ..; ls -A; ls -l /proc/self/fd | grep -c origin
mv ../origin ../gone 2>/dev/null || mv ../../p ../../gone 2>/dev/null || echo stays`
	for range 2 {
		var out, errs bytes.Buffer
		res, err := runner.Run(t.Context(), runner.Spec{
			Args: []string{"sh", "-c", script, "sh", own + "/objects", kernel.SocketsDir(dir + "/home")}, Dir: origin + "/only here",
			Env: os.Environ(), Stdout: &out, Stderr: &errs, Confine: k.Confine, Wrap: k.Wrap,
			Outside: func(path string) string {
				if in, ok := strings.CutPrefix(path, origin); ok {
					return m.Dir() + in
				}
				return path
			},
		})
		must(t, err)
		want := origin + "/only here\nof the baseof the originclosed\na\nb\ndir\nmade\nonly here\n0\nstays\n"
		if out.String() != want || res.ExitCode != 0 {
			t.Errorf("%d\n%s%s, want\n%s", res.ExitCode, &out, &errs, want)
		}
		reads(t, origin+"/a", "of the origin")
		reads(t, m.Dir()+"/a", "written\n")
		must(t, os.RemoveAll(m.Dir()+"/made"))
		write(t, m.Dir()+"/a", "of the base")
	}
	if names, err := filepath.Glob(origin + "/*"); err != nil || len(names) != 3 || strings.Contains(names[0], "made") {
		t.Errorf("the origin holds %v, %v", names, err)
	}
}
