package layers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/proctable"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// maxAttempts is how many refused attempts one run writes down. A program that
// tries for ever must not fill the disk.
const maxAttempts = 5000

// Handler takes what the guard's layers report while a program runs, and keeps a
// person's allowances. Its log is the supervisor's: what a program removes comes back.
type Handler struct {
	dir   string // the session's folder
	agent superqode.AgentID
	warn  func(string)

	mu      sync.Mutex
	before  []byte          // the log when the program was started
	added   [][]byte        // lines since
	seen    map[string]bool // process and operation of what was reported
	dropped int
	allowed allowances
	passed  map[process]guard.Attempt // what a person let through
}

// Handle opens the handler of one run. Close ends it.
func (g *Guard) Handle() (*Handler, error) {
	h := &Handler{dir: g.Folder, agent: g.Actor(), warn: g.Tell, seen: map[string]bool{},
		passed: map[process]guard.Attempt{}}
	var err error
	if h.before, err = atomicfile.Read(h.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		if !errors.Is(err, atomicfile.ErrNotRegular) {
			return nil, err
		}
		if err := atomicfile.ClearWay(h.log()); err != nil {
			return nil, err
		}
	}
	h.allowed, err = readAllowances(h.dir)
	return h, err
}

func (h *Handler) log() string { return LogPath(h.dir) }

// LogPath is the log of refused attempts in a session's folder.
func LogPath(dir string) string { return filepath.Join(dir, "log", "guard.jsonl") }

// AddTo adds the guard's operations to those that a program may ask for.
func (h *Handler) AddTo(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	m[guard.OpBlocked] = func(_ context.Context, _ int, args json.RawMessage) (any, error) {
		a, err := parseAttempt(args)
		if err != nil {
			return nil, err
		}
		return struct{}{}, h.blocked(a)
	}
	m[guard.OpConsume] = func(ctx context.Context, pid int, args json.RawMessage) (any, error) {
		a, err := parseAttempt(args)
		if err != nil {
			return nil, err
		}
		ok, err := h.consume(ctx, pid, a)
		return map[string]bool{"allowed": ok}, err
	}
	m[opAllow] = func(ctx context.Context, pid int, args json.RawMessage) (any, error) {
		var a allowance
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "not an allowance: %v", err)
		}
		if supervisor.Descends(pid, os.Getpid()) {
			return nil, superqode.Errorf(superqode.ErrDenied,
				"what runs in a session cannot let anything through there")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return struct{}{}, h.allowed.add(ctx, h.dir, a)
	}
	return m
}

func parseAttempt(args json.RawMessage) (guard.Attempt, error) {
	var a guard.Attempt
	if err := json.Unmarshal(args, &a); err != nil || a.Operation == "" {
		return a, superqode.Errorf(superqode.ErrUsage, "not an attempt: %v", err)
	}
	return a.Tidy(), nil
}

// blocked writes one refused attempt down. Two layers that refuse the same one
// make one line.
func (h *Handler) blocked(a guard.Attempt) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := fmt.Sprintf("%d %s", a.Process, a.Operation)
	if a.Process != 0 && h.seen[key] {
		return nil
	}
	if len(h.added) >= maxAttempts {
		h.dropped++
		return nil
	}
	h.seen[key] = true
	return h.write(a)
}

// write appends a line; the caller holds the lock.
func (h *Handler) write(a guard.Attempt) error {
	if a.Agent.IsZero() {
		a.Agent = h.agent
	}
	line, err := ledger.Lines(a)
	if err != nil {
		return err
	}
	h.added = append(h.added, line)
	return ledger.AppendLines(h.log(), line, false)
}

// consume reports whether a person let this attempt through, and uses that up.
// What git does by itself within a command that was let through is part of it: then
// the asking process descends from one that was. What an editor or a hook starts
// there is not.
func (h *Handler) consume(ctx context.Context, pid int, a guard.Attempt) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, up := pid, 0; p > 1 && up < supervisor.MaxAncestors; up++ {
		now, ok := proctable.Read(p)
		if !ok {
			break
		}
		if through, ok := h.passed[process{p, now.Start}]; ok && a.PartOf(through) {
			return true, nil
		}
		p = now.Parent
	}
	used, err := h.allowed.use(ctx, h.dir, a)
	if err != nil || !used {
		return false, err
	}
	if subject, ok := proctable.Read(a.Process); ok && supervisor.Descends(pid, a.Process) {
		h.passed[process{a.Process, subject.Start}] = a
	}
	a.Allowed = true
	h.warn(fmt.Sprintf("let through once: %s", text.Printable(strings.Join(a.Command, " "))))
	return true, h.write(a)
}

// process is a process by what does not change when it becomes another program.
type process struct {
	pid   int
	start uint64
}

// restore puts the log back where the program changed it, and reports that it did.
func (h *Handler) restore() (tampered bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropped > 0 {
		h.warn(fmt.Sprintf("%d more refused attempts are not in the log: it keeps %d of one run", h.dropped,
			maxAttempts))
	}
	got, rerr := atomicfile.Read(h.log())
	if errors.Is(rerr, os.ErrNotExist) && len(h.before)+len(h.added) == 0 {
		return false, nil
	}
	want, intact := h.before, rerr == nil && bytes.HasPrefix(got, h.before)
	for _, line := range h.added {
		want, intact = ledger.Extend(want, line), intact && bytes.Contains(got, line)
	}
	if intact {
		return false, nil
	}
	return true, errors.Join(atomicfile.ClearWay(h.log()), atomicfile.Write(h.log(), want, 0o600))
}

// attempts reads the session's log: what was refused by which layer, and what was let
// through.
func (g *Guard) attempts() (res artifacts.Guard, passed []guard.Attempt, err error) {
	data, err := atomicfile.Read(LogPath(g.Folder))
	if errors.Is(err, os.ErrNotExist) {
		return res, nil, nil
	}
	if err != nil {
		return res, nil, err
	}
	list, _ := guard.ParseAttempts(data)
	counts := map[string]int{}
	for _, a := range list {
		switch {
		case a.Allowed:
			passed = append(passed, a)
		case a.Path != "":
			counts[string(a.Path)] += a.Count
		default:
			res.Blocked = append(res.Blocked, artifacts.Blocked{Operation: string(a.Operation), Command: a.Command,
				Layer: string(a.Layer), At: artifacts.At(a.At), Agent: a.Agent})
		}
	}
	res.KernelRefusals = byCount(counts)
	return res, passed, nil
}
