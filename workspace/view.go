package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/glob"
)

// Sub returns the view of one directory of f, which need not exist yet. It cannot be left
// by "..", nor by a link that leads out of that directory, be it to another place in f. A
// dir that leaves f shows as ErrPathTraversal in every call.
func Sub(f FS, dir string) FS {
	v := &view{inner: doerOf(f)}
	v.frame.dir, v.err = clean(dir)
	return methods{v}
}

// A ScopeOption is a rule of Scoped, or where violations go.
type ScopeOption func(*scope)

// WithAllowWrite lets what the patterns match be written, renamed and removed.
func WithAllowWrite(patterns ...string) ScopeOption {
	return func(s *scope) { s.add("allow-write", &s.allow, patterns) }
}

// WithDenyRead hides what the patterns match: it cannot be read, listed, renamed or
// removed, and List, Walk and Glob do not show it.
func WithDenyRead(patterns ...string) ScopeOption {
	return func(s *scope) { s.add("deny-read", &s.denyRead, patterns) }
}

// WithMandatoryDeny hides what the patterns match and keeps it from being written,
// whatever is allowed.
func WithMandatoryDeny(patterns ...string) ScopeOption {
	return func(s *scope) { s.add("mandatory-deny", &s.deny, patterns) }
}

// WithViolationLogger passes every call that is refused to log.
func WithViolationLogger(log ViolationLogger) ScopeOption {
	return func(s *scope) { s.log = log }
}

// A Violation is one call that was refused.
type Violation struct {
	Time      time.Time `json:"time"`
	Operation string    `json:"operation"` // as in Error.Op, or "exec"
	Path      string    `json:"path"`      // where the path leads; the command for "exec"
	Rule      string    `json:"rule"`
}

// A ViolationLogger receives violations. It may be called by several goroutines at once.
type ViolationLogger func(ctx context.Context, v Violation)

// Scoped returns a view of f that holds rules. Everything can be read unless a rule
// denies it, and nothing can be written unless WithAllowWrite matches and
// WithMandatoryDeny does not. The patterns are those of Glob, relative to f's root; one
// that denies a directory denies what is below it. Where a path leads is what is checked,
// and for what is denied also the path as it is given. A directory that holds something
// denied cannot be renamed or removed. A bad pattern shows as superqode.ErrUsage in every
// call, so that a rule that cannot be read lets nothing through.
func Scoped(f FS, options ...ScopeOption) FS {
	s := &scope{}
	for _, o := range options {
		o(s)
	}
	return methods{&view{inner: doerOf(f), frame: frame{scope: s}, err: s.err}}
}

// frame is what one view adds to a call: a directory that paths count from, or rules.
type frame struct {
	dir   string
	scope *scope
}

// view puts a frame around another tree or view.
type view struct {
	inner doer
	frame frame
	err   error // of its own making: nothing goes through
}

func (v *view) do(ctx context.Context, c call) (reply, error) {
	if v.err != nil {
		return reply{}, v.err
	}
	c.frames = slices.Concat([]frame{v.frame}, c.frames)
	r, err := v.inner.do(ctx, c)
	if e, ok := errors.AsType[*Error](err); ok && e.by != nil && e.by == v.frame.scope && !c.mute {
		e.by.report(ctx, Violation{Operation: string(c.op), Path: e.Path, Rule: e.Rule})
	} else if errors.Is(err, ErrPathTraversal) {
		v.traversal(ctx, c.op, c.name)
	}
	return r, err
}

// Capabilities implements CapabilityReporter: those of what lies below.
func (v *view) Capabilities() Capabilities {
	if r, ok := v.inner.(CapabilityReporter); ok {
		return r.Capabilities()
	}
	return Capabilities{}
}

// traversal logs a path that leaves the workspace.
func (v *view) traversal(ctx context.Context, o op, name string) {
	if v.frame.scope != nil {
		v.frame.scope.report(ctx, Violation{Operation: string(o), Path: name, Rule: "path-traversal"})
	}
}

// scope is the rules of one Scoped.
type scope struct {
	allow, denyRead, deny []pattern
	log                   ViolationLogger
	err                   error
}

func (s *scope) add(rule string, list *[]pattern, patterns []string) {
	for _, text := range patterns {
		p, err := parsePattern(text)
		if err != nil && s.err == nil {
			s.err = superqode.Errorf(superqode.ErrUsage, "%s: %v", rule, err)
		}
		*list = append(*list, p)
	}
}

func (s *scope) report(ctx context.Context, v Violation) {
	if s.log != nil {
		v.Time = time.Now().UTC()
		s.log(ctx, v)
	}
}

const notAllowed = "not in allow-write"

// check says which rule refuses an operation on a path, if one does.
func (s *scope) check(o op, name string, folds bool) error {
	refuse := func(rule string) error {
		return &Error{Path: name, Rule: rule, Kind: ErrAccessDenied, by: s}
	}
	if name == "." { // what is in the root is hidden, not the root
		if o.writes() && !slices.ContainsFunc(s.allow, pattern.Everything) {
			return refuse(notAllowed)
		}
		return nil
	}
	if p, ok := first(s.deny, name, folds, pattern.Covers); ok {
		return refuse("mandatory-deny " + p.text)
	}
	if o != opWrite && o != opAppend && o != opAtomic {
		if p, ok := first(s.denyRead, name, folds, pattern.Covers); ok {
			return refuse("deny-read " + p.text)
		}
	}
	if o.writes() {
		if _, ok := first(s.allow, name, folds, pattern.Match); !ok {
			return refuse(notAllowed)
		}
	}
	return nil
}

func first(list []pattern, name string, folds bool, match func(pattern, string) bool) (pattern, bool) {
	for _, p := range list {
		if folds {
			p.Pattern, name = p.Fold(), strings.ToLower(name)
		}
		if match(p, name) {
			return p, true
		}
	}
	return pattern{}, false
}

// place is where a path leads, and whose rules hold there.
type place struct {
	target string // from the tree's root, without links
	scopes []scopeAt
}

// scopeAt is a scope, where its root lies, and the path as it was given there.
type scopeAt struct {
	*scope
	base, asked string
}

// resolver returns a path without links, the last one followed where last says so.
type resolver func(name string, last bool) (string, error)

// locate finds a call's path below all its views: none is left, and each one's rules
// learn what the path is for it.
func (c call) locate(name string, resolve resolver) (place, error) {
	base := "."
	var p place
	for i, f := range c.frames {
		if f.scope != nil {
			at := scopeAt{f.scope, base, name}
			for _, g := range slices.Backward(c.frames[i+1:]) {
				at.asked = path.Join(g.dir, at.asked)
			}
			if err := at.named(c.op, c.folds); err != nil {
				return place{}, err // before anything is looked up that nobody shall know of
			}
			p.scopes = append(p.scopes, at)
			continue
		}
		next, err := resolve(path.Join(base, f.dir), true)
		if err == nil && !within(next, base) {
			err = ErrPathTraversal
		}
		if err != nil {
			return place{}, err
		}
		base = next
	}
	var err error
	p.target, err = resolve(path.Join(base, name), c.op.follows())
	if err == nil && !within(p.target, base) {
		err = ErrPathTraversal
	}
	return p, err
}

// lexical resolves paths where there are no links.
func lexical(name string, _ bool) (string, error) { return name, nil }

// allowed locates a call's path and asks all scopes.
func (c call) allowed(resolve resolver) (place, error) {
	p, err := c.locate(c.name, resolve)
	if err != nil {
		return p, err
	}
	return p, p.check(c)
}

// check asks all scopes.
func (p place) check(c call) error {
	for _, s := range p.scopes {
		if err := s.check(c.op, rel(p.target, s.base), c.folds); err != nil {
			return err
		}
		if err := s.named(c.op, c.folds); err != nil {
			return err
		}
	}
	return nil
}

// named says whether the path as it is given is denied.
func (s scopeAt) named(o op, folds bool) error {
	if err := s.check(o, s.asked, folds); err != nil && err.(*Error).Rule != notAllowed {
		return err
	}
	return nil
}

// join is the place of a name in it.
func (p place) join(name string) place {
	scopes := slices.Clone(p.scopes)
	for i := range scopes {
		scopes[i].asked = path.Join(scopes[i].asked, name)
	}
	return place{path.Join(p.target, name), scopes}
}

// lister reads a directory that a place leads to, and follows no link.
type lister func(ctx context.Context, dir string) ([]fs.DirEntry, error)

// tree asks the scopes about all that a call removes, or moves to another place: what
// lies in a directory goes with it.
func (p place) tree(ctx context.Context, c call, to *place, list lister) error {
	if len(p.scopes) == 0 {
		return nil
	}
	entries, err := list(ctx, p.target)
	if gone(err) || errors.Is(err, errChanged) {
		return nil // a file, nothing, or a link: it holds nothing
	}
	for _, e := range entries {
		below, there := p.join(e.Name()), to
		err = cmp.Or(err, below.check(c))
		if to != nil {
			at := to.join(e.Name())
			there, err = &at, cmp.Or(err, at.check(c))
		}
		if err == nil && e.IsDir() {
			err = below.tree(ctx, c, there, list)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// renames finds the new place of a Rename, and asks the scopes. The same place as the old
// one means that nothing is to be done.
func (c call) renames(ctx context.Context, p place, isDir bool, resolve resolver, list lister) (to place, err error) {
	if to, err = c.locate(c.to, resolve); err != nil {
		return to, err
	}
	if isDir && p.target != to.target && within(to.target, p.target) {
		return to, syscall.EINVAL
	}
	return to, cmp.Or(to.check(c), p.tree(ctx, c, &to, list))
}

// visible leaves out the entries of a list that a scope hides.
func (p place) visible(c call, list []fs.DirEntry) []fs.DirEntry {
	if len(p.scopes) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return p.join(e.Name()).check(c) != nil })
}

// within reports whether a clean path is a directory or lies below it.
func within(name, dir string) bool { return dir == "." || superqode.Within(name, dir) }

// rel returns a path as it reads in a directory that it lies in.
func rel(name, dir string) string {
	if dir == "." {
		return name
	}
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(name, dir), "/"))
}

// pattern is one of a rule.
type pattern struct {
	glob.Pattern
	text string
}

// parsePattern reads a pattern. The error wraps superqode.ErrUsage.
func parsePattern(text string) (pattern, error) {
	p, err := glob.Parse(text)
	if err != nil {
		return pattern{}, superqode.Errorf(superqode.ErrUsage, "pattern %q %v", text, err)
	}
	return pattern{p, text}, nil
}
