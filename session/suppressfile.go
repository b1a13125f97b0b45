package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Suppressions edits an origin's SuppressionsFile. What a person wrote there
// stays, comments too, and several processes may edit it at once.
type Suppressions struct {
	m      *Manager
	p      state.Project
	origin string
}

// Suppressions returns the file of the origin around dir, which need not exist.
func (m *Manager) Suppressions(ctx context.Context, dir string) (*Suppressions, error) {
	o, err := m.Resolve(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Suppressions{m: m, p: m.ProjectOf(o), origin: o.Top}, nil
}

func (s *Session) suppressionsFile() *Suppressions {
	return &Suppressions{m: s.m, p: s.Project, origin: string(s.Rec.Origin)}
}

// Enter appends an entry, in the place of older ones with its fingerprint, and
// returns it as it stands there.
func (f *Suppressions) Enter(ctx context.Context, entry artifacts.Suppression) (artifacts.Suppression, error) {
	if entry.Added == "" {
		entry.Added = f.m.Now().UTC().Format("2006-01-02")
	}
	return entry, f.edit(ctx, func(data []byte, entries map[string]artifacts.Suppression) ([]byte, error) {
		old, there := entries[entry.Fingerprint]
		if there && old.Reason == entry.Reason && old.Expires == entry.Expires {
			return data, nil
		}
		if there {
			var err error
			if data, err = artifacts.WithoutSuppression(data, entry.Fingerprint); err != nil {
				return nil, err
			}
		}
		return artifacts.WithSuppression(data, entry)
	})
}

// Remove takes out the entry whose fingerprint is, or begins with, ref. The error
// wraps superqode.ErrNotFound when there is none.
func (f *Suppressions) Remove(ctx context.Context, ref string) (gone artifacts.Suppression, err error) {
	return gone, f.edit(ctx, func(data []byte, entries map[string]artifacts.Suppression) ([]byte, error) {
		var hits []string
		for print := range entries {
			if print == ref || len(ref) >= 4 && strings.HasPrefix(print, ref) {
				hits = append(hits, print)
			}
		}
		switch len(hits) {
		case 0:
			return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "%s has no entry for %q", artifacts.SuppressionsFile, ref), "superqode finding list")
		case 1:
			gone = entries[hits[0]]
			return artifacts.WithoutSuppression(data, hits[0])
		}
		return nil, superqode.Errorf(superqode.ErrUsage, "%q begins the fingerprints of %d entries of %s", ref, len(hits), artifacts.SuppressionsFile)
	})
}

// edit rewrites the file under a lock, unless change leaves it as it is.
func (f *Suppressions) edit(ctx context.Context, change func([]byte, map[string]artifacts.Suppression) ([]byte, error)) (err error) {
	if err := os.MkdirAll(f.p.Dir, 0o700); err != nil { // cleanup may have taken it
		return err
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(f.p.Dir, "suppressions.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	data, err := readSuppressions(f.origin)
	if err != nil {
		return err
	}
	entries, _, err := artifacts.ParseSuppressions(data)
	if err != nil {
		return superqode.Errorf(superqode.ErrUsage, "%v", err)
	}
	changed, err := change(data, entries)
	if err != nil || string(changed) == string(data) {
		return err
	}
	path := filepath.Join(f.origin, artifacts.SuppressionsFile)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return atomicfile.Write(path, changed, 0o644)
}
