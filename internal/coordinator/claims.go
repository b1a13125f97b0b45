package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
)

// Place is where a command outside of a session's program makes claims: an origin,
// or a session that it names.
type Place struct {
	Project string              // the project's folder, which need not exist
	Root    string              // what the paths of the claims are relative to
	Session superqode.SessionID // zero: of nobody's session
	Folder  string              // that session's folder
	Base    *Base               // what its files were at its base

	// Ready is called before a claim is made: it makes the project's folder, or says
	// why nothing can be claimed.
	Ready func(context.Context) error
}

// Claims are the claims of one origin as such a command works with them. All
// sessions of the origin, and whoever works in the origin itself, see the same ones.
type Claims struct {
	Place
	Table  *Table
	Agent  superqode.AgentID // in whose name Ask speaks
	Holder Holder            // whose end ends what is claimed; zero: nobody's
}

// Asker answers the claim operations. Claims does for whoever stands outside of a session, Supervised
// for a session's program.
type Asker interface {
	// Ask does one operation. The error wraps a ConflictError when a claim was not granted.
	Ask(ctx context.Context, op string, c Call) (Answer, error)
}

// Ask does what the supervisor of a session would do for its program.
func (c *Claims) Ask(ctx context.Context, op string, call Call) (a Answer, err error) {
	a.Owner = Owner{Session: c.Session, Agent: c.Agent}
	switch op {
	case OpAcquire:
		a.Claims, err = c.Acquire(ctx, Request{Owner: a.Owner, Targets: call.Targets, TTL: call.TTL, Holder: c.Holder}, call.Wait)
	case OpRelease:
		a.Claims, err = c.Table.Release(ctx, a.Owner, call.Targets)
	case OpList:
		a.Claims, a.Waiting, err = c.Table.List(ctx)
	case OpCheck:
		a.Verdict, err = c.Table.verdict(ctx, a.Owner, call.Edits, c.Lines)
	}
	return a, err
}

// Open returns the claims. Nothing is made on disk.
func (p Place) Open() *Claims { return &Claims{Place: p, Table: OpenTable(p.Project)} }

// Acquire is Table.Acquire for a request of this place. A session remembers what it
// was granted.
func (c *Claims) Acquire(ctx context.Context, r Request, w Wait) ([]Lease, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
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
	m := NewLineMap(base, now)
	var out []Lines
	for _, l := range lines {
		out = append(out, m.ToBase(l))
	}
	return out, nil
}
