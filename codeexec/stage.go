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
	"time"

	"go.opentelemetry.io/otel/attribute"

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
	To   string `json:"to"` // relative to the workspace; "" is work/inputs/ and From's last word, or the path that an artifact had
	// Mode is "copy", or "", or "link": a symbolic link, not of an artifact. Who writes
	// through it writes to what it leads to.
	Mode string `json:"mode"`
	// Pin takes the version again that the artifact had when it was first staged at To.
	Pin bool `json:"pin"`
}

// Staged is what became of an Input.
type Staged struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Resolved string `json:"resolved"` // the path, or the artifact's NAME@VERSION, which takes the same content again
	Version  int    `json:"version"`  // of an artifact
	Mode     string `json:"mode"`     // copy or link
}

// StageInputs brings inputs into the workspace, in their order, and stops at the first that
// fails: the error names it by its place in the list, and what is before it is returned. All
// that is returned is noted in the Metadata.
func (w *Workspace) StageInputs(ctx context.Context, inputs ...Input) (staged []Staged, err error) {
	ctx, end := w.span(ctx, spanInputs, attribute.Int("count", len(inputs)))
	defer func() { end(err) }()
	m, err := w.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		one, field, serr := w.stage(ctx, m, in)
		if serr != nil {
			err = fmt.Errorf("inputs[%d].%s: %w", i, field, serr)
			break
		}
		staged = append(staged, one)
	}
	if len(staged) == 0 {
		return staged, err
	}
	return staged, errors.Join(err, w.note(ctx, func(m *Metadata, now time.Time) {
		for _, one := range staged {
			m.Inputs = append(m.Inputs, InputRecord{one, now})
		}
	}))
}

// stage brings one input, and returns which field an error is about.
func (w *Workspace) stage(ctx context.Context, m Metadata, in Input) (s Staged, field string, err error) {
	scheme, name, ok := strings.Cut(in.From, "://")
	s = Staged{From: in.From, To: cmp.Or(in.To, path.Join(DirWork, "inputs", path.Base(name))), Mode: cmp.Or(in.Mode, modeCopy)}
	switch {
	case !ok || name == "":
		return s, "from", superqode.Errorf(superqode.ErrUsage, "%q is not SCHEME://NAME", in.From)
	case s.Mode != modeCopy && s.Mode != modeLink:
		return s, "mode", superqode.Errorf(superqode.ErrUsage, "%q is neither copy nor link", in.Mode)
	case !filepath.IsLocal(s.To):
		return s, "to", fmt.Errorf("%q: %w", s.To, workspace.ErrPathTraversal)
	}
	switch scheme {
	case "host":
		if !filepath.IsAbs(name) {
			return s, "from", superqode.Errorf(superqode.ErrUsage, "%q is not absolute", name)
		}
		if s.Resolved = name; s.Mode == modeLink {
			return s, "from", w.link(ctx, name, s.To)
		}
		return s, "from", w.StageDirectory(ctx, name, s.To, false)
	case "workspace", "skill":
		if scheme == "skill" {
			name = DirSkills + "/" + name
		}
		if !filepath.IsLocal(name) || scheme == "skill" && !strings.HasPrefix(path.Clean(name), DirSkills+"/") {
			return s, "from", fmt.Errorf("%q: %w", name, workspace.ErrPathTraversal)
		}
		if s.Resolved = filepath.Join(w.Dir.Root(), name); s.Mode == modeLink {
			return s, "from", w.link(ctx, s.Resolved, s.To)
		}
		root, err := atomicfile.OpenRoot(w.Dir.Root())
		if err != nil {
			return s, "from", err
		}
		defer root.Close()
		return s, "from", w.copyTree(ctx, root, name, s.To, false)
	case "artifact":
		if s.Mode == modeLink {
			return s, "mode", superqode.Errorf(superqode.ErrUsage, "an artifact is copied")
		}
		return w.stageArtifact(ctx, m, in, s, name)
	}
	return s, "from", superqode.Errorf(superqode.ErrUsage, "%q is not host, workspace, skill or artifact", scheme)
}

const (
	modeCopy = "copy"
	modeLink = "link"
)

// link makes a symbolic link in the place of what is at to.
func (w *Workspace) link(ctx context.Context, source, to string) error {
	if to = path.Clean(to); to == "." {
		return superqode.Errorf(superqode.ErrUsage, "the workspace itself cannot be a link")
	}
	if _, err := os.Stat(source); err != nil {
		return err
	}
	if rel, err := filepath.Rel(w.Dir.Root(), source); err == nil && filepath.IsLocal(rel) {
		source, _ = filepath.Rel(path.Dir(to), rel) // both are below the workspace
	}
	root, err := atomicfile.OpenRoot(w.Dir.Root())
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(root.MkdirAll(path.Dir(to), 0o755), w.Dir.RemoveAll(ctx, to)); err != nil {
		return err
	}
	return root.Symlink(source, to)
}

// stageArtifact copies a version of an artifact, with the mode and, where no place is named,
// at the path that it had.
func (w *Workspace) stageArtifact(ctx context.Context, m Metadata, in Input, s Staged, ref string) (Staged, string, error) {
	store, err := artifacts.Open(w.origin)
	if err != nil {
		return s, "from", err
	}
	a, err := store.Resolve(ctx, ref)
	if err != nil {
		return s, "from", err
	}
	if s.To = in.To; s.To == "" {
		s.To = path.Join(DirWork, "inputs", a.Name)
		if a.OriginalFile != "" && filepath.IsLocal(a.OriginalFile) {
			s.To = path.Join(DirWork, "inputs", a.OriginalFile)
		}
	}
	if old := m.pinned(in, s.To); old != "" {
		if a, err = store.Resolve(ctx, old); err != nil {
			return s, "pin", err
		}
	}
	s.Resolved, s.Version = a.String(), a.Version
	src, err := store.OpenArtifact(a.Artifact)
	if err != nil {
		return s, "from", err
	}
	defer src.Close()
	dst, err := atomicfile.OpenRoot(w.Dir.Root())
	if err != nil {
		return s, "to", err
	}
	defer dst.Close()
	to := path.Clean(s.To)
	if err := dst.MkdirAll(path.Dir(to), 0o755); err != nil {
		return s, "to", err
	}
	return s, "to", replaceFile(ctx, dst, to, src, cmp.Or(a.Perm(), 0o644))
}

// StageDirectory copies a directory or a file of this machine to a place in the workspace,
// with the permission bits. With readOnly nobody may write to the copy, but that programs of the
// same user can change it back. Links in it are copied as links; one that leads out of
// the source is workspace.ErrPathTraversal, and what is neither file, directory nor link is
// superqode.ErrUsage.
func (w *Workspace) StageDirectory(ctx context.Context, source, to string, readOnly bool) (err error) {
	ctx, end := w.span(ctx, spanDir, attribute.String("path", source), attribute.String("to", to), attribute.Bool("read_only", readOnly))
	defer func() { end(err) }()
	if !filepath.IsLocal(cmp.Or(to, ".")) {
		return fmt.Errorf("to: %q: %w", to, workspace.ErrPathTraversal)
	}
	source, err = filepath.EvalSymlinks(source)
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
	mode := info.Mode().Perm()
	if readOnly {
		mode &^= 0o222
	}
	return replaceFile(ctx, dst, target, in, mode)
}

// replaceFile puts a new file in the place of what is at target.
func replaceFile(ctx context.Context, dst *os.Root, target string, in *os.File, mode fs.FileMode) error {
	if err := dst.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := dst.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(treecopy.CopyContents(ctx, in, out), out.Chmod(mode), out.Close())
}
