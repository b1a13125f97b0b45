package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Names with versions: what is saved under a name gets the numbers 1, 2, … and
// keeps them. Saving again makes the next one, name@2; removing the newest does
// not free its number, since name@2 must never come to mean something else. The
// number stands in the entry's metadata and in the file's name, from which a
// manifest that was lost is rebuilt.

// Named is an artifact with its version: what name@version means.
type Named struct {
	Artifact
	Version int // from 1
}

// String returns name@version.
func (n Named) String() string { return n.Name + "@" + strconv.Itoa(n.Version) }

const (
	metaVersion = "version"
	maxName     = 100
)

// CheckName returns an error that wraps superqode.ErrUsage when nothing can be
// saved under the name.
func CheckName(name string) error {
	if len(name) > maxName || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(name) {
		return superqode.Errorf(superqode.ErrUsage, "%q is not a name for an artifact (letters, digits, . _ -, at most %d)", text.Clip(name, 2*maxName), maxName)
	}
	return nil
}

// Save adds n, whose Path is empty, as the next version of n.Name. The same
// content saved again by the same session is the version that it is, unless n.Again.
func (s *Store) Save(ctx context.Context, n New) (Named, error) {
	list, err := s.SaveAll(ctx, []New{n})
	if len(list) == 1 {
		return list[0], err
	}
	return Named{}, err
}

// SaveAll saves several, all or none, with one write of the manifest.
func (s *Store) SaveAll(ctx context.Context, list []New) ([]Named, error) {
	var items []*item
	for _, n := range list {
		it, err := newSaved(n)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	if len(items) == 0 {
		return nil, nil
	}
	err := s.stage(ctx, items)
	for _, it := range items {
		if it.err != nil && err == nil {
			err = fmt.Errorf("save artifact %q: %w", it.Name, it.err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.drop(items))
	}
	added, err := s.commit(ctx, items)
	if err != nil {
		return nil, err
	}
	var saved []Named
	for _, a := range added {
		saved = append(saved, Named{a, a.version()})
	}
	return saved, nil
}

func newSaved(n New) (*item, error) {
	if err := CheckName(n.Name); err != nil {
		return nil, err
	}
	if n.Path != "" {
		return nil, fmt.Errorf("save artifact %q: a path is given", n.Name)
	}
	ext := path.Ext(cmp.Or(n.File, n.OriginalFile)) // of a name that has its own it is no part
	if path.Ext(n.Name) != "" || !regexp.MustCompile(`^\.[A-Za-z0-9_-]{1,16}$`).MatchString(ext) {
		ext = ""
	}
	it, err := newItem(n)
	if err != nil {
		return nil, fmt.Errorf("save artifact %q: %w", n.Name, err)
	}
	it.saved, it.ext, it.again = true, ext, n.Again
	return it, nil
}

// save decides about an item that becomes a version of its name.
func (p *plan) save(it *item) (Artifact, error) {
	version := p.m.versions[it.Name]
	if latest, ok := lastOf(versionsOf(p.m.artifacts(), it.Name)); ok {
		version = max(version, latest.Version)
		if _, sum, err := p.look(latest.Path.String()); err != nil {
			return Artifact{}, err
		} else if !it.again && latest.Session == it.Session && latest.SHA256 == it.SHA256 && sum == it.SHA256 {
			return latest.Artifact, nil
		}
	}
	for version++; ; version++ {
		rel := path.Join(it.folder, versionedName(it.Name, it.ext, version))
		var err error
		if it.Path, err = superqode.ParseRelPath(rel); err != nil {
			return Artifact{}, err
		}
		onDisk, _, err := p.look(rel)
		if err != nil {
			return Artifact{}, err
		}
		if onDisk || p.taken[rel] || p.m.byPath(rel) != nil {
			continue
		}
		meta := map[string]any{metaVersion: version}
		for k, v := range it.Metadata {
			if k != metaVersion {
				meta[k] = v
			}
		}
		it.Metadata = meta
		if p.m.versions == nil {
			p.m.versions = map[string]int{}
		}
		p.m.versions[it.Name] = version
		p.put(it, false)
		return p.enter(it), nil
	}
}

// versionedName is the file name of a version: report@2.json, or report.json@2
// where the name itself has the extension, so that the name can be read back.
func versionedName(name, ext string, version int) string {
	return name + "@" + strconv.Itoa(version) + ext
}

// splitVersioned reads back what versionedName wrote.
func splitVersioned(base string) (name string, version int, ok bool) {
	m := regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)@([1-9][0-9]{0,8})(\.[A-Za-z0-9_-]+)?$`).FindStringSubmatch(base)
	if m == nil {
		return "", 0, false
	}
	version, err := strconv.Atoi(m[2])
	return m[1], version, err == nil
}

// version returns the number that Save gave, or 0.
func (a Artifact) version() int {
	switch v := a.Metadata[metaVersion].(type) {
	case int:
		return v
	case float64:
		if v >= 1 && v < maxCounter && v == float64(int(v)) {
			return int(v)
		}
	}
	return 0
}

// versionsOf returns the artifacts of a name in the order of their versions. One
// that no Save numbered counts on from the one before it.
func versionsOf(all []Artifact, name string) []Named {
	var list []Named
	last := 0
	for _, a := range all {
		if a.Name != name {
			continue
		}
		v := a.version()
		if v <= last {
			v = last + 1
		}
		last = v
		list = append(list, Named{a, v})
	}
	return list
}

func lastOf(list []Named) (Named, bool) {
	if len(list) == 0 {
		return Named{}, false
	}
	return list[len(list)-1], true
}

// Versions returns the artifacts that share a name, oldest version first.
func (s *Store) Versions(ctx context.Context, name string) ([]Named, error) {
	all, err := s.all(ctx)
	return versionsOf(all, name), err
}

// Resolve returns the artifact that ref means: an id, a name (its latest
// version) or name@version. The error wraps superqode.ErrNotFound when there is
// none, and names the versions that there are.
func (s *Store) Resolve(ctx context.Context, ref string) (Named, error) {
	all, err := s.all(ctx)
	if err != nil {
		return Named{}, err
	}
	for _, a := range all {
		if a.ID == ref {
			return withVersion(all, a), nil
		}
	}
	if latest, ok := lastOf(versionsOf(all, ref)); ok {
		return latest, nil
	}
	name, wanted, found := cutLast(ref, '@')
	if list := versionsOf(all, name); found && len(list) > 0 {
		var have []string
		for _, v := range list {
			if wanted == strconv.Itoa(v.Version) {
				return v, nil
			}
			have = append(have, strconv.Itoa(v.Version))
		}
		if len(have) > 10 {
			have = append([]string{"…"}, have[len(have)-10:]...)
		}
		return Named{}, superqode.Errorf(superqode.ErrNotFound, "no version %q of artifact %q (there are %s)", wanted, name, strings.Join(have, ", "))
	}
	return Named{}, superqode.Errorf(superqode.ErrNotFound, "no artifact %q", ref)
}

func withVersion(all []Artifact, a Artifact) Named {
	for _, v := range versionsOf(all, a.Name) {
		if v.ID == a.ID {
			return v
		}
	}
	return Named{a, 0}
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i <= 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
