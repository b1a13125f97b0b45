// Package team runs several agents in one session at the same time: each its own
// command, with signals passed on, and a look now and then at what they change.
package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// AgentsOptions says which agents work in one session, and how.
type AgentsOptions struct {
	Agents   []AgentCommand
	Parallel int  // how many at once; 0: all
	Shared   bool // all of them in one workspace
	// Streams returns where an agent's output goes; nil: nowhere but into its log.
	Streams func(superqode.AgentID) (stdout, stderr io.Writer)
	// Watch is called now and then while agents run, and when one starts or ends,
	// never twice at the same time; nil: nobody looks.
	Watch func([]AgentStatus)
}

// AgentStatus is what an agent does at this moment.
type AgentStatus struct {
	Agent     superqode.AgentID
	State     AgentState
	ExitCode  int
	StartedAt time.Time
	EndedAt   time.Time
	Changes   int // paths; -1 while nobody looked
	Conflicts int // paths that would conflict with another agent's
}

// AgentState is how far an agent is.
type AgentState string

// The states of an agent. One that was never started, because the session was
// ended before, stays AgentWaiting.
const (
	AgentWaiting AgentState = "waiting"
	AgentRunning AgentState = "running"
	AgentEnded   AgentState = "ended"
)

// Member is one agent at work: its session's place, and what runs a program there.
type Member struct {
	*site.Site
	Exec func(context.Context, program.ExecOptions) (runner.Result, error)
}

// Team is the agents at work.
type Team struct {
	s       *site.Site
	opt     AgentsOptions
	exec    program.ExecOptions
	members []Member
	relay   *Relay

	mu      sync.Mutex
	status  []AgentStatus
	results []state.AgentRecord // the members' records hold the session's own list, and must not see it change
	errs    []error
}

// New prepares the agents of one session. Relay passes the caller's signals on.
func New(s *site.Site, opt AgentsOptions, exec program.ExecOptions, relay *Relay, members []Member) *Team {
	return &Team{relay: relay, s: s, opt: opt, exec: exec, members: members, status: make([]AgentStatus, len(members))}
}

// Run runs every agent and returns when all have ended. One that fails stops no
// other.
func (t *Team) Run(ctx context.Context) error {
	t.errs, t.results = make([]error, len(t.members)), slices.Clone(t.s.Rec.Agents)
	for i, a := range t.opt.Agents {
		t.status[i] = AgentStatus{Agent: a.Agent, State: AgentWaiting, Changes: -1}
	}
	stopWatch := t.watch(ctx)
	slots := make(chan struct{}, max(1, min(cmpOr(t.opt.Parallel, len(t.members)), len(t.members))))
	var wg sync.WaitGroup
	for i := range t.members {
		slots <- struct{}{} // in the order given
		if t.relay.Ended() != nil || ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			t.errs[i] = t.one(ctx, i)
		})
	}
	wg.Wait()
	stopWatch()
	return errors.Join(append([]error{t.record(context.WithoutCancel(ctx))}, t.errs...)...)
}

func cmpOr(a, b int) int {
	if a > 0 {
		return a
	}
	return b
}

// one runs one agent.
func (t *Team) one(ctx context.Context, i int) error {
	a, member := t.opt.Agents[i], t.members[i]
	opt := t.exec
	opt.Args, opt.Stdin, opt.Stdout, opt.Stderr = []string{"sh", "-c", a.Command}, nil, nil, nil
	if t.opt.Streams != nil {
		opt.Stdout, opt.Stderr = t.opt.Streams(a.Agent)
	}
	opt.StdoutToo, opt.Signals = false, t.relay.To[i]
	if t.opt.Shared {
		opt.Log = AgentLog(a.Agent)
	}
	t.set(i, func(st *AgentStatus) { st.State, st.StartedAt = AgentRunning, t.s.Now() })
	res, err := member.Exec(ctx, opt)
	t.set(i, func(st *AgentStatus) { st.State, st.EndedAt, st.ExitCode = AgentEnded, t.s.Now(), res.ExitCode })
	t.relay.leave(i)
	t.mu.Lock()
	rec := &t.results[i]
	rec.StartedAt, rec.EndedAt, rec.TimedOut = t.status[i].StartedAt.UTC(), t.status[i].EndedAt.UTC(), res.TimedOut
	code := res.ExitCode
	if rec.ExitCode = &code; err != nil && code == 0 {
		rec.ExitCode = nil
	}
	t.mu.Unlock()
	for _, w := range []io.Writer{opt.Stdout, opt.Stderr} {
		if c, ok := w.(interface{ Flush() error }); ok {
			err = errors.Join(err, c.Flush())
		}
	}
	if err != nil {
		return fmt.Errorf("agent %s: %w", a.Agent, err)
	}
	return nil
}

// AgentLog is the log of an agent that shares the session's workspace.
func AgentLog(a superqode.AgentID) string { return a.String() + "-command.log" }

func (t *Team) set(i int, change func(*AgentStatus)) {
	t.mu.Lock()
	change(&t.status[i])
	t.mu.Unlock()
	t.tell()
}

// tell shows what the agents do.
func (t *Team) tell() {
	if t.opt.Watch == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opt.Watch(slices.Clone(t.status))
}

// record writes down how the agents ended. The session's own exit code is the
// first that is not zero.
func (t *Team) record(ctx context.Context) error {
	agents := t.results
	return t.s.Update(ctx, func(r *state.Record) {
		r.Agents, r.Runs, r.Command = agents, len(agents), CommandOf(t.opt.Agents)
		r.ExitCode, r.TimedOut = nil, false
		known := true
		for _, a := range agents {
			known = known && a.ExitCode != nil
			r.TimedOut = r.TimedOut || a.TimedOut
			if a.ExitCode != nil && (r.ExitCode == nil || *r.ExitCode == 0) {
				r.ExitCode = a.ExitCode
			}
		}
		if !known && (r.ExitCode == nil || *r.ExitCode == 0) {
			r.ExitCode = nil // one is not known to have ended well
		}
		for _, m := range t.members {
			r.HeldBy(m.Rec)
			r.Limit, r.Truncated = cmp.Or(r.Limit, m.Rec.Limit), r.Truncated || m.Rec.Truncated
		}
	})
}

// CommandOf is the command line of several agents as a record keeps it.
func CommandOf(list []AgentCommand) []string {
	var args []string
	for _, a := range list {
		args = append(args, "--agent", a.Agent.String()+"="+a.Command)
	}
	return args
}

// NotApplied says why nothing is applied in the end; "" when all agents ended
// well.
func (t *Team) NotApplied(err error) string {
	for i, a := range t.s.Rec.Agents {
		switch {
		case a.ExitCode == nil:
			return fmt.Sprintf("agent %s did not run", a.Agent)
		case a.TimedOut || *a.ExitCode != 0:
			res := runner.Result{ExitCode: *a.ExitCode, TimedOut: a.TimedOut}
			return fmt.Sprintf("agent %s: %s", a.Agent, NotApplied(res, t.errs[i]))
		}
	}
	if err != nil {
		return "an agent did not run"
	}
	return ""
}

// Relay passes signals on to every agent that runs.
type Relay struct {
	To   []chan os.Signal
	done chan struct{}
	left sync.WaitGroup

	mu    sync.Mutex
	gone  []bool
	final os.Signal // the first that tells to end
}

// NewRelay passes signals on to n agents until Stop; one that ends a session is
// remembered, see Ended.
func NewRelay(from <-chan os.Signal, n int) *Relay {
	r := &Relay{To: make([]chan os.Signal, n), gone: make([]bool, n), done: make(chan struct{})}
	for i := range r.To {
		r.To[i] = make(chan os.Signal, 8)
	}
	r.left.Go(func() {
		for {
			select {
			case sig := <-from:
				r.pass(sig)
			case <-r.done:
				return
			}
		}
	})
	return r
}

func (r *Relay) pass(sig os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.final == nil && Ends(sig) {
		r.final = sig
	}
	for i, c := range r.To {
		if r.gone[i] {
			continue
		}
		select {
		case c <- sig:
		default: // it has eight already
		}
	}
}

// Ended returns the signal that told to end, nil for none.
func (r *Relay) Ended() os.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.final
}

// leave says that an agent has ended.
func (r *Relay) leave(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone[i] = true
}

func (r *Relay) Stop() {
	close(r.done)
	r.left.Wait()
}
