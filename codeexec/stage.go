package codeexec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/workspace"
)

// Input is one file or directory that is brought into a workspace.
type Input struct {
	// From is host:///PATH, absolute; workspace://PATH; skill://NAME[/PATH], below the
	// folder skills; or artifact://NAME[@VERSION], of the origin.
	From string `json:"from"`
	To   string `json:"to"` // relative to the workspace; "" is work/inputs/ and From's last word
}

// Staged is what became of an Input.
type Staged struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Resolved string `json:"resolved"` // the path, or the artifact's NAME@VERSION, which takes the same content again
}

// StageInputs copies inputs into the workspace, in their order, and stops at the first that
// fails: the error names it by its place in the list, and what is before it is returned.
func (w *Workspace) StageInputs(ctx context.Context, inputs ...Input) ([]Staged, error) {
	var staged []Staged
	for i, in := range inputs {
		scheme, rest, ok := strings.Cut(in.From, "://")
		if !ok || rest == "" {
			return staged, superqode.Errorf(superqode.ErrUsage, "inputs[%d].from: %q is not SCHEME://NAME", i, in.From)
		}
		base := path.Base(rest)
		if scheme == "artifact" {
			base, _, _ = strings.Cut(base, "@")
		}
		to := cmp.Or(in.To, path.Join(DirWork, "inputs", base))
		resolved, field, err := w.stage(ctx, scheme, rest, to)
		if err != nil {
			return staged, fmt.Errorf("inputs[%d].%s: %w", i, field, err)
		}
		staged = append(staged, Staged{in.From, to, resolved})
	}
	return staged, nil
}

// stage copies one input, and returns which field an error is about.
func (w *Workspace) stage(ctx context.Context, scheme, name, to string) (resolved, field string, err error) {
	if !filepath.IsLocal(to) {
		return "", "to", fmt.Errorf("%q: %w", to, workspace.ErrPathTraversal)
	}
	switch scheme {
	case "host":
		if !filepath.IsAbs(name) {
			return "", "from", superqode.Errorf(superqode.ErrUsage, "%q is not absolute", name)
		}
		return name, "from", w.StageDirectory(ctx, name, to, false)
	case "workspace", "skill":
		if scheme == "skill" {
			name = DirSkills + "/" + name
		}
		if !filepath.IsLocal(name) || scheme == "skill" && !strings.HasPrefix(path.Clean(name), DirSkills+"/") {
			return "", "from", fmt.Errorf("%q: %w", name, workspace.ErrPathTraversal)
		}
		root, err := atomicfile.OpenRoot(w.Dir.Root())
		if err != nil {
			return "", "from", err
		}
		defer root.Close()
		return filepath.Join(w.Dir.Root(), name), "from", w.copyTree(ctx, root, name, to, false)
	case "artifact":
		store, err := artifacts.Open(w.origin)
		if err != nil {
			return "", "from", err
		}
		a, err := store.Resolve(ctx, name)
		if err != nil {
			return "", "from", err
		}
		data, err := store.Read(a.Artifact, 0)
		if err != nil {
			return "", "from", err
		}
		return a.String(), "to", w.Dir.Write(ctx, to, data)
	}
	return "", "from", superqode.Errorf(superqode.ErrUsage, "%q is not host, workspace, skill or artifact", scheme)
}

// StageDirectory copies a directory or a file of this machine to a place in the workspace,
// with the permission bits. With readOnly nobody may write to the copy, but that programs of the
// same user can change it back. Links in it are copied as links; one that leads out of
// the source is workspace.ErrPathTraversal, and what is neither file, directory nor link is
// superqode.ErrUsage.
func (w *Workspace) StageDirectory(ctx context.Context, source, to string, readOnly bool) error {
	if !filepath.IsLocal(cmp.Or(to, ".")) {
		return fmt.Errorf("to: %q: %w", to, workspace.ErrPathTraversal)
	}
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	root, err := atomicfile.OpenRoot(filepath.Dir(source))
	if err != nil {
		return err
	}
	defer root.Close()
	return w.copyTree(ctx, root, filepath.Base(source), to, readOnly)
}

// copyTree copies from/name to a place in the workspace.
func (w *Workspace) copyTree(ctx context.Context, from *os.Root, name, to string, readOnly bool) error {
	dst, err := atomicfile.OpenRoot(w.Dir.Root())
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := dst.MkdirAll(path.Dir(path.Clean(to)), 0o755); err != nil {
		return err
	}
	name = path.Clean(name)
	var closed []string // directories that are made read-only when they are full
	err = fs.WalkDir(from.FS(), name, func(p string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p, name), "/")
		target := path.Join(to, rel)
		info, err := from.Lstat(p)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			closed = append(closed, target)
			if err := dst.MkdirAll(target, 0o755); err != nil {
				return err
			}
			return dst.Chmod(target, info.Mode().Perm()|0o700)
		case info.Mode().Type() == fs.ModeSymlink && rel != "":
			return copyLink(from, dst, p, rel, target)
		}
		return copyFile(ctx, from, dst, p, target, readOnly)
	})
	for i := len(closed) - 1; readOnly && err == nil && i >= 0; i-- {
		err = dst.Chmod(closed[i], 0o555)
	}
	return err
}

// copyLink copies a link that stays in the tree, in which it is rel.
func copyLink(from, dst *os.Root, p, rel, target string) error {
	to, err := from.Readlink(p)
	if err != nil {
		return err
	}
	if filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(filepath.Dir(rel), to)) {
		return fmt.Errorf("the link %q leads to %q: %w", p, to, workspace.ErrPathTraversal)
	}
	if err := dst.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dst.Symlink(to, target)
}

// copyFile replaces target by a copy, so that nothing is written through a link.
// Its holes stay holes: a program may have made a large file that holds nothing.
func copyFile(ctx context.Context, from, dst *os.Root, p, target string, readOnly bool) (err error) {
	in, err := from.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO is not waited for
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return superqode.Errorf(superqode.ErrUsage, "%q is no file", p)
	}
	if err := dst.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := dst.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	if readOnly {
		mode &^= 0o222
	}
	return errors.Join(treecopy.CopyContents(ctx, in, out), out.Chmod(mode), out.Close())
}
