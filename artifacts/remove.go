package artifacts

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/failpoint"
)

// Remove takes away all artifacts of one session, files and entries. A file that
// is not what the manifest recorded is somebody's work: it is spared with its
// entry and named in the problems.
func (s *Store) Remove(ctx context.Context, session superqode.SessionID) ([]Artifact, []Problem, error) {
	if session.IsZero() {
		return nil, nil, errors.New("remove artifacts: no session")
	}
	return s.remove(ctx, func([]Artifact) map[superqode.SessionID]bool { return map[superqode.SessionID]bool{session: true} }, removal{})
}

// PruneOptions says which sessions' artifacts may go. With both limits set a
// session must be beyond both.
type PruneOptions struct {
	KeepSessions int           // so many newest sessions stay; 0 sets no such limit
	OlderThan    time.Duration // sessions with a younger artifact stay; 0 sets no such limit
	Preserved    map[superqode.SessionID]bool
	DryRun       bool      // only say what would go
	Now          time.Time // zero means the present
}

// Prune takes away the artifacts of old sessions, as Remove does, never those of
// preserved ones, nor what was added outside a session or saved under a name. Temporary files that a
// killed writer left more than a day ago go too. It returns what was removed and
// what was spared, and why.
func (s *Store) Prune(ctx context.Context, opt PruneOptions) ([]Artifact, []Problem, error) {
	if opt.KeepSessions < 0 || opt.OlderThan < 0 || opt.KeepSessions == 0 && opt.OlderThan == 0 {
		return nil, nil, superqode.Errorf(superqode.ErrUsage, "prune needs a number of sessions to keep, an age, or both")
	}
	if opt.Now.IsZero() {
		opt.Now = time.Now()
	}
	return s.remove(ctx, opt.choose, removal{dry: opt.DryRun, keepSaved: true})
}

// choose decides which sessions go.
func (opt PruneOptions) choose(all []Artifact) map[superqode.SessionID]bool {
	newest := map[superqode.SessionID]time.Time{}
	for _, a := range all {
		if t := newest[a.Session]; !a.Session.IsZero() && !a.CreatedAt.Before(t) {
			newest[a.Session] = a.CreatedAt
		}
	}
	order := make([]superqode.SessionID, 0, len(newest))
	for id := range newest {
		order = append(order, id)
	}
	slices.SortFunc(order, func(a, b superqode.SessionID) int {
		return cmp.Or(newest[b].Compare(newest[a]), strings.Compare(b.String(), a.String()))
	})
	gone := map[superqode.SessionID]bool{}
	for i, id := range order {
		tooMany := opt.KeepSessions == 0 || i >= opt.KeepSessions
		tooOld := opt.OlderThan == 0 || opt.Now.Sub(newest[id]) > opt.OlderThan
		if tooMany && tooOld && !opt.Preserved[id] {
			gone[id] = true
		}
	}
	return gone
}

// removal says how artifacts are taken away.
type removal struct {
	dry       bool // only say what would go
	keepSaved bool // what was saved under a name stays; see Store.Save
}

func (s *Store) remove(ctx context.Context, choose func([]Artifact) map[superqode.SessionID]bool, how removal) (removed []Artifact, problems []Problem, err error) {
	if _, err := os.Lstat(s.Dir()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	err = s.update(ctx, func(p *place, m *manifest) (func() error, error) {
		gone := choose(m.artifacts())
		var failed error
		m.entries = slices.DeleteFunc(m.entries, func(e entry) bool {
			if failed != nil || e.opaque || !gone[e.Session] || how.keepSaved && e.version() > 0 {
				return false
			}
			if failed = ctx.Err(); failed != nil {
				return false
			}
			// Files go first: interrupted here, the entries are still there and the next
			// call finishes. The other way round nobody would know the files any more.
			why, err := removeFile(p.root, e.Artifact, how.dry)
			if err != nil {
				problems = append(problems, Problem{e.Path.String(), err.Error()})
				return false
			}
			if why != "" {
				problems = append(problems, Problem{e.Path.String(), why})
				return false
			}
			removed = append(removed, e.Artifact)
			return true
		})
		m.index = nil
		if how.dry {
			return nil, failed
		}
		sweepTemps(p.root, m)
		if len(removed) == 0 {
			return nil, failed
		}
		m.updated = At(now())
		return func() error { return nil }, nil
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return removed, problems, err
}

// removeFile removes an artifact's file and the folders that it leaves empty, and
// says why it did not.
func removeFile(root *os.Root, a Artifact, dry bool) (why string, err error) {
	rel := a.Path.String()
	if d := dirs(rel); len(d) == 0 || !slices.Contains(folders(), d[0]) {
		return "spared: it is in none of our folders", nil
	}
	sum, size, err := hashBelow(root, rel)
	_, kind := errors.AsType[*kindError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case kind || err == nil && (sum != a.SHA256 || size != a.Size):
		return "spared: it was changed after it was recorded", nil
	case err != nil || dry:
		return "", err
	}
	if err := failpoint.Err("artifacts.remove"); err != nil {
		return "", err
	}
	dir, err := openFolders(root, path.Dir(rel), false)
	if err != nil {
		return "", err
	}
	if err := errors.Join(dir.Remove(path.Base(rel)), dir.Close()); err != nil {
		return "", err
	}
	for d := path.Dir(rel); strings.Contains(d, "/"); d = path.Dir(d) {
		parent, err := openFolders(root, path.Dir(d), false)
		if err != nil {
			break
		}
		// Remove refuses a folder that is not empty: then somebody else's file is there.
		if errors.Join(parent.Remove(path.Base(d)), parent.Close()) != nil {
			break
		}
	}
	return "", nil
}

// sweepTemps removes the temporary files that a killed writer left. Failing to is
// no failure of what the caller wanted.
func sweepTemps(root *os.Root, m *manifest) {
	_ = walk(root, "", maxDepth, func(dir *os.Root, rel string, info fs.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && isTemp(path.Base(rel)) && m.byPath(rel) == nil && time.Since(info.ModTime()) > staleTemp {
			_ = dir.Remove(path.Base(rel))
		}
		return nil
	})
}
