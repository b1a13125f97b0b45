package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// Place is where claims are made: an origin, or a session.
type Place struct {
	Project string              // the project's folder, which need not exist
	Root    string              // what the paths of the claims are relative to
	Session superqode.SessionID // zero: of nobody's session
	Folder  string              // that session's folder
	Base    *Base               // what its files were at its base

	// Ready, if there is one, is called before a claim is made: it makes the project's
	// folder, or says why nothing can be claimed.
	Ready func(context.Context) error
}

// Claims are the claims of one origin as a command works with them, or the
// supervisor of a session for its program. All sessions of the origin, and whoever
// works in the origin itself, see the same ones.
type Claims struct {
	Place
	Table  *Table
	Agent  superqode.AgentID // in whose name Ask speaks
	Holder Holder            // whose end ends what is claimed; zero: nobody's
}

// Asker answers the claim operations. Claims does for whoever stands outside of a
// session, Supervised for a session's program.
type Asker interface {
	// Ask does one operation. The error wraps a ConflictError when a claim was not granted.
	Ask(ctx context.Context, op string, c Call) (Answer, error)
}

// Ask does one operation.
func (c *Claims) Ask(ctx context.Context, op string, call Call) (a Answer, err error) {
	a.Owner = Owner{Session: c.Session, Agent: c.Agent}
	switch op {
	case OpAcquire:
		r := Request{Owner: a.Owner, Targets: call.Targets, TTL: call.TTL, Holder: c.Holder}
		a.Claims, err = c.Acquire(ctx, r, call.Wait)
	case OpRelease:
		a.Claims, err = c.Table.Release(ctx, a.Owner, call.Targets)
	case OpList:
		a.Claims, a.Waiting, err = c.Table.List(ctx)
	case OpCheck:
		a.Verdict, err = c.verdict(ctx, a.Owner, call.Edits)
	}
	return a, err
}

// Open returns the claims. Nothing is made on disk.
func (p Place) Open() *Claims { return &Claims{Place: p, Table: OpenTable(p.Project)} }

// Acquire is Table.Acquire for a request of this place. A session remembers what it
// was granted.
func (c *Claims) Acquire(ctx context.Context, r Request, w Wait) ([]Lease, error) {
	if c.Ready != nil {
		if err := c.Ready(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.keepBase(ctx, r.Targets); err != nil {
		return nil, err
	}
	r.Session = c.Session
	leases, err := c.Table.Acquire(ctx, r, w.wait())
	if err == nil && c.Folder != "" {
		err = KeepGrants(c.Folder, leases)
	}
	return leases, err
}

// Lines turns the lines of a file as it is now into lines of the session's base, or,
// outside of sessions, of what the file held when lines of it were first claimed.
func (c *Claims) Lines(ctx context.Context, path string, lines []Lines) ([]Lines, error) {
	if c.Base == nil {
		return c.fromBase(ctx, path, lines)
	}
	return c.Base.Translate(ctx, path, lines)
}

// GrantsPath is the file in a session's folder that has a line for every claim that
// its agents were granted. When changes are applied or merged the claims themselves
// are gone, with the agents.
func GrantsPath(folder string) string { return filepath.Join(folder, "grants.jsonl") }

// KeepGrants writes down what a session's agents were granted.
func KeepGrants(folder string, leases []Lease) error {
	if len(leases) == 0 {
		return nil
	}
	if err := atomicfile.ClearWay(GrantsPath(folder)); err != nil {
		return err
	}
	return ledger.Append(GrantsPath(folder), leases...)
}

// Grants returns every claim that a session's agents have had.
func Grants(folder string) ([]Lease, error) {
	leases, _, err := ledger.Read[Lease](GrantsPath(folder))
	return leases, err
}

// Outside of sessions the base of a file is what it held when lines of it were
// first claimed. That is kept in claims.base in the project's folder for as long
// as somebody has such a claim, so that lines which are added above later do not
// move a claim onto others.

// basePath is where the base of a file is kept.
func (c *Claims) basePath(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(c.Project, "claims.base", hex.EncodeToString(sum[:]))
}

// ofLines reports whether a target is lines of a file.
func ofLines(t Target) bool {
	return t.Kind == KindFile && t.Lines != (Lines{})
}

// based returns the files of whose lines somebody outside of sessions has a claim.
func (c *Claims) based(ctx context.Context) (map[string]bool, error) {
	leases, _, err := c.Table.List(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for _, l := range leases {
		if l.Session.IsZero() && ofLines(l.Target) {
			files[l.Target.Path] = true
		}
	}
	return files, nil
}

// keepBase keeps what the files hold of which lines are about to be claimed, and
// forgets those of which nobody has a claim any more.
func (c *Claims) keepBase(ctx context.Context, targets []Target) error {
	if c.Base != nil || !slices.ContainsFunc(targets, ofLines) {
		return nil
	}
	files, err := c.based(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for path := range files {
		used[filepath.Base(c.basePath(path))] = true
	}
	dir := filepath.Join(c.Project, "claims.base")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if !used[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	for _, t := range targets {
		if !ofLines(t) || files[t.Path] {
			continue
		}
		now, err := readBelow(c.Root, t.Path)
		if err != nil {
			continue // not there, or no file: its lines are what they are called
		}
		if err := atomicfile.Replace(c.basePath(t.Path), now, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fromBase turns lines of a file as it is now into those of its base.
func (c *Claims) fromBase(ctx context.Context, path string, lines []Lines) ([]Lines, error) {
	files, err := c.based(ctx)
	if err != nil || !files[path] {
		return lines, err
	}
	base, err := atomicfile.Read(c.basePath(path))
	if errors.Is(err, os.ErrNotExist) {
		return lines, nil // there was no such file when it was claimed
	}
	if err != nil {
		return nil, err
	}
	now, err := readBelow(c.Root, path)
	if err != nil {
		return lines, nil // not there any more, or no file
	}
	return toBase(base, now, lines), nil
}

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

// Handler answers the claim operations of one run. The claims that it grants are
// held by a lock of the supervisor's, which the kernel drops with it.
type Handler struct {
	claims Claims // its Agent is zero where the program says for whom it asks
	locks  string // the folder for the lock
	slots  chan struct{}

	mu     sync.Mutex
	holder Holder // from the first claim on
	unlock func() error
}

// Handle prepares a Handler for an agent's run in a session, whose own folder takes
// the lock. It costs nothing until something is asked.
func (p Place) Handle(agent superqode.AgentID, folder string) *Handler {
	h := &Handler{claims: *p.Open(), locks: filepath.Join(folder, "exec"), slots: make(chan struct{}, maxWaits)}
	h.claims.Agent = agent
	return h
}

// AddTo adds the operations to those that a program may ask for.
func (h *Handler) AddTo(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	for _, op := range []string{OpAcquire, OpRelease, OpList, OpCheck} {
		m[op] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
			var c Call
			if err := json.Unmarshal(args, &c); err != nil {
				return nil, superqode.Errorf(superqode.ErrUsage, "not a request for claims: %v", err)
			}
			return h.answer(ctx, op, c)
		}
	}
	return m
}

// answer does one operation for the program.
func (h *Handler) answer(ctx context.Context, op string, c Call) (a Answer, err error) {
	if a.Owner, err = h.owner(c.Agent); err != nil {
		return a, err
	}
	claims := h.claims
	claims.Agent = a.Owner.Agent
	if op == OpAcquire {
		if claims.Holder, err = h.hold(ctx); err != nil {
			return a, err
		}
		if c.Wait.wait() != 0 {
			select {
			case h.slots <- struct{}{}:
				defer func() { <-h.slots }()
			default:
				return a, superqode.Errorf(superqode.ErrLocked, "%d requests of this run wait for claims already",
					maxWaits)
			}
		}
	}
	a, err = claims.Ask(ctx, op, c)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		a.Conflict, err = &conflict.Conflict, nil
	}
	return a, err
}

// owner decides in whose name a program speaks: its own agent's, or, where the
// run has none, whom it names, or the session itself.
func (h *Handler) owner(asked superqode.AgentID) (Owner, error) {
	o := Owner{Session: h.claims.Session, Agent: h.claims.Agent}
	switch {
	case o.Agent.IsZero():
		if o.Agent = asked; !asked.IsZero() {
			return o, nil
		}
		var err error
		o.Agent, err = superqode.ParseAgentID(o.Session.String())
		return o, err
	case !asked.IsZero() && asked != o.Agent:
		return o, superqode.Errorf(superqode.ErrDenied, "this is the run of agent %s, which cannot speak for %s",
			o.Agent, asked)
	}
	return o, nil
}

// hold takes the lock whose keeper holds this run's claims.
func (h *Handler) hold(ctx context.Context) (Holder, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := 1; h.unlock == nil; n++ {
		path := filepath.Join(h.locks, "claims-"+strconv.Itoa(n)+".lock")
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
		if err := h.claims.Table.End(ctx, h.holder); err != nil { // what a dead supervisor left under this lock
			return h.holder, err
		}
	}
	return h.holder, nil
}

// verdict holds edits, in lines of the files as they are, against the claims.
func (c *Claims) verdict(ctx context.Context, o Owner, list []CallEdit) (*Verdict, error) {
	var edits []Edit
	for _, e := range list {
		path, err := superqode.ParseRelPath(string(e.Bytes))
		if err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "%v", err)
		}
		lines, err := c.Lines(ctx, path.String(), e.Lines)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			edits = append(edits, Edit{Path: path, Lines: l})
		}
	}
	leases, _, err := c.Table.List(ctx)
	v := Check(leases, o, edits)
	return &v, err
}

// maxWait is as good as for ever.
const maxWait = 366 * 24 * time.Hour

// Supervised asks the supervisor of the session whose program has the environment
// Env. Agent may be zero: then it is the run's own.
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
	err := errors.Join(h.claims.Table.End(ctx, h.holder), h.unlock())
	h.unlock = nil
	return err
}
