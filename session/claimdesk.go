package session

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
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// The operations by which a program in a session reaches the claims.
const (
	OpClaimAcquire = "claim.acquire" // a ClaimCall with Targets → a ClaimAnswer
	OpClaimRelease = "claim.release" // a ClaimCall → a ClaimAnswer: what was ended
	OpClaimList    = "claim.list"    // → a ClaimAnswer
	OpClaimCheck   = "claim.check"   // a ClaimCall with Edits → a ClaimAnswer with a Verdict
)

// ClaimWait says how long to stand in the queue: not at all, for a while, or
// without an end.
type ClaimWait struct {
	For     time.Duration `json:"for,omitempty"`
	Forever bool          `json:"forever,omitempty"`
}

func (w ClaimWait) wait() time.Duration {
	if w.Forever {
		return -1
	}
	return max(w.For, 0)
}

// ClaimCall is what a program asks its supervisor.
type ClaimCall struct {
	Agent   superqode.AgentID    `json:"agent_id"`
	Targets []coordinator.Target `json:"targets,omitempty"` // to release: none is everything
	TTL     time.Duration        `json:"ttl,omitempty"`
	Wait    ClaimWait            `json:"wait,omitzero"`
	Edits   []ClaimEdit          `json:"edits,omitempty"`
}

// ClaimEdit is an edit of lines of a file as it is now.
type ClaimEdit struct {
	Bytes []byte              `json:"path"`
	Lines []coordinator.Lines `json:"lines"`
}

// ClaimAnswer is what it is told. A request that was not granted is no error of
// the protocol: Conflict says what is in the way.
type ClaimAnswer struct {
	Owner    coordinator.Owner     `json:"owner"`
	Claims   []coordinator.Lease   `json:"claims"`
	Waiting  []coordinator.Waiter  `json:"waiting,omitempty"`
	Conflict *coordinator.Conflict `json:"conflict,omitempty"`
	Verdict  *coordinator.Verdict  `json:"verdict,omitempty"`
}

// maxClaimWaits is how many requests of one program may wait at once, so that
// the supervisor has room for the others.
const maxClaimWaits = supervisor.MaxConnections / 2

// claimDesk answers the claim operations of one agent's run. The claims that it
// grants are held by a lock of the supervisor's, which the kernel drops with it.
type claimDesk struct {
	table *coordinator.Table
	agent superqode.AgentID
	id    superqode.SessionID
	dir   string // the session's folder
	keep  string // the folder of the session that people see
	base  *baseLines
	slots chan struct{}

	mu     sync.Mutex
	holder coordinator.Holder // from the first claim on
	unlock func() error
}

// openClaims prepares the desk of one run of an agent. It costs nothing until
// something is asked.
func (s *Session) openClaims() *claimDesk {
	id := s.PublicID()
	return &claimDesk{
		table: coordinator.OpenTable(s.Project.Dir), agent: s.Actor(), id: id, dir: s.Folder, keep: s.Project.SessionPath(id.String()),
		base: s.baseLines(), slots: make(chan struct{}, maxClaimWaits),
	}
}

// handlers adds the operations to those that a program may ask for.
func (d *claimDesk) handlers(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	for op, answer := range map[string]func(context.Context, ClaimCall) (ClaimAnswer, error){
		OpClaimAcquire: d.acquire, OpClaimRelease: d.release, OpClaimList: d.list, OpClaimCheck: d.check,
	} {
		m[op] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
			var c ClaimCall
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
func (d *claimDesk) owner(asked superqode.AgentID) (coordinator.Owner, error) {
	o := coordinator.Owner{Session: d.id, Agent: d.agent}
	switch {
	case o.Agent.IsZero():
		if o.Agent = asked; !asked.IsZero() {
			return o, nil
		}
		var err error
		o.Agent, err = superqode.ParseAgentID(d.id.String())
		return o, err
	case !asked.IsZero() && asked != o.Agent:
		return o, superqode.Errorf(superqode.ErrDenied, "this is the run of agent %s, which can not speak for %s", o.Agent, asked)
	}
	return o, nil
}

// hold takes the lock whose keeper holds this run's claims.
func (d *claimDesk) hold(ctx context.Context) (coordinator.Holder, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := 1; d.unlock == nil; n++ {
		path := filepath.Join(d.dir, "exec", "claims-"+strconv.Itoa(n)+".lock")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return coordinator.Holder{}, err
		}
		unlock, err := lockfile.TryLock(path)
		if errors.Is(err, lockfile.ErrHeld) && ctx.Err() == nil { // another program of this session has it
			continue
		}
		if err != nil {
			return coordinator.Holder{}, err
		}
		d.holder, d.unlock = coordinator.LockHolder(path), unlock
		if err := d.table.End(ctx, d.holder); err != nil { // what a dead supervisor left under this lock
			return d.holder, err
		}
	}
	return d.holder, nil
}

func (d *claimDesk) acquire(ctx context.Context, c ClaimCall) (a ClaimAnswer, err error) {
	if a.Owner, err = d.owner(c.Agent); err != nil {
		return a, err
	}
	r := coordinator.Request{Owner: a.Owner, Targets: c.Targets, TTL: c.TTL}
	if r.Holder, err = d.hold(ctx); err != nil {
		return a, err
	}
	if c.Wait.wait() != 0 {
		select {
		case d.slots <- struct{}{}:
			defer func() { <-d.slots }()
		default:
			return a, superqode.Errorf(superqode.ErrLocked, "%d requests of this run wait for claims already", maxClaimWaits)
		}
	}
	a.Claims, err = d.table.Acquire(ctx, r, c.Wait.wait())
	if conflict, ok := errors.AsType[*coordinator.ConflictError](err); ok {
		a.Conflict, err = &conflict.Conflict, nil
	}
	if err == nil {
		err = keepGrants(d.keep, a.Claims)
	}
	return a, err
}

func (d *claimDesk) release(ctx context.Context, c ClaimCall) (a ClaimAnswer, err error) {
	if a.Owner, err = d.owner(c.Agent); err == nil {
		a.Claims, err = d.table.Release(ctx, a.Owner, c.Targets)
	}
	return a, err
}

func (d *claimDesk) list(ctx context.Context, c ClaimCall) (a ClaimAnswer, err error) {
	if a.Owner, err = d.owner(c.Agent); err == nil {
		a.Claims, a.Waiting, err = d.table.List(ctx)
	}
	return a, err
}

func (d *claimDesk) check(ctx context.Context, c ClaimCall) (a ClaimAnswer, err error) {
	if a.Owner, err = d.owner(c.Agent); err != nil {
		return a, err
	}
	var edits []coordinator.Edit
	for _, e := range c.Edits {
		path, err := superqode.ParseRelPath(string(e.Bytes))
		if err != nil {
			return a, superqode.Errorf(superqode.ErrUsage, "%v", err)
		}
		lines, err := d.base.translate(ctx, path.String(), e.Lines)
		if err != nil {
			return a, err
		}
		for _, l := range lines {
			edits = append(edits, coordinator.Edit{Path: path.String(), Lines: l})
		}
	}
	leases, _, err := d.table.List(ctx)
	v := coordinator.Check(leases, a.Owner, edits)
	a.Verdict = &v
	return a, err
}

// close ends the run's claims: the agent is done.
func (d *claimDesk) close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unlock == nil {
		return nil
	}
	err := errors.Join(d.table.End(ctx, d.holder), d.unlock())
	d.unlock = nil
	return err
}
