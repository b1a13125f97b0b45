package artifacts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/rooted"
	"github.com/seed-2d964004/superqode/internal/text"
)

// New describes an artifact to be added. Exactly one of Data, Open and File gives
// the content; Data may be empty for an empty file.
type New struct {
	Type Type
	// Name is what people call it; "" means the file's own name.
	Name string
	// Path is where the file goes below qe-artifacts, in one of the folders
	// of docs/formats.md. An earlier artifact of the same session at that path
	// is replaced and keeps its id. "" means the type's folder, the session's
	// sub-folder and the file's own name, and never replaces: where the name is
	// taken by other content a number is appended.
	Path         string
	Numbered     bool // a Path that other content has taken gets a number too
	Description  string
	Metadata     map[string]any
	OriginalFile string
	Perm         fs.FileMode         // of the file that it was, see Artifact.Perm; 0: unknown
	Again        bool                // of Save: a new version even of the same content
	Session      superqode.SessionID // zero: added outside a session
	Agent        superqode.AgentID

	Data []byte
	Open func() (io.ReadCloser, error) // called once, when its turn comes
	File string                        // path of a regular file, copied; a symbolic link is refused

	// Mask, if set, wraps the writer that the content goes to; closing it completes
	// the content.
	Mask func(io.Writer) io.WriteCloser

	// Loose artifacts can be made again: after a power cut they may be damaged, which
	// the manifest tells. All others are on disk when they have been added.
	Loose bool
}

// Add adds one artifact; see AddAll.
func (s *Store) Add(ctx context.Context, n New) (Artifact, error) {
	return one(s.AddAll(ctx, []New{n}))
}

func one[T any](list []T, err error) (v T, _ error) {
	if len(list) == 1 {
		v = list[0]
	}
	return v, err
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
	return s.bring(ctx, items)
}

// bring adds all items, or none of them.
func (s *Store) bring(ctx context.Context, items []*item) ([]Artifact, error) {
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

// AddEach adds those artifacts whose contents can be read; errs[i] says why list[i]
// is not among them. An error about the store itself, such as a full disk, comes
// with what could be added; where ctx is cancelled that is nothing.
func (s *Store) AddEach(ctx context.Context, list []New) (added []Artifact, errs []error, err error) {
	errs = make([]error, len(list))
	var items []*item
	var at []int // of each item in list
	for i, n := range list {
		var it *item
		if it, errs[i] = newItem(n); errs[i] == nil {
			items, at = append(items, it), append(at, i)
		}
	}
	if len(items) == 0 {
		return nil, errs, context.Cause(ctx)
	}
	err = s.stage(ctx, items)
	if ctx.Err() != nil {
		return nil, errs, errors.Join(err, s.drop(items))
	}
	for k, it := range items {
		errs[at[k]] = it.err
	}
	items = slices.DeleteFunc(items, func(it *item) bool { return it.tmp == "" })
	if len(items) == 0 {
		return nil, errs, err
	}
	added, cerr := s.commit(ctx, items)
	return added, errs, errors.Join(err, cerr)
}

// item is an artifact on its way in.
type item struct {
	Artifact
	again   bool // saved: a new version in any case
	wait    atomicfile.Wait
	replace bool // take over the path from an earlier artifact of the same session
	saved   bool // becomes the next version of its name; see Store.Save
	ext     string
	mask    func(io.Writer) io.WriteCloser
	open    func() (io.ReadCloser, error)
	folder  string
	tmp     string // name in folder once the content is there; "" when it has been used up
	err     error  // why the content could not be read
}

func newItem(n New) (*item, error) {
	if _, err := ParseType(string(n.Type)); err != nil {
		return nil, err
	}
	base := n.Name
	if n.File != "" {
		base = filepath.Base(n.File)
	}
	it := &item{replace: n.Path != "" && !n.Numbered, mask: n.Mask, wait: atomicfile.Durable}
	if n.Loose {
		it.wait = atomicfile.Loose
	}
	if n.Path == "" {
		session := cmp.Or(n.Session.String(), "manual")
		base = path.Base(base)
		if base == "" || base == "." || base == "/" || base == ".." {
			return nil, fmt.Errorf("no name to file it under")
		}
		n.Path = path.Join(n.Type.Folder(), session, base)
	}
	rel, err := superqode.ParseRelPath(n.Path)
	if err != nil {
		return nil, err
	}
	if !inFolder(n.Path) {
		return nil, fmt.Errorf("path %q is in none of the folders %v", n.Path, Folders())
	}
	if n.Name == "" {
		n.Name = path.Base(n.Path)
	}
	if n.Perm != 0 {
		n.Metadata = maps.Clone(n.Metadata)
		if n.Metadata == nil {
			n.Metadata = map[string]any{}
		}
		n.Metadata[metaPerm] = fmt.Sprintf("%04o", n.Perm.Perm())
	}
	it.Artifact = Artifact{
		Type: n.Type, Name: n.Name, Path: rel, Description: n.Description, Metadata: n.Metadata,
		OriginalFile: n.OriginalFile, Session: n.Session, Agent: n.Agent, CreatedAt: now(),
	}
	it.folder = path.Dir(n.Path)
	switch {
	case n.File != "":
		it.open = func() (io.ReadCloser, error) { return openFile(n.File) }
	case n.Open != nil:
		it.open = n.Open
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
	return rooted.Regular(dir, filepath.Base(name))
}

// workers is how many contents are copied at once: the time goes to waiting for
// the disk to sync, not to hashing.
const workers = 4

type copyBuffer [1 << 17]byte

// stage copies the contents into the folders where they will stand, under
// temporary names, hashing them on the way. A content that cannot be read sets
// its item's err; the error returned is about the store.
func (s *Store) stage(ctx context.Context, items []*item) error {
	p, err := s.open(true)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	buffers := sync.Pool{New: func() any { return new(copyBuffer) }}
	for _, it := range items {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			buf := buffers.Get().(*copyBuffer)
			defer buffers.Put(buf)
			return it.stage(gctx, p.root, buf[:])
		})
	}
	err = g.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, p.close())
}

func (it *item) stage(ctx context.Context, root *os.Root, buf []byte) error {
	src, err := it.open()
	if err != nil {
		it.err = err
		return nil
	}
	defer src.Close() // read only: nothing is lost
	dir, err := rooted.Folders(root, it.folder, true)
	if err != nil {
		return err
	}
	h := sha256.New()
	tmp, err := writeFile(dir, it.wait, func(w io.Writer) error {
		return it.fill(ctx, io.MultiWriter(h, w), src, buf)
	})
	if it.err != nil {
		err = nil // the source's fault; writeTemp has cleaned up
	}
	if err = errors.Join(err, dir.Close()); err != nil || it.err != nil {
		return err
	}
	it.tmp, it.SHA256 = tmp, hex.EncodeToString(h.Sum(nil))
	return nil
}

// fill copies the content, masked where that is wanted; the item's size is that
// of what was written.
func (it *item) fill(ctx context.Context, dst io.Writer, src io.Reader, buf []byte) error {
	if it.mask == nil {
		return it.copy(ctx, dst, src, buf)
	}
	count := &counter{w: dst}
	masked := it.mask(count)
	err := it.copy(ctx, masked, src, buf)
	if cerr := masked.Close(); err == nil {
		err = cerr
	}
	it.Size = count.n
	return err
}

// counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int64
}

// Write passes b on.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// copy is io.CopyBuffer that keeps errors of the source apart and obeys ctx.
func (it *item) copy(ctx context.Context, dst io.Writer, src io.Reader, buf []byte) error {
	for it.Size = 0; ; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := src.Read(buf)
		if _, werr := dst.Write(buf[:n]); werr != nil {
			return werr
		}
		it.Size += int64(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			it.err = err
			return err
		}
	}
}

// drop removes the temporary files that are left of items.
func (s *Store) drop(items []*item) (err error) {
	if !slices.ContainsFunc(items, func(it *item) bool { return it.tmp != "" }) {
		return nil
	}
	p, err := s.open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, it := range items {
		if it.tmp != "" {
			err = errors.Join(err, in(p.root, it.folder, func(dir *os.Root) error { return dir.Remove(it.tmp) }))
			it.tmp = ""
		}
	}
	return err
}

// in opens a folder below root for do.
func in(root *os.Root, folder string, do func(dir *os.Root) error) error {
	dir, err := rooted.Folders(root, folder, false)
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}

// commit gives the staged items their places and entries, in one change of the
// manifest.
func (s *Store) commit(ctx context.Context, items []*item) (list []Artifact, err error) {
	defer func() { err = errors.Join(err, s.drop(items)) }()
	err = s.update(ctx, ofOne(items), func(p *place, m *manifest) (func() error, error) {
		pl := &plan{root: p.root, m: m, taken: map[string]bool{}}
		for _, it := range items {
			a, err := pl.add(it)
			if err != nil {
				return nil, err
			}
			list = append(list, a)
			m.touch(a.Session, now())
		}
		s.warn(pl.warnings...)
		if !pl.changed {
			return nil, nil
		}
		return pl.run, nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// plan decides first where every item goes, without touching a file, and renames
// afterwards; what it did is undone when a later rename fails.
type plan struct {
	root     *os.Root
	m        *manifest
	taken    map[string]bool // paths that this plan fills
	moves    []move
	overs    []move // those that replace our own earlier content
	warnings []Problem
	changed  bool
}

// move renames from to to in folder; item is nil where a file of
// someone else is set aside.
type move struct {
	folder, from, to string
	item             *item
}

func (p *plan) add(it *item) (Artifact, error) {
	if it.saved {
		return p.save(it)
	}
	base := path.Base(it.Path.String())
	for n := 1; ; n++ {
		rel := path.Join(it.folder, numbered(base, n))
		var err error
		if it.Path, err = superqode.ParseRelPath(rel); err != nil {
			return Artifact{}, err
		}
		e := p.m.byPath(rel)
		onDisk, sum, err := p.look(rel)
		if err != nil {
			return Artifact{}, err
		}
		taken := p.taken[rel]
		sameEntry := e != nil && e.Session == it.Session && e.SHA256 == it.SHA256 && e.Size == it.Size
		switch {
		case sameEntry && (taken || sum == it.SHA256): // added before
			return e.Artifact, nil
		case sameEntry && !onDisk: // recorded and lost: repaired
			p.put(it, false)
			return e.Artifact, nil
		case e == nil && sum == it.SHA256: // in place, but the manifest was not written
			p.taken[rel] = true
			return p.enter(it), nil
		case e == nil && !onDisk:
			p.put(it, false)
			return p.enter(it), nil
		case it.replace && (taken || e != nil && e.Session != it.Session):
			where := text.Printable(rel)
			return Artifact{}, superqode.Errorf(superqode.ErrConflict, "artifact path %s belongs to %s", where, e.ID)
		case it.replace:
			return p.replace(it, e, onDisk, sum)
		}
	}
}

// look returns whether something is at rel and the sum of its content, "" when it
// is no regular file.
func (p *plan) look(rel string) (onDisk bool, sum string, err error) {
	sum, _, err = hashBelow(p.root, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if _, ok := errors.AsType[*rooted.KindError](err); ok {
		return true, "", nil
	}
	return true, sum, err
}

// replace puts it in the place of an earlier artifact of its session, or of a file
// of someone else. What is there is overwritten only when it is what the manifest recorded,
// or when the manifest knows nothing of it and its name carries the session's
// id: then it is our own attempt, which was killed before the manifest was
// written.
func (p *plan) replace(it *item, e *entry, onDisk bool, sum string) (Artifact, error) {
	rel := it.Path.String()
	ours := e == nil && strings.Contains(rel, it.Session.String())
	if onDisk && sum != it.SHA256 && !ours && (e == nil || e.SHA256 != sum) {
		aside, err := p.asideName(it)
		if err != nil {
			return Artifact{}, err
		}
		p.moves = append(p.moves, move{folder: it.folder, from: path.Base(rel), to: aside})
		why := "was not what the manifest says; kept as " + text.Printable(aside)
		p.warnings = append(p.warnings, Problem{rel, why})
		onDisk = false
	}
	p.put(it, onDisk)
	if e == nil {
		return p.enter(it), nil
	}
	a := it.Artifact
	a.ID = e.ID
	e.change(a)
	return a, nil
}

func (p *plan) asideName(it *item) (string, error) {
	base := path.Base(it.Path.String())
	for n := 1; ; n++ {
		c := fmt.Sprint(base[:min(len(base), 200)], ".replaced-", n)
		if onDisk, _, err := p.look(path.Join(it.folder, c)); err != nil || !onDisk {
			return c, err
		}
	}
}

func (p *plan) put(it *item, over bool) {
	rel := it.Path.String()
	p.taken[rel], p.changed = true, true
	list := &p.moves
	if over {
		list = &p.overs
	}
	*list = append(*list, move{folder: it.folder, from: it.tmp, to: path.Base(rel), item: it})
}

func (p *plan) enter(it *item) Artifact {
	p.changed = true
	return p.m.add(it.Artifact)
}

// run makes the moves. On an error it removes the files that had no predecessor, and
// moves back what it had set aside.
func (p *plan) run() (err error) {
	var undo []move
	folders := map[string]bool{}
	defer func() {
		if err == nil {
			return
		}
		for _, mv := range slices.Backward(undo) {
			err = errors.Join(err, p.rename(mv.folder, mv.to, mv.from))
			if mv.item != nil {
				mv.item.tmp = mv.from // commit drops it
			}
		}
	}()
	for i, mv := range slices.Concat(p.moves, p.overs) { // what replaces our own cannot be undone, so it comes last
		if err := failpoint.Err("artifacts.place"); err != nil {
			return err
		}
		if err := p.rename(mv.folder, mv.from, mv.to); err != nil {
			return err
		}
		if mv.item != nil {
			mv.item.tmp = ""
		}
		if i < len(p.moves) {
			undo = append(undo, mv)
		}
		if mv.item != nil && mv.item.wait == atomicfile.Loose {
			continue
		}
		for d := mv.folder; d != "."; d = path.Dir(d) {
			folders[d] = true
		}
	}
	p.m.loose = len(folders) == 0
	for d := range folders {
		if err := in(p.root, d, rooted.Sync); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) rename(folder, from, to string) error {
	return in(p.root, folder, func(dir *os.Root) error { return dir.Rename(from, to) })
}

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
	metaPerm    = "mode"
	maxName     = 100
)

// CheckName returns an error that wraps superqode.ErrUsage when nothing can be
// saved under the name.
func CheckName(name string) error {
	if len(name) > maxName || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(name) {
		return superqode.Errorf(superqode.ErrUsage, "%q is not a name for an artifact (letters, digits, . _ -, at most %d)",
			text.Clip(name, 2*maxName), maxName)
	}
	return nil
}

// Save adds n, whose Path is empty, as the next version of n.Name. The same
// content saved again by the same session is the version that it is, unless n.Again.
func (s *Store) Save(ctx context.Context, n New) (Named, error) {
	return one(s.SaveAll(ctx, []New{n}))
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
	added, err := s.bring(ctx, items)
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
	form := regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)@([1-9][0-9]{0,8})(\.[A-Za-z0-9_-]+)?$`)
	m := form.FindStringSubmatch(base)
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

// Perm returns the permission bits of the file that was added, 0 where they are unknown.
func (a Artifact) Perm() fs.FileMode {
	text, _ := a.Metadata[metaPerm].(string)
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0
	}
	return fs.FileMode(n).Perm()
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
	all, err := s.all(ctx, superqode.SessionID{})
	return versionsOf(all, name), err
}

// Resolve returns the artifact that ref means: an id, a name (its latest
// version) or name@version. The error wraps superqode.ErrNotFound when there is
// none, and names the versions that there are.
func (s *Store) Resolve(ctx context.Context, ref string) (Named, error) {
	all, err := s.all(ctx, superqode.SessionID{})
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
	at := max(strings.LastIndexByte(ref, '@'), 0)
	name, wanted := ref[:at], strings.TrimPrefix(ref[at:], "@")
	if list := versionsOf(all, name); at > 0 && len(list) > 0 {
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
		return Named{}, superqode.Errorf(superqode.ErrNotFound, "no version %q of artifact %q (there are %s)",
			wanted, name, strings.Join(have, ", "))
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
