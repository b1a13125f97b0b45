package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
)

// FS is a file API over one directory tree. Paths are slash-separated and relative to
// its root, which is "" or "."; "..foo" is a name like others. An absolute path, and one
// with ".." as a component, is ErrPathTraversal whatever it would lead to. Errors are of
// type *Error. A call whose context has ended does nothing and returns the cause.
//
// Links that stay inside are followed, those with an absolute target too; one that leads
// out is ErrPathTraversal.
type FS interface {
	// Read returns a regular file's content. A missing file, and a link that leads
	// nowhere, is ErrNotFound; a directory is EISDIR, a file beyond MaxRead EFBIG.
	Read(ctx context.Context, name string) ([]byte, error)
	// Write replaces a file's content and keeps its mode, or creates the file (0644) and
	// its missing parents (0755). It is not atomic, see AtomicWrite. Over a directory it
	// fails with EISDIR and changes nothing. Through a link that leads nowhere it creates
	// what the link names.
	Write(ctx context.Context, name string, data []byte) error
	// Append adds to the end of a file, in one write, and creates it as Write does.
	Append(ctx context.Context, name string, data []byte) error
	// Rename moves a file or a directory, atomically where Capabilities say so, creates
	// the missing parents of its new name, and replaces a file, a link or an empty
	// directory that stands there. A directory that is not empty is ENOTEMPTY. A link is
	// moved itself. A missing oldname is ErrNotFound, and nothing is created.
	Rename(ctx context.Context, oldname, newname string) error
	// Delete removes one file, or a link itself. A missing one is ErrNotFound; a directory
	// is EISDIR, be it empty: RemoveAll removes it.
	Delete(ctx context.Context, name string) error
	// RemoveAll removes a file, a link itself, or a directory with all that it holds. It
	// is nil for what is missing. The root is ErrAccessDenied.
	RemoveAll(ctx context.Context, name string) error
	// List returns a directory's entries, sorted by name; a link is listed as a link. A
	// missing directory is ErrNotFound, a file ENOTDIR.
	List(ctx context.Context, name string) ([]fs.DirEntry, error)
	// Exists is false, without an error, where Stat is ErrNotFound.
	Exists(ctx context.Context, name string) (bool, error)
	// Stat follows links; the entries of List describe the links themselves.
	Stat(ctx context.Context, name string) (fs.FileInfo, error)
}

// MaxRead is how many bytes of a file Read holds in memory.
const MaxRead = 1 << 30

// The errors that callers branch on, beside superqode.ErrNotFound, which every missing
// file satisfies together with fs.ErrNotExist.
var (
	// ErrPathTraversal means that a path, or a link on it, leaves the workspace.
	ErrPathTraversal = superqode.Errorf(superqode.ErrUsage, "the path leaves the workspace")
	// ErrAccessDenied means that a rule of Scoped or AllowCommands refuses the call, or
	// that it would remove the root.
	ErrAccessDenied = superqode.Errorf(superqode.ErrDenied, "access denied")
	// ErrNotAvailable means that this machine, or this FS, cannot hold what was asked for.
	ErrNotAvailable = errors.New("not available here")
)

// Error says which call failed, on which path and why.
type Error struct {
	Op   string // read, write, append, rename, delete, remove, list, exists, stat
	Path string // as it was given
	Rule string // the rule that refused, for ErrAccessDenied
	Kind error  // ErrPathTraversal, ErrAccessDenied, superqode.ErrNotFound, or nil
	Err  error  // the system's reason, often an errno, or nil

	by *scope
}

// Error returns one sentence.
func (e *Error) Error() string {
	why := e.Err
	if why == nil {
		why = e.Kind
	}
	text := e.Op + " " + printable(e.Path) + ": " + why.Error()
	if e.Rule != "" {
		text += " (" + e.Rule + ")"
	}
	return text
}

// Unwrap returns the kind and the reason.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.Err}, func(err error) bool { return err == nil })
}

// Is lets standard tools recognise what is missing and what is denied.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && e.Kind == superqode.ErrNotFound ||
		target == fs.ErrPermission && e.Kind == ErrAccessDenied
}

func printable(name string) string {
	if name == "" {
		return "."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
}

// A call is one operation on its way from the outermost view to the tree.
type call struct {
	op   op
	name string // clean
	to   string // the new name of a Rename, clean
	data []byte
	mode fs.FileMode // of a file that a write creates, 0 for the default
	mute bool        // what a scope denies is not a violation: nobody asked for it by name

	frames []frame // the views above, the innermost first
	folds  bool    // the tree takes names of another case for the same
}

type op string

const (
	opRead   op = "read"
	opWrite  op = "write"
	opAtomic op = "atomic write"
	opAppend op = "append"
	opRename op = "rename"
	opDelete op = "delete"
	opRemove op = "remove"
	opList   op = "list"
	opExists op = "exists"
	opStat   op = "stat"
	opExec   op = "exec"
	opClone  op = "clone"
	opPull   op = "pull"
)

func (o op) writes() bool {
	switch o {
	case opRead, opList, opExists, opStat, opExec:
		return false
	}
	return true
}

// opens reports whether a program is to start in the directory.
func (o op) opens() bool { return o == opExec || o == opClone || o == opPull }

// creates reports whether missing directories are made.
func (o op) creates() bool { return o == opWrite || o == opAppend || o == opAtomic || o == opClone }

// follows reports whether a link at the end of the path is followed.
func (o op) follows() bool { return o != opRename && o != opDelete && o != opRemove }

type reply struct {
	data    []byte
	entries []fs.DirEntry
	info    fs.FileInfo
	dir     *os.File // where a command starts
}

// A doer is a tree, or a view of one.
type doer interface {
	do(ctx context.Context, c call) (reply, error)
}

// methods turns a doer into an FS.
type methods struct{ doer }

// run checks what is the same for every call.
func (m methods) run(ctx context.Context, c call) (reply, error) {
	if ctx.Err() != nil {
		return reply{}, context.Cause(ctx)
	}
	name := c.name
	var err error
	if c.name, err = clean(c.name); err == nil && c.op == opRename {
		name = c.to
		c.to, err = clean(c.to)
	}
	if err != nil {
		return reply{}, m.told(ctx, &Error{Op: string(c.op), Path: name, Kind: err})
	}
	if err := c.root(); err != nil {
		return reply{}, err
	}
	r, err := m.do(ctx, c)
	if c.op == opRemove && gone(err) {
		err = nil
	}
	return r, fail(c, err)
}

// root refuses what no root can bear.
func (c call) root() error {
	switch {
	case c.name == "." && (c.op == opRemove || c.op == opRename) || c.op == opRename && c.to == ".":
		return &Error{Op: string(c.op), Path: ".", Kind: ErrAccessDenied, Err: errors.New("the root stays")}
	case c.name == "." && c.op != opList && c.op != opStat && c.op != opExists && !c.op.opens():
		return &Error{Op: string(c.op), Path: ".", Err: syscall.EISDIR}
	}
	return nil
}

// told passes a path that leaves the workspace to the scopes' loggers.
func (m methods) told(ctx context.Context, err *Error) error {
	for v, ok := m.doer.(*view); ok && err.Kind == ErrPathTraversal; v, ok = v.inner.(*view) {
		v.traversal(ctx, op(err.Op), err.Path)
	}
	return err
}

// fail gives an error the call's name and path, and its kind.
func fail(c call, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Op = string(c.op)
		if e.by == nil { // a scope names what it refuses, which may lie below
			e.Path = c.name
		}
		return e
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &Error{Op: string(c.op), Path: c.name, Err: reason(err)}
	switch {
	case errors.Is(err, ErrPathTraversal):
		e.Kind, e.Err = ErrPathTraversal, nil
	case errors.Is(err, fs.ErrNotExist), gone(err) && c.op != opList && !c.op.writes():
		e.Kind = superqode.ErrNotFound
	}
	return e
}

// gone reports whether an error means that nothing is there.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// reason is an error without the paths that the os package adds.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// clean returns a path without "." and doubled slashes; the root is ".".
func clean(name string) (string, error) {
	switch {
	case strings.HasPrefix(name, "/"), slices.Contains(strings.Split(name, "/"), ".."):
		return "", ErrPathTraversal
	case strings.ContainsRune(name, 0):
		return "", superqode.Errorf(superqode.ErrUsage, "the path holds a NUL byte")
	}
	return path.Clean(name), nil
}

// Read implements FS.
func (m methods) Read(ctx context.Context, name string) ([]byte, error) {
	r, err := m.run(ctx, call{op: opRead, name: name})
	return r.data, err
}

// Write implements FS.
func (m methods) Write(ctx context.Context, name string, data []byte) error {
	_, err := m.run(ctx, call{op: opWrite, name: name, data: data})
	return err
}

// Append implements FS.
func (m methods) Append(ctx context.Context, name string, data []byte) error {
	_, err := m.run(ctx, call{op: opAppend, name: name, data: data})
	return err
}

// Rename implements FS.
func (m methods) Rename(ctx context.Context, oldname, newname string) error {
	_, err := m.run(ctx, call{op: opRename, name: oldname, to: newname})
	return err
}

// Delete implements FS.
func (m methods) Delete(ctx context.Context, name string) error {
	_, err := m.run(ctx, call{op: opDelete, name: name})
	return err
}

// RemoveAll implements FS.
func (m methods) RemoveAll(ctx context.Context, name string) error {
	_, err := m.run(ctx, call{op: opRemove, name: name})
	return err
}

// List implements FS.
func (m methods) List(ctx context.Context, name string) ([]fs.DirEntry, error) {
	r, err := m.run(ctx, call{op: opList, name: name})
	return r.entries, err
}

// Exists implements FS.
func (m methods) Exists(ctx context.Context, name string) (bool, error) {
	_, err := m.run(ctx, call{op: opExists, name: name})
	if errors.Is(err, superqode.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Stat implements FS.
func (m methods) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	r, err := m.run(ctx, call{op: opStat, name: name})
	return r.info, err
}
