package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
)

// New describes an artifact to be added. Exactly one of Data, Content and File
// gives the content; Data may be empty for an empty file.
type New struct {
	Type Type
	// Name is what people call it; "" means the file's own name.
	Name string
	// Path is where the file shall stand below qe-artifacts, in one of the folders
	// of docs/formats.md. An earlier artifact of the same session at that path
	// is replaced and keeps its id. "" means the type's folder, the session's
	// sub-folder and the file's own name, and never replaces: where the name is
	// taken by other content a number is appended.
	Path         string
	Description  string
	Metadata     map[string]any
	OriginalFile string
	Again        bool                // of Save: a new version even of the same content
	Session      superqode.SessionID // zero: added outside a session
	Agent        superqode.AgentID

	Data    []byte
	Content io.Reader
	File    string // path of a regular file, copied; a symbolic link is refused

	// Mask, where set, stands between the content and the store; closing it
	// completes the content.
	Mask func(io.Writer) io.WriteCloser
}

// Add adds one artifact; see AddAll.
func (s *Store) Add(ctx context.Context, n New) (Artifact, error) {
	list, err := s.AddAll(ctx, []New{n})
	if len(list) == 1 {
		return list[0], err
	}
	return Artifact{}, err
}

// AddAll adds several artifacts with one write of the manifest: all of them or,
// with an error, none. Adding the same content to the same path again, as after
// an interruption, changes nothing and returns the entry that is there.
func (s *Store) AddAll(ctx context.Context, list []New) ([]Artifact, error) {
	items := make([]*item, len(list))
	paths := map[string]bool{}
	for i, n := range list {
		it, err := newItem(n)
		if err != nil {
			return nil, fmt.Errorf("add artifact %q: %w", n.Name, err)
		}
		if it.replace && paths[n.Path] {
			return nil, fmt.Errorf("add artifact %q: path %q is given twice", n.Name, n.Path)
		}
		paths[n.Path] = true
		items[i] = it
	}
	if len(items) == 0 {
		return nil, nil
	}
	err := s.stage(ctx, items)
	for _, it := range items {
		if it.err != nil && err == nil {
			err = fmt.Errorf("add artifact %q: %w", it.Name, it.err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.drop(items))
	}
	return s.commit(ctx, items)
}

// item is an artifact on its way in.
type item struct {
	Artifact
	again   bool // saved: a new version in any case
	replace bool // take over the path from an earlier artifact of the same session
	saved   bool // becomes the next version of its name; see Store.Save
	ext     string
	mask    func(io.Writer) io.WriteCloser
	open    func() (io.ReadCloser, error)
	folder  string
	tmp     string // name in folder once the content is there; "" when it has been used up
	limit   int64  // most bytes that are read; 0 means no limit
	err     error  // why the content could not be read
	torn    bool   // the content was written to while it was read
}

func newItem(n New) (*item, error) {
	if _, err := ParseType(string(n.Type)); err != nil {
		return nil, err
	}
	base := n.Name
	if n.File != "" {
		base = filepath.Base(n.File)
	}
	it := &item{replace: n.Path != "", mask: n.Mask}
	if n.Path == "" {
		session := n.Session.String()
		if session == "" {
			session = "manual"
		}
		base = path.Base(base)
		if base == "" || base == "." || base == "/" || base == ".." {
			return nil, fmt.Errorf("no name to file it under")
		}
		n.Path = path.Join(n.Type.folder(), session, base)
	}
	rel, err := superqode.ParseRelPath(n.Path)
	if err != nil {
		return nil, err
	}
	if d := dirs(n.Path); len(d) == 0 || !slices.Contains(folders(), d[0]) {
		return nil, fmt.Errorf("path %q is in none of the folders %v", n.Path, folders())
	}
	if n.Name == "" {
		n.Name = path.Base(n.Path)
	}
	it.Artifact = Artifact{
		Type: n.Type, Name: n.Name, Path: rel, Description: n.Description, Metadata: n.Metadata, OriginalFile: n.OriginalFile,
		Session: n.Session, Agent: n.Agent, CreatedAt: now(),
	}
	it.folder = path.Dir(n.Path)
	switch {
	case n.File != "":
		it.open = func() (io.ReadCloser, error) { return openFile(n.File) }
	case n.Content != nil:
		it.open = func() (io.ReadCloser, error) { return io.NopCloser(n.Content), nil }
	default:
		it.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(n.Data)), nil }
	}
	return it, nil
}

// openFile opens a regular file by path: links above it are the caller's way of
// naming it, the file itself must not be one.
func openFile(name string) (io.ReadCloser, error) {
	dir, err := atomicfile.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return openRegular(dir, filepath.Base(name))
}
