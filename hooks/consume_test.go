package hooks_test

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode/guard"
)

// supervise stands for a session's supervisor: it lets through what is allowed, as
// often as it is asked for one process, and keeps what is reported.
func supervise(t *testing.T, s *session, allowed ...guard.Operation) func() []guard.Attempt {
	t.Helper()
	path := filepath.Join(s.dir, "sock-1")
	if len(path) > 100 {
		t.Skipf("%s is too long for a socket", path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	var list []guard.Attempt
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var q struct {
				Op   string        `json:"op"`
				Args guard.Attempt `json:"args"`
			}
			line, _ := bufio.NewReader(c).ReadBytes('\n')
			reply := map[string]any{"ok": false}
			if json.Unmarshal(line, &q) == nil {
				mu.Lock()
				reply = map[string]any{"ok": true, "reply": map[string]bool{"allowed": slices.Contains(allowed, q.Args.Operation)}}
				if q.Op == guard.OpBlocked {
					list = append(list, q.Args)
				}
				mu.Unlock()
			}
			_ = json.NewEncoder(c).Encode(reply)
			_ = c.Close()
		}
	}()
	return func() []guard.Attempt { mu.Lock(); defer mu.Unlock(); return slices.Clone(list) }
}

// TestLetThrough: what a person lets through once passes every hook that asks, and
// nothing else does; what is refused goes to the supervisor.
func TestLetThrough(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op   guard.Operation
		line string
	}{
		{"commit", "commit -qam x"}, {"reset.hard", "reset -q --hard"}, {"branch.delete", "branch -q -D feature"}, {"branch.rename", "branch -m feature renamed"},
		{"push", "push -q origin main:new"}, {"push", "push -q --no-verify origin main:new +main:refs/heads/x"}, {"push", "push -q --atomic --force-with-lease=main " + "origin main:new HEAD~1:main"},
		{"push", "-c remote.origin.pushurl=HOME/remote.git push -q --no-verify origin main:new"}, {"fetch.update", "fetch -q . +main:feature"}, {"rebase", "-C ../side rebase -q -f HEAD~1"},
	} {
		t.Run(string(tt.op), func(t *testing.T) {
			t.Parallel()
			f := userRepo(t)
			s := newSession(t, f, f.Dir, nil)
			reported := supervise(t, s, tt.op)
			hurt := damage(t, f)
			r := s.sh(f.Dir, realGit(t)+" "+strings.ReplaceAll(tt.line, "HOME", f.Home))
			if r.code != 0 || len(hurt()) == 0 || strings.Contains(r.errOut, "superqode: refused") {
				t.Errorf("%s: exit code %d\n%s", tt.line, r.code, r.errOut)
			}
			if r := s.sh(f.Dir, realGit(t)+" tag -d v1.0.0"); !r.refused() {
				t.Errorf("exit code %d\n%s", r.code, r.errOut)
			}
			if list := reported(); len(list) != 1 || list[0].Operation != "tag.delete" || len(s.attempts()) > 0 {
				t.Errorf("reported %v, written %v", list, s.attempts())
			}
		})
	}
}
