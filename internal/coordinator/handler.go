package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// The operations by which a program in a session reaches the claims.
const (
	OpAcquire = "claim.acquire" // a Call with Targets → a Answer
	OpRelease = "claim.release" // a Call → a Answer: what was ended
	OpList    = "claim.list"    // → a Answer
	OpCheck   = "claim.check"   // a Call with Edits → a Answer with a Verdict
)

// Wait says how long to stand in the queue: not at all, for a while, or
// without an end.
type Wait struct {
	For     time.Duration `json:"for,omitempty"`
	Forever bool          `json:"forever,omitempty"`
}

func (w Wait) wait() time.Duration {
	if w.Forever {
		return -1
	}
	return max(w.For, 0)
}

// Call is what a program asks of its supervisor.
type Call struct {
	Agent   superqode.AgentID `json:"agent_id"`
	Targets []Target          `json:"targets,omitempty"` // to release: none is everything
	TTL     time.Duration     `json:"ttl,omitempty"`
	Wait    Wait              `json:"wait,omitzero"`
	Edits   []CallEdit        `json:"edits,omitempty"`
}

// CallEdit is an edit of lines of a file as it is now.
type CallEdit struct {
	Bytes []byte  `json:"path"`
	Lines []Lines `json:"lines"`
}

// Answer is the reply. A request that was not granted is no error of
// the protocol: Conflict says what is in the way.
type Answer struct {
	Owner    Owner     `json:"owner"`
	Claims   []Lease   `json:"claims"`
	Waiting  []Waiter  `json:"waiting,omitempty"`
	Conflict *Conflict `json:"conflict,omitempty"`
	Verdict  *Verdict  `json:"verdict,omitempty"`
}

// maxWaits is how many requests of one program may wait at once, so that
// the supervisor has room for the others.
const maxWaits = supervisor.MaxConnections / 2

// Run is one agent's run in a session, whose program may ask for claims.
type Run struct {
	Project string // the project's folder, with the table of claims
	Session superqode.SessionID
	Agent   superqode.AgentID // zero: the program says for whom it asks
	Folder  string            // the session's folder
	Public  string            // the folder of the session that people see, see KeepGrants
	Base    *Base             // what the session's files were at its base
}

// Handler answers the claim operations of one run. The claims that it grants are
// held by a lock of the supervisor's, which the kernel drops with it.
type Handler struct {
	Run
	table *Table
	slots chan struct{}

	mu     sync.Mutex
	holder Holder // from the first claim on
	unlock func() error
}

// Handle prepares a Handler. It costs nothing until something is asked.
func (r Run) Handle() *Handler {
	return &Handler{Run: r, table: OpenTable(r.Project), slots: make(chan struct{}, maxWaits)}
}

// AddTo adds the operations to those that a program may ask for.
func (h *Handler) AddTo(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	for op, answer := range map[string]func(context.Context, Call) (Answer, error){
		OpAcquire: h.acquire, OpRelease: h.release, OpList: h.list, OpCheck: h.check,
	} {
		m[op] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
			var c Call
			if err := json.Unmarshal(args, &c); err != nil {
				return nil, superqode.Errorf(superqode.ErrUsage, "not a request for claims: %v", err)
			}
			return answer(ctx, c)
		}
	}
	return m
}

// owner decides in whose name a program speaks: its own agent's, or, where the
// run has none, whom it names, or the session itself.
func (h *Handler) owner(asked superqode.AgentID) (Owner, error) {
	o := Owner{Session: h.Session, Agent: h.Agent}
	switch {
	case o.Agent.IsZero():
		if o.Agent = asked; !asked.IsZero() {
			return o, nil
		}
		var err error
		o.Agent, err = superqode.ParseAgentID(h.Session.String())
		return o, err
	case !asked.IsZero() && asked != o.Agent:
		return o, superqode.Errorf(superqode.ErrDenied, "this is the run of agent %s, which cannot speak for %s", o.Agent, asked)
	}
	return o, nil
}

// hold takes the lock whose keeper holds this run's claims.
func (h *Handler) hold(ctx context.Context) (Holder, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := 1; h.unlock == nil; n++ {
		path := filepath.Join(h.Folder, "exec", "claims-"+strconv.Itoa(n)+".lock")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return Holder{}, err
		}
		unlock, err := lockfile.TryLock(path)
		if errors.Is(err, lockfile.ErrHeld) && ctx.Err() == nil { // another program of this session has it
			continue
		}
		if err != nil {
			return Holder{}, err
		}
		h.holder, h.unlock = LockHolder(path), unlock
		if err := h.table.End(ctx, h.holder); err != nil { // what a dead supervisor left under this lock
			return h.holder, err
		}
	}
	return h.holder, nil
}

func (h *Handler) acquire(ctx context.Context, c Call) (a Answer, err error) {
	if a.Owner, err = h.owner(c.Agent); err != nil {
		return a, err
	}
	r := Request{Owner: a.Owner, Targets: c.Targets, TTL: c.TTL}
	if r.Holder, err = h.hold(ctx); err != nil {
		return a, err
	}
	if c.Wait.wait() != 0 {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		default:
			return a, superqode.Errorf(superqode.ErrLocked, "%d requests of this run wait for claims already", maxWaits)
		}
	}
	a.Claims, err = h.table.Acquire(ctx, r, c.Wait.wait())
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		a.Conflict, err = &conflict.Conflict, nil
	}
	if err == nil {
		err = KeepGrants(h.Public, a.Claims)
	}
	return a, err
}

func (h *Handler) release(ctx context.Context, c Call) (a Answer, err error) {
	if a.Owner, err = h.owner(c.Agent); err == nil {
		a.Claims, err = h.table.Release(ctx, a.Owner, c.Targets)
	}
	return a, err
}

func (h *Handler) list(ctx context.Context, c Call) (a Answer, err error) {
	if a.Owner, err = h.owner(c.Agent); err == nil {
		a.Claims, a.Waiting, err = h.table.List(ctx)
	}
	return a, err
}

func (h *Handler) check(ctx context.Context, c Call) (a Answer, err error) {
	if a.Owner, err = h.owner(c.Agent); err != nil {
		return a, err
	}
	a.Verdict, err = h.table.verdict(ctx, a.Owner, c.Edits, h.Base.Translate)
	return a, err
}

// verdict holds edits, in lines of the files as they are, against the claims. base turns such lines
// into those of the base.
func (t *Table) verdict(ctx context.Context, o Owner, list []CallEdit, base func(context.Context, string, []Lines) ([]Lines, error)) (*Verdict, error) {
	var edits []Edit
	for _, e := range list {
		path, err := superqode.ParseRelPath(string(e.Bytes))
		if err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "%v", err)
		}
		lines, err := base(ctx, path.String(), e.Lines)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			edits = append(edits, Edit{Path: path, Lines: l})
		}
	}
	leases, _, err := t.List(ctx)
	v := Check(leases, o, edits)
	return &v, err
}

// maxWait is as good as for ever.
const maxWait = 366 * 24 * time.Hour

// Supervised asks the supervisor of the session whose program has the environment Env. Agent may be
// zero: then it is the run's own.
type Supervised struct {
	Env   []string
	Agent superqode.AgentID
}

// Ask sends one operation, and waits for the answer as long as the call may take.
func (s Supervised) Ask(ctx context.Context, op string, c Call) (a Answer, err error) {
	c.Agent = s.Agent
	if c.Wait.Forever || c.Wait.For > maxWait {
		c.Wait = Wait{For: maxWait}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait.For+10*time.Second)
	defer cancel()
	err = supervisor.Call(ctx, s.Env, op, c, &a)
	switch {
	case err != nil:
	case a.Conflict != nil:
		a.Conflict.Wanted, a.Conflict.Owner = c.Targets, a.Owner
		err = &ConflictError{Conflict: *a.Conflict}
	case op == OpCheck && a.Verdict == nil:
		err = errors.New("the supervisor gave no verdict")
	}
	return a, err
}

// Close ends the run's claims: the agent is done. The lock that says so is released
// even when ctx has ended, and a second Close does nothing.
func (h *Handler) Close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlock == nil {
		return nil
	}
	err := errors.Join(h.table.End(ctx, h.holder), h.unlock())
	h.unlock = nil
	return err
}
