package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// The test binary is a supervisor, and a program below it that takes all of its connections.
const (
	roleVariable = "SUPERVISOR_TEST_ROLE"
	pathVariable = "SUPERVISOR_TEST_PATH"
)

func TestMain(m *testing.M) {
	path := os.Getenv(pathVariable)
	switch os.Getenv(roleVariable) {
	case "serve":
		_, err := Listen(path, map[string]Handler{"echo": func(_ context.Context, _ int, args json.RawMessage) (any, error) { return args, nil }})
		if err != nil {
			panic(err)
		}
		program := exec.Command(os.Args[0])
		program.Env, program.Stdout, program.Stdin = append(os.Environ(), roleVariable+"=crowd"), os.Stdout, os.Stdin
		if err := program.Run(); err != nil {
			panic(err)
		}
	case "crowd":
		crowd(path)
	default:
		os.Exit(m.Run())
	}
}

// crowd holds as many connections as it gets, and says when it gets no more, until stdin ends.
func crowd(path string) {
	addr, _, err := socketAddr(path)
	if err != nil {
		panic(err)
	}
	var refused atomic.Int32
	for range 4 * MaxConnections {
		go func() {
			for {
				if c, err := net.Dial("unix", addr); err == nil {
					began := time.Now()
					_, _ = io.Copy(io.Discard, c)
					c.Close()
					if time.Since(began) < requestTimeout/2 && refused.Add(1) == MaxConnections {
						fmt.Println("full")
					}
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestSupervisorCrowded holds that a program that takes every connection keeps nobody outside
// of its session from an answer: workspace kill is one.
func TestSupervisorCrowded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sock-1")
	server := exec.Command(os.Args[0])
	server.Env, server.Stderr = append(os.Environ(), roleVariable+"=serve", pathVariable+"="+path), os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "full\n" {
		t.Fatal(line, err)
	}
	for i := range 50 {
		var got int
		if err := CallSocket(t.Context(), path, "echo", i, &got); err != nil || got != i {
			t.Errorf("call %d: %d, %v", i, got, err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}
