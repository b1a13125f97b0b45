package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
)

// loadOrRebuild reads the manifest; a broken one, or a missing one where there are
// files, is rebuilt from what can still be read and from the files. With save the
// broken file is kept beside it first. The caller holds the lock.
func (s *Store) loadOrRebuild(root *os.Root, save bool) (manifest, error) {
	m, data, problems, err := load(root)
	broken, isBroken := errors.AsType[*brokenError](err)
	if err != nil && !isBroken {
		return m, err
	}
	s.warn(problems...)
	if !isBroken && data != nil {
		return m, nil
	}
	kept := len(m.entries)
	found, problems := m.adopt(root)
	if !isBroken && found == 0 {
		return m, nil // a new store
	}
	why := "was missing"
	if isBroken {
		why = "was broken (" + broken.err.Error() + ")"
		if save {
			aside := brokenPrefix + freeNumber(root, brokenPrefix)
			if err := replaceFile(root, aside, data); err != nil {
				return m, err
			}
			why += ", is kept as " + aside
		}
	}
	s.warn(Problem{manifestName, fmt.Sprintf("%s; rebuilt: %d entries could be read, %d files entered anew", why, kept, found)})
	s.warn(problems...)
	if !save {
		return m, nil
	}
	m.updated = At(now())
	return m, writeManifest(root, &m, func() error { return nil })
}

// rebuildForReading rebuilds a broken manifest for a caller that only wants to
// read: on disk where that can be written, else in memory.
func (s *Store) rebuildForReading(ctx context.Context, p *place) (m manifest, err error) {
	unlock, err := s.lock(ctx, p)
	if readOnly(err) {
		return s.loadOrRebuild(p.root, false)
	}
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err = s.loadOrRebuild(p.root, true)
	if readOnly(err) {
		return s.loadOrRebuild(p.root, false)
	}
	return m, err
}

func freeNumber(root *os.Root, prefix string) string {
	for n := 1; ; n++ {
		text := fmt.Sprint(n)
		if _, err := root.Lstat(prefix + text); errors.Is(err, fs.ErrNotExist) {
			return text
		}
	}
}

type found struct {
	path string
	time time.Time
}

// adopt enters every file below root that no entry names, oldest first, and says
// for each what could not be known.
func (m *manifest) adopt(root *os.Root) (int, []Problem) {
	var files []found
	var problems []Problem
	visit := func(_ *os.Root, rel string, info fs.FileInfo, err error) error {
		switch {
		case !strings.Contains(rel, "/") || isTemp(path.Base(rel)) || m.byPath(rel) != nil:
		case err != nil:
			problems = append(problems, Problem{rel, err.Error()})
		case !info.Mode().IsRegular():
			problems = append(problems, Problem{rel, kindOf(info.Mode()) + ", left out"})
		case !slices.Contains(folders(), rel[:strings.IndexByte(rel, '/')]):
			problems = append(problems, Problem{rel, "in no folder of ours, left out"})
		default:
			files = append(files, found{rel, info.ModTime()})
		}
		return nil
	}
	if err := walk(root, "", maxDepth, visit); err != nil {
		problems = append(problems, Problem{"", err.Error()})
	}
	slices.SortStableFunc(files, func(a, b found) int { return cmp.Or(a.time.Compare(b.time), strings.Compare(a.path, b.path)) })
	n := 0
	for _, f := range files {
		a := Artifact{Type: classify(f.path), Name: path.Base(f.path), CreatedAt: f.time, Session: sessionIn(f.path)}
		if name, version, ok := splitVersioned(a.Name); ok {
			a.Name, a.Metadata = name, map[string]any{metaVersion: version}
		}
		var err error
		if a.Path, err = superqode.ParseRelPath(f.path); err == nil {
			a.SHA256, a.Size, err = hashBelow(root, f.path)
		}
		if err != nil {
			problems = append(problems, Problem{f.path, err.Error()})
			continue
		}
		a = m.add(a)
		n++
		lost := "id, description, metadata, original file and agent"
		if a.Session.IsZero() {
			lost += " and session"
		}
		problems = append(problems, Problem{f.path, "entered anew as " + a.ID + ": its " + lost + " could not be known"})
	}
	return n, problems
}

// sessionIn finds a session id in a path, as a component or within one.
func sessionIn(rel string) superqode.SessionID {
	text := regexp.MustCompile(`qe-[0-9]{8}-[0-9]{6}-[a-z2-7]{6}`).FindString(rel)
	id, err := superqode.ParseSessionID(text)
	if err != nil {
		return superqode.SessionID{}
	}
	return id
}
