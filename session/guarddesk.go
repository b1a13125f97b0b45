package session

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

// guardDesk takes what the guard's layers report while a program runs, and keeps a
// person's allowances. Its log is the supervisor's: what a program removes comes back.
type guardDesk struct {
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

func (s *Session) openDesk() (*guardDesk, error) {
	d := &guardDesk{dir: s.Folder, agent: s.Actor(), warn: s.Tell, seen: map[string]bool{}, passed: map[process]guard.Attempt{}}
	var err error
	if d.before, err = atomicfile.Read(d.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		if !errors.Is(err, atomicfile.ErrNotRegular) {
			return nil, err
		}
		if err := atomicfile.ClearWay(d.log()); err != nil {
			return nil, err
		}
	}
	d.allowed, err = readAllowances(d.dir)
	return d, err
}

func (d *guardDesk) log() string { return guardLog(d.dir) }

func guardLog(dir string) string { return filepath.Join(dir, "log", "guard.jsonl") }

// handlers adds the guard's operations to those that a program may ask for.
func (d *guardDesk) handlers(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	m[guard.OpBlocked] = func(_ context.Context, _ int, args json.RawMessage) (any, error) {
		a, err := parseAttempt(args)
		if err != nil {
			return nil, err
		}
		return struct{}{}, d.blocked(a)
	}
	m[guard.OpConsume] = func(ctx context.Context, pid int, args json.RawMessage) (any, error) {
		a, err := parseAttempt(args)
		if err != nil {
			return nil, err
		}
		ok, err := d.consume(ctx, pid, a)
		return map[string]bool{"allowed": ok}, err
	}
	m[opAllow] = func(ctx context.Context, pid int, args json.RawMessage) (any, error) {
		var a allowance
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "not an allowance: %v", err)
		}
		if supervisor.Descends(pid, os.Getpid()) {
			return nil, superqode.Errorf(superqode.ErrDenied, "what runs in a session can not let anything through there")
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return struct{}{}, d.allowed.add(ctx, d.dir, a)
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
func (d *guardDesk) blocked(a guard.Attempt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := fmt.Sprintf("%d %s", a.Process, a.Operation)
	if a.Process != 0 && d.seen[key] {
		return nil
	}
	if len(d.added) >= maxAttempts {
		d.dropped++
		return nil
	}
	d.seen[key] = true
	return d.write(a)
}

// write appends a line; the caller holds the lock.
func (d *guardDesk) write(a guard.Attempt) error {
	if a.Agent.IsZero() {
		a.Agent = d.agent
	}
	line, err := ledger.Lines(a)
	if err != nil {
		return err
	}
	d.added = append(d.added, line)
	return ledger.AppendLines(d.log(), line, false)
}

// consume reports whether a person let this attempt through, and uses that up.
// What git does by itself within a command that was let through is part of it: then
// the asking process descends from one that was. What an editor or a hook starts
// there is not.
func (d *guardDesk) consume(ctx context.Context, pid int, a guard.Attempt) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, up := pid, 0; p > 1 && up < supervisor.MaxAncestors; up++ {
		now, ok := proctable.Read(p)
		if !ok {
			break
		}
		if through, ok := d.passed[process{p, now.Start}]; ok && a.PartOf(through) {
			return true, nil
		}
		p = now.Parent
	}
	used, err := d.allowed.use(ctx, d.dir, a)
	if err != nil || !used {
		return false, err
	}
	if subject, ok := proctable.Read(a.Process); ok && supervisor.Descends(pid, a.Process) {
		d.passed[process{a.Process, subject.Start}] = a
	}
	a.Allowed = true
	d.warn(fmt.Sprintf("let through once: %s", text.Printable(strings.Join(a.Command, " "))))
	return true, d.write(a)
}

// process is a process by what does not change when it becomes another program.
type process struct {
	pid   int
	start uint64
}

// close puts the log back where the program changed it, and reports that it did.
func (d *guardDesk) close() (tampered bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dropped > 0 {
		d.warn(fmt.Sprintf("%d more refused attempts are not in the log: it keeps %d of one run", d.dropped, maxAttempts))
	}
	got, rerr := atomicfile.Read(d.log())
	if errors.Is(rerr, os.ErrNotExist) && len(d.before)+len(d.added) == 0 {
		return false, nil
	}
	want, intact := d.before, rerr == nil && bytes.HasPrefix(got, d.before)
	for _, line := range d.added {
		want, intact = ledger.Extend(want, line), intact && bytes.Contains(got, line)
	}
	if intact {
		return false, nil
	}
	return true, errors.Join(atomicfile.ClearWay(d.log()), atomicfile.Write(d.log(), want, 0o600))
}

// attempts reads the session's log: what was refused, and what was let through.
func (s *Session) attempts() (blocked []artifacts.Blocked, passed []guard.Attempt, err error) {
	data, err := atomicfile.Read(guardLog(s.Folder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	list, _ := guard.ParseAttempts(data)
	for _, a := range list {
		if a.Allowed {
			passed = append(passed, a)
			continue
		}
		blocked = append(blocked, artifacts.Blocked{Operation: string(a.Operation), Command: a.Command, Layer: string(a.Layer), At: artifacts.At(a.At), Agent: a.Agent})
	}
	return blocked, passed, nil
}
