package artifacts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Check is what Verify found.
type Check struct {
	Checked  int        // entries whose file was hashed
	Missing  []Artifact // entries whose file is gone
	Changed  []Artifact // entries whose file has another content or is no regular file
	Unknown  []string   // files that no entry names, raw bytes below qe-artifacts
	Problems []Problem  // what could not be checked, and why
}

// OK reports whether every entry's file is there with the recorded content,
// nothing else is, and everything could be checked.
func (c Check) OK() bool {
	return len(c.Missing)+len(c.Changed)+len(c.Unknown)+len(c.Problems) == 0
}

// Verify compares every file with the manifest. What other processes add or
// remove meanwhile is no finding: the list of files is taken under the lock, and
// what does not fit is looked at a second time under it.
func (s *Store) Verify(ctx context.Context) (c Check, err error) {
	p, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var m manifest
	err = s.whileLocked(ctx, p, func() (err error) {
		if m, err = s.loadForVerify(p, &c); err == nil {
			c.findUnknown(p, &m)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	var doubtful []Artifact
	for _, a := range m.artifacts() {
		if err := ctx.Err(); err != nil {
			return c, context.Cause(ctx)
		}
		if sum, size, err := hashBelow(p.root, a.Path.String()); err != nil || sum != a.SHA256 || size != a.Size {
			doubtful = append(doubtful, a)
			continue
		}
		c.Checked++
	}
	if len(doubtful) == 0 {
		return c, nil
	}
	err = s.whileLocked(ctx, p, func() error { return c.lookAgain(p, doubtful) })
	return c, err
}

// whileLocked runs do under the lock, or without it where the folder can not be
// written: then nobody else writes to it either.
func (s *Store) whileLocked(ctx context.Context, p *place, do func() error) (err error) {
	unlock, err := s.lock(ctx, p)
	if readOnly(err) {
		return do()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return do()
}

func (s *Store) loadForVerify(p *place, c *Check) (manifest, error) {
	m, _, problems, err := load(p.root)
	c.Problems = append(c.Problems, problems...)
	if _, broken := errors.AsType[*brokenError](err); broken { // not rebuilt here: that would verify files against themselves
		c.Problems = append(c.Problems, Problem{manifestName, err.Error()})
		err = nil
	}
	return m, err
}

func (c *Check) findUnknown(p *place, m *manifest) {
	err := walk(p.root, "", maxDepth, func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		switch {
		case rel == manifestName || strings.HasPrefix(rel, brokenPrefix) || isTemp(path.Base(rel)):
		case m.byPath(rel) != nil: // hashed, and named there when it is no file
		case err != nil:
			c.Problems = append(c.Problems, Problem{rel, err.Error()})
		default:
			c.Unknown = append(c.Unknown, rel)
		}
		return nil
	})
	if err != nil {
		c.Problems = append(c.Problems, Problem{".", err.Error()})
	}
}

// lookAgain decides about the entries that did not fit, by the manifest of now.
func (c *Check) lookAgain(p *place, doubtful []Artifact) error {
	m, _, _, err := load(p.root)
	if _, broken := errors.AsType[*brokenError](err); err != nil && !broken {
		return err
	}
	for _, a := range doubtful {
		e := m.byPath(a.Path.String())
		if e == nil {
			continue // removed meanwhile
		}
		sum, size, err := hashBelow(p.root, a.Path.String())
		_, kind := errors.AsType[*kindError](err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.Missing = append(c.Missing, e.Artifact)
		case kind || err == nil && (sum != e.SHA256 || size != e.Size):
			c.Changed = append(c.Changed, e.Artifact)
		case err != nil:
			c.Problems = append(c.Problems, Problem{a.Path.String(), err.Error()})
		default:
			c.Checked++
		}
	}
	return nil
}
