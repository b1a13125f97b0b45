package program

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

func TestSegment(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,90}$`)
	seen := map[string]string{}
	for _, id := range []string{"a/b", "a-b", "a_b", "a b", "A-B", ".", "..", "../..", "\n", "a\nb", "\xff", "\xfe", strings.Repeat("x", 300), strings.Repeat("x", 301), "-rf", "ä", "none", "a.txt", "a.tx", "con."} {
		s := caseSegment(id)
		if !safe.MatchString(s) || strings.Contains(s, "..") {
			t.Errorf("%q becomes %q", id, s)
		}
		if other, ok := seen[s]; ok {
			t.Errorf("%q and %q are both %q", id, other, s)
		}
		seen[s] = id
	}
	if caseSegment("") != noName || seen[noName] != "" {
		t.Error("no id is not apart")
	}
}

func TestPortsAreShared(t *testing.T) {
	t.Parallel()
	m := &site.Host{Home: t.TempDir(), Now: time.Now, Tell: func(string) {}}
	dirs := t.TempDir()
	var mu sync.Mutex
	var ports []int
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			id := superqode.NewSessionID(time.Now())
			dir := filepath.Join(dirs, id.String())
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Error(err)
			}
			port, err := blockOf(t.Context(), m, dir, id)
			if err != nil || port < firstPort || port%portBlock != 0 {
				t.Error(port, err)
			}
			mu.Lock()
			defer mu.Unlock()
			ports = append(ports, port)
		})
	}
	wg.Wait()
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 20 {
		t.Errorf("%v", ports)
	}
	// What lies on links whose sessions are gone comes back.
	if err := os.RemoveAll(dirs); err != nil {
		t.Fatal(err)
	}
	if err := freeStalePorts(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if left, err := state.Names(portsPath(m)); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}

func TestPortsInUseAreNotTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, _ := strconv.Atoi(text)
	if portsFree(port - port%portBlock) {
		t.Errorf("port %d is taken, and its block counts as free", port)
	}
}

func TestParseBlocks(t *testing.T) {
	t.Parallel()
	blocks, others, err := ParseBlocks([]byte("# x\n```python\nprint(1)\n```\n\n```go\nx\n```\n> ```sh\n> echo 2\n> ```\n\n```bash {.numberLines}\n```\n\n```\nnothing\n```\n"))
	if err != nil || len(blocks) != 3 {
		t.Fatalf("%+v %v", blocks, err)
	}
	if len(others) != 1 || others[0].Index != 0 || others[0].Lang != "go" || others[0].Line != 7 {
		t.Errorf("not run: %+v", others)
	}
	for i, want := range []struct {
		lang, text string
		line       int
	}{{"python", "print(1)\n", 3}, {"bash", "echo 2\n", 10}, {"bash", "", 14}} {
		if b := blocks[i]; b.Lang != want.lang || string(b.Text) != want.text || b.Line != want.line {
			t.Errorf("%d: %+v %q", i, b, b.Text)
		}
	}
	for _, none := range []string{"", "```\nx\n```", "    python\n", "```perl\nx\n```"} {
		if _, _, err := ParseBlocks([]byte(none)); !errors.Is(err, superqode.ErrUsage) {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func TestDefaultsFill(t *testing.T) {
	t.Parallel()
	d := state.Defaults{Env: []string{"A=1"}, Timeout: time.Minute, Memory: 5, Pids: 3, Cwd: "src"}
	opt := ExecOptions{Env: []string{"A=2"}, Limits: runner.Limits{Memory: 7}}.With(d)
	if opt.Limits.Memory != 7 || opt.Limits.Pids != 3 || opt.Timeout != time.Minute || opt.Cwd != "src" || strings.Join(opt.Env, " ") != "A=1 A=2" {
		t.Errorf("%+v", opt)
	}
	if again := opt.Defaults(); again.Memory != 7 || again.Pids != 3 || again.Cwd != "src" {
		t.Errorf("%+v", again)
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	opt := ExecOptions{EnvAllow: []string{"FOO_*", "BAR"}}
	for name, want := range map[string]bool{"FOO_A": true, "FOO": false, "BAR": true, "BARS": false, "PATH": true, "SECRET": false} {
		if opt.allowed(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestLinkSelf holds that agents in one workspace may begin at the same time.
func TestLinkSelf(t *testing.T) {
	t.Parallel()
	for range 30 {
		s := &Program{Site: &site.Site{Host: &site.Host{Self: "/usr/bin/superqode"}, Folder: t.TempDir()}}
		if err := os.Mkdir(filepath.Join(s.Folder, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		var all errgroup.Group
		start := make(chan struct{})
		for range 16 {
			all.Go(func() error {
				<-start
				return s.linkSelf()
			})
		}
		close(start)
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadDir(filepath.Join(s.Folder, "bin"))
		if err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
	}
}
