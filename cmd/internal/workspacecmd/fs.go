package workspacecmd

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/workspace"
)

// FS groups the commands on the files of a workspace. No path and no link leads them out
// of it, and they leave its .git alone.
type FS struct {
	Read   fsRead   `cmd:"" help:"Print a file."`
	Write  fsWrite  `cmd:"" help:"Replace a file by what comes on stdin, or create it."`
	Append fsAppend `cmd:"" help:"Append what comes on stdin to a file."`
	Mv     fsMv     `cmd:"" help:"Rename a file or a folder."`
	Rm     fsRm     `cmd:"" help:"Remove a file."`
	Ls     fsLs     `cmd:"" help:"List a folder."`
	Stat   fsStat   `cmd:"" help:"Show type, mode, size and time of a file."`
	Glob   fsGlob   `cmd:"" help:"List the files that a pattern matches."`
}

// openFiles opens a session's workspace.
func openFiles(s *life.Session) (workspace.FS, io.Closer, error) {
	if s.Rec.State == superqode.StateDone {
		return nil, nil, superqode.Errorf(superqode.ErrNotFound, "session %s has ended and its workspace is gone", s.Rec.ID)
	}
	root, err := site.OpenWork(context.Background(), s.Site)
	if err != nil {
		return nil, nil, err
	}
	dir := workspace.NewDir(root, string(s.Rec.Inside()))
	return workspace.Scoped(dir, workspace.WithAllowWrite("**"), workspace.WithMandatoryDeny(".git")), dir, nil
}

// withFiles calls use with a session's files.
func withFiles(s *life.Session, use func(f workspace.FS) error) error {
	f, dir, err := openFiles(s)
	if err != nil {
		return err
	}
	err = use(f)
	if e, ok := errors.AsType[*workspace.Error](err); ok && errors.Is(e, syscall.EISDIR) {
		err = superqode.WithHint(err, "superqode workspace fs ls %s", text.Printable(e.Path))
		if e.Op == "delete" {
			err = superqode.WithHint(e, "superqode workspace fs rm --recursive %s", text.Printable(e.Path))
		}
	}
	return errors.Join(err, dir.Close())
}

// fsPath is the argument of most of them.
type fsPath struct {
	app.SessionFlag
	Path string `arg:"" name:"path" sep:"none" help:"Path in the workspace."`
}

type fsRead struct{ fsPath }

// Run prints the file as it is; with --json its content as text, or in base64 where it is
// not UTF-8.
func (c *fsRead) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return withFiles(s, func(f workspace.FS) error {
		data, err := f.Read(ctx, c.Path)
		if err != nil {
			return err
		}
		if !a.Flags.JSON {
			_, err = a.Out.Write(data)
			return err
		}
		content, encoding := string(data), "utf-8"
		if !utf8.Valid(data) {
			content, encoding = base64.StdEncoding.EncodeToString(data), "base64"
		}
		return printFile(a, s, c.Path, "size", len(data), "encoding", encoding, "content", content)
	})
}

// printFile prints what is said of one path.
func printFile(a *app.App, s *life.Session, name string, more ...any) error {
	printable, exact := superqode.JSONPath(name)
	fields := []any{"session_id", s.Rec.ID, "path", printable}
	if exact != "" {
		fields = append(fields, "path_bytes", exact)
	}
	return a.PrintFields(append(fields, more...)...)
}

type fsWrite struct{ fsPath }

// Run replaces the file at once: a reader sees the old content or the new one.
func (c *fsWrite) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return c.put(a, s, func(f workspace.FS, data []byte) error { return workspace.AtomicWrite(ctx, f, c.Path, data) })
}

type fsAppend struct{ fsPath }

// Run appends in one write.
func (c *fsAppend) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return c.put(a, s, func(f workspace.FS, data []byte) error { return f.Append(ctx, c.Path, data) })
}

// put passes stdin on.
func (c fsPath) put(a *app.App, s *life.Session, write func(workspace.FS, []byte) error) error {
	return withFiles(s, func(f workspace.FS) error {
		data, err := io.ReadAll(a.In)
		if err == nil {
			err = write(f, data)
		}
		if err != nil || !a.Flags.JSON {
			return err
		}
		return printFile(a, s, c.Path, "written", len(data))
	})
}

type fsMv struct {
	app.SessionFlag
	Old string `arg:"" name:"old" sep:"none" help:"Path in the workspace."`
	New string `arg:"" name:"new" sep:"none" help:"Its new path; missing folders are made."`
}

// Run prints nothing.
func (c *fsMv) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return withFiles(s, func(f workspace.FS) error {
		err := f.Rename(ctx, c.Old, c.New)
		if err != nil || !a.Flags.JSON {
			return err
		}
		return printFile(a, s, c.New, "old_path", c.Old)
	})
}

type fsRm struct {
	fsPath
	Recursive bool `short:"r" help:"Remove a folder and all that it holds; what is missing is no error."`
}

// Run prints nothing.
func (c *fsRm) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return withFiles(s, func(f workspace.FS) error {
		remove := f.Delete
		if c.Recursive {
			remove = f.RemoveAll
		}
		if err := remove(ctx, c.Path); err != nil || !a.Flags.JSON {
			return err
		}
		return printFile(a, s, c.Path)
	})
}

// fileJSON is what ls and stat say of one file.
type fileJSON struct {
	Name     string    `json:"name"`
	Bytes    string    `json:"name_bytes,omitempty"`
	Type     string    `json:"type"` // file, dir, link or other
	Mode     string    `json:"mode"` // four octal digits
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

func describe(info fs.FileInfo) fileJSON {
	kind := "other"
	switch info.Mode().Type() {
	case 0:
		kind = "file"
	case fs.ModeDir:
		kind = "dir"
	case fs.ModeSymlink:
		kind = "link"
	}
	name, exact := superqode.JSONPath(info.Name())
	return fileJSON{name, exact, kind, fmt.Sprintf("%04o", info.Mode().Perm()), info.Size(), info.ModTime().UTC()}
}

type fsLs struct {
	app.SessionFlag
	Path string `arg:"" optional:"" name:"path" sep:"none" help:"Folder in the workspace (default: its root)."`
}

// Run prints one name a line, a folder's with a slash.
func (c *fsLs) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return withFiles(s, func(f workspace.FS) error {
		list, err := f.List(ctx, c.Path)
		if err != nil {
			return err
		}
		files := []fileJSON{}
		for _, e := range list {
			if !a.Flags.JSON {
				name := text.Printable(e.Name())
				if e.IsDir() {
					name += "/"
				}
				if err := a.Line("%s", name); err != nil {
					return err
				}
				continue
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // it went away meanwhile
			} else if err != nil {
				return err
			}
			files = append(files, describe(info))
		}
		if !a.Flags.JSON {
			return nil
		}
		return printFile(a, s, path.Clean(c.Path), "files", files)
	})
}

type fsStat struct{ fsPath }

// Run prints one line.
func (c *fsStat) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return withFiles(s, func(f workspace.FS) error {
		info, err := f.Stat(ctx, c.Path)
		if err != nil {
			return err
		}
		d := describe(info)
		if a.Flags.JSON {
			return printFile(a, s, c.Path, "file", d)
		}
		return a.Line("%s  %s  %8d  %s  %s", d.Type, d.Mode, d.Size, d.Modified.Format(time.RFC3339), text.Printable(c.Path))
	})
}

type fsGlob struct {
	app.SessionFlag
	Patterns []string `arg:"" name:"pattern" sep:"none" help:"Patterns with *, ** and {a,b}; a folder's name stands for all files below."`
}

// Run prints one path a line.
func (c *fsGlob) Run(ctx context.Context, a *app.App, s *life.Session) error {
	return withFiles(s, func(f workspace.FS) error {
		found := []superqode.HostPath{}
		for _, pattern := range c.Patterns {
			list, err := workspace.Glob(ctx, f, pattern)
			if err != nil {
				return err
			}
			for _, name := range list {
				found = append(found, superqode.HostPath(name))
			}
		}
		if a.Flags.JSON {
			return a.PrintFields("session_id", s.Rec.ID, "paths", found)
		}
		for _, name := range found {
			if err := a.Line("%s", text.Printable(string(name))); err != nil {
				return err
			}
		}
		return nil
	})
}
