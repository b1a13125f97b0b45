//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	mu   sync.Mutex
	hits = map[string]int{}
)

// ErrInjected is what Err returns for the action "error".
var ErrInjected = errors.New("injected failure")

// Hit marks a step that can be interrupted but cannot fail by itself.
func Hit(name string) { _ = reach(name) }

// Err marks a step that may also fail: it returns the injected error or nil.
func Err(name string) error {
	note("SUPERQODE_FAILPOINT_ERRORS", name)
	return reach(name)
}

// Waits notes that the process waits for the disk: what for.
func Waits(what string) { note("SUPERQODE_FAILPOINT_WAITS", what) }

// note appends a point's name to the file that a variable names.
func note(variable, name string) {
	log := os.Getenv(variable)
	if log == "" {
		return
	}
	if f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, name)
		f.Close()
	}
}

func reach(name string) error {
	mu.Lock()
	hits[name]++
	n := hits[name]
	mu.Unlock()
	note("SUPERQODE_FAILPOINT_LOG", name)
	spec := os.Getenv("SUPERQODE_FAILPOINT")
	point, action, ok := strings.Cut(spec, "=")
	if !ok {
		return nil
	}
	if p, count, ok := strings.Cut(point, ":"); ok {
		want, err := strconv.Atoi(count)
		if err != nil || want < 1 {
			panic("failpoint: bad count in " + strconv.Quote(spec))
		}
		if want != n {
			return nil
		}
		point = p
	}
	if point != name {
		return nil
	}
	return act(name, action)
}

func act(name, action string) error {
	switch {
	case action == "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case action == "error":
		return fmt.Errorf("%s: %w", name, ErrInjected)
	case action == "enospc":
		return fmt.Errorf("%s: %w", name, syscall.ENOSPC)
	}
	d, err := time.ParseDuration(strings.TrimPrefix(action, "pause:"))
	if err != nil || !strings.HasPrefix(action, "pause:") {
		panic("failpoint: unknown action " + strconv.Quote(action)) // a typo in a test must not look like a pass
	}
	time.Sleep(d)
	return nil
}
