package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode"
)

func startSupervisor(t *testing.T, dir string) (env []string) {
	t.Helper()
	path := filepath.Join(dir, "sock-1")
	s, err := Listen(path, map[string]Handler{
		"echo": func(_ context.Context, pid int, args json.RawMessage) (any, error) {
			return map[string]any{"args": args, "pid": pid}, nil
		},
		"refuse": func(context.Context, int, json.RawMessage) (any, error) {
			return nil, superqode.Errorf(superqode.ErrDenied, "not you")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Error("the socket file stays after close")
		}
	})
	return []string{"SUPERQODE_SOCKET=" + path}
}

func TestSupervisorAnswers(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"short path": t.TempDir(),
		"long path":  filepath.Join(t.TempDir(), strings.Repeat("long-folder-name/", 12)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			env := startSupervisor(t, dir)
			var got struct {
				Args map[string]int `json:"args"`
				PID  int            `json:"pid"`
			}
			if err := Call(t.Context(), env, "echo", map[string]int{"n": 7}, &got); err != nil {
				t.Fatal(err)
			}
			if got.Args["n"] != 7 || got.PID != os.Getpid() {
				t.Errorf("got %+v, want n=7 from pid %d", got, os.Getpid())
			}
			if err := Call(t.Context(), env, "refuse", nil, nil); !errors.Is(err, superqode.ErrDenied) || err.Error() != "not you" {
				t.Errorf("refusal came back as %v", err)
			}
			if err := Call(t.Context(), env, "session.write", nil, nil); !errors.Is(err, superqode.ErrUsage) {
				t.Errorf("an operation that does not exist gave %v", err)
			}
		})
	}
}

// TestSupervisorClosesAfterAnswers: what was done is told, though it ended the program.
func TestSupervisorClosesAfterAnswers(t *testing.T) {
	t.Parallel()
	path, asked := filepath.Join(t.TempDir(), "sock-1"), make(chan struct{})
	s, err := Listen(path, map[string]Handler{"end": func(ctx context.Context, _ int, _ json.RawMessage) (any, error) {
		close(asked)
		<-ctx.Done()
		return "done", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() {
		<-asked
		closed <- s.Close()
	}()
	var got string
	if err := Call(t.Context(), []string{"SUPERQODE_SOCKET=" + path}, "end", nil, &got); err != nil || got != "done" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A program may send anything; every line gets an error and the next good one
// still works.
func TestSupervisorSurvivesGarbage(t *testing.T) {
	t.Parallel()
	env := startSupervisor(t, t.TempDir())
	addr, release, err := socketAddr(superqode.Getenv(env, "SUPERQODE_SOCKET"))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewScanner(c)
	for _, line := range []string{"", "{", "[]", "null", "{}", `{"schema_version":2,"op":"echo"}`, `{"schema_version":1}`, `{"schema_version":1,"op":"\u0000"}`, "\xff\xfe", strings.Repeat("[", 100000)} {
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			t.Fatalf("%.20q: %v", line, err)
		}
		if !answers.Scan() {
			t.Fatalf("%.20q: no answer", line)
		}
		var r response
		if err := json.Unmarshal(answers.Bytes(), &r); err != nil || r.OK || r.Error == nil {
			t.Errorf("%.20q: answered %s", line, answers.Bytes())
		}
	}
	var got map[string]any
	if err := Call(t.Context(), env, "echo", 1, &got); err != nil {
		t.Errorf("after the garbage: %v", err)
	}
}

func TestSupervisorLimitsLinesAndConnections(t *testing.T) {
	t.Parallel()
	env := startSupervisor(t, t.TempDir())
	path := superqode.Getenv(env, "SUPERQODE_SOCKET")
	addr, release, err := socketAddr(path)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.Write(make([]byte, 2*maxRequest)) }() // cut off by the other end
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Errorf("no word about a line that is too long: %v", err)
	}
	var idle []net.Conn
	for range 3 * MaxConnections {
		if c, err := net.Dial("unix", addr); err == nil {
			idle = append(idle, c)
		}
	}
	for _, c := range idle {
		c.Close()
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var got map[string]any
			for err := errors.New("not yet"); err != nil; { // the slots of the idle ones come back as they are noticed
				if t.Context().Err() != nil {
					return
				}
				err = Call(t.Context(), env, "echo", 1, &got)
			}
		})
	}
	wg.Wait()
}

func TestCallOutside(t *testing.T) {
	t.Parallel()
	if err := Call(t.Context(), nil, "ping", nil, nil); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("outside a session: %v", err)
	}
	if err := Call(t.Context(), []string{"SUPERQODE_SOCKET=" + filepath.Join(t.TempDir(), "gone")}, "ping", nil, nil); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("supervisor gone: %v", err)
	}
}
