// Package store keeps contents and trees of snapshots in a bare git repository
// of its own, which borrows the origin's objects: as packs, commits and refs. It
// tells what differs between two commits, and packs itself.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Store keeps contents and trees of snapshots in a bare git repository of its
// own that borrows the origin's objects (objects/info/alternates). Any git reads
// it: git --git-dir STORE diff refs/superqode/SESSION/base
// refs/superqode/SESSION/final.
//
// New objects are always added as whole packs, synced before they count, so a
// power cut leaves a pack or none. Contents are raw bytes: no attribute, filter
// or configuration of the user or of the origin has a say in what is stored or
// how it is compared. Methods may be called concurrently, from several
// processes too.
type Store struct {
	*repository
	packs ownPacks
}

func newStore(g *git.Git, dir string, f snapshot.Format) *Store {
	r := &repository{git: g, dir: dir, format: f}
	return &Store{r, ownPacks{repository: r, known: map[snapshot.ID]bool{}}}
}

// repository is a store's bare git repository, and how git is run in it.
type repository struct {
	git    *git.Git
	dir    string
	format snapshot.Format
	lent   string // objects folder that Borrow named
}

// OpenStore opens the store at dir and creates it if there is none; many
// processes may do so at once. originObjects is the origin's objects folder, ""
// for none; a store whose origin has moved is pointed at the new place.
func Open(ctx context.Context, g *git.Git, dir, originObjects string, f snapshot.Format) (*Store, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s := newStore(g, dir, f)
	if err := s.create(originObjects); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// Borrow lets this Store read another objects folder too, for as long as it
// lives: a copy of the origin's, say, that is still whole. Call it before any
// other method.
func (s *Store) Borrow(objects string) { s.lent = objects }

// Dir returns the store's folder, a git dir.
func (s *Store) Dir() string { return s.dir }

func (r *repository) create(originObjects string) error {
	borrowed, err := alternates(originObjects, 0)
	if err != nil {
		return err
	}
	file := filepath.Join(r.dir, "objects/info/alternates")
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if st, serr := os.Lstat(r.dir); serr == nil && st.IsDir() { // somebody may have deleted what is in it
		ferr := errors.Join(r.makeFolders(), r.checkFormat())
		if ferr != nil || err == nil && bytes.Equal(have, borrowed) {
			return ferr
		}
		return atomicfile.Write(file, borrowed, 0o600)
	}
	parent := filepath.Dir(r.dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".store-*") // mode 0700
	if err != nil {
		return err
	}
	err = fillStore(tmp, borrowed, r.format)
	failpoint.Hit("store.filled")
	if err == nil {
		err = os.Rename(tmp, r.dir)
	}
	if err == nil {
		return atomicfile.SyncDir(parent)
	}
	rerr := os.RemoveAll(tmp)
	// Someone else was faster: a rename onto a folder that is not empty fails.
	if _, serr := os.Stat(file); serr == nil {
		return errors.Join(r.checkFormat(), rerr)
	}
	return errors.Join(err, rerr)
}

// makeFolders makes those of a store's folders that git or we rely on, and the
// HEAD without which it is no repository, should somebody have cleared them away
// or written into it.
func (r *repository) makeFolders() error {
	for _, d := range []string{"objects/info", "objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o700); err != nil {
			return err
		}
	}
	head := filepath.Join(r.dir, "HEAD")
	if is, err := atomicfile.Read(head); err == nil && string(is) == storeHead {
		return nil
	}
	return atomicfile.Write(head, []byte(storeHead), 0o600)
}

const storeHead = "ref: refs/heads/none\n"

// fillStore makes a bare repository. Nobody waits for its files: whoever opens it
// writes those anew that are not as they have to be.
func fillStore(dir string, borrowed []byte, f snapshot.Format) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		atomicfile.Replace(filepath.Join(dir, "config"), storeConfig(f), 0o600),
		atomicfile.Replace(filepath.Join(dir, "objects/info/alternates"), borrowed, 0o600),
		atomicfile.Replace(filepath.Join(dir, "HEAD"), []byte(storeHead), 0o600),
	)
}

func storeConfig(f snapshot.Format) []byte {
	version, extension := 0, ""
	if f == snapshot.SHA256 {
		version, extension = 1, "[extensions]\n\tobjectformat = sha256\n"
	}
	return fmt.Appendf(nil, "[core]\n\trepositoryformatversion = %d\n\tfilemode = true\n\tbare = true\n%s[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n", version, extension)
}

// checkFormat refuses a store of another object format. Its configuration is
// nobody's but ours: one that says something else is written anew, for git does
// what it says.
func (r *repository) checkFormat() error {
	file := filepath.Join(r.dir, "config")
	conf, err := atomicfile.Read(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, atomicfile.ErrNotRegular) {
		return err
	}
	want := storeConfig(r.format)
	if bytes.Equal(conf, want) {
		return nil
	}
	if have := bytes.Contains(conf, []byte("objectformat = sha256")); err == nil && have != (r.format == snapshot.SHA256) {
		return fmt.Errorf("the store's object format is not %s", r.format)
	}
	return atomicfile.Write(file, want, 0o600)
}

// Alternates returns what objects/info/alternates of a repository holds that borrows
// from the absolute folder objects.
func Alternates(objects string) ([]byte, error) { return alternates(objects, 0) }

// alternates returns the lines for objects and, because git takes relative lines
// in the first repository of a chain only, for what objects borrows itself.
func alternates(objects string, depth int) ([]byte, error) {
	if objects == "" {
		return nil, nil
	}
	if !filepath.IsAbs(objects) {
		return nil, fmt.Errorf("objects folder %q is not absolute", objects)
	}
	line := objects
	if strings.ContainsAny(objects, "\n\"\\") {
		line = cQuote(objects)
	}
	out := []byte(line + "\n")
	more, err := atomicfile.ReadThrough(filepath.Join(objects, "info/alternates"))
	if err != nil || depth >= 4 { // git follows five; what cannot be read now is looked for again the next time
		return out, nil
	}
	for l := range strings.Lines(string(more)) {
		l = strings.TrimSuffix(l, "\n")
		if l == "" || l[0] == '#' || l[0] == '"' || filepath.IsAbs(l) {
			continue // git finds these itself
		}
		deeper, err := alternates(filepath.Join(objects, l), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, deeper...)
	}
	return out, nil
}

// cQuote quotes a path as git's unquote_c_style reads it.
func cQuote(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p) + `"`
}

// lending is the variable by which git reads another objects folder too.
func lending(objects string) string {
	if strings.ContainsAny(objects, ":\n\"\\") {
		objects = cQuote(objects)
	}
	return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects
}

// env points git at the store and away from all configuration and attributes
// but the store's own. Variables of git's own environment are overridden.
func (r *repository) env(more ...string) []string {
	if r.lent != "" {
		more = append([]string{lending(r.lent)}, more...)
	}
	return append([]string{
		"GIT_DIR=" + r.dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"HOME=" + r.dir, "XDG_CONFIG_HOME=" + r.dir, // git before 2.32 has no GIT_CONFIG_GLOBAL
		"GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1",
	}, more...)
}

func (r *repository) run(ctx context.Context, c git.Cmd) error {
	c.Dir, c.Env = r.dir, r.env(c.Env...)
	return r.git.Run(ctx, c)
}

// out runs git in the store with in, nil for nothing, as its input, and returns
// what it prints.
func (r *repository) out(ctx context.Context, in io.Reader, args ...string) (string, error) {
	var out bytes.Buffer
	err := r.run(ctx, git.Cmd{Args: args, Stdin: in, Stdout: &out})
	return out.String(), err
}

// ReadBlob writes the raw contents of id, also those that the origin holds, to
// w. It returns an error wrapping superqode.ErrNotFound when neither has them.
func (s *Store) ReadBlob(ctx context.Context, id snapshot.ID, w io.Writer) error {
	r, err := s.OpenReader(ctx)
	if err != nil {
		return err
	}
	return errors.Join(r.Copy(id, w), r.Close())
}

// Refs returns a session's refs in the store: name (for example "base") to
// commit id. The store is ours, so its files are read without asking git.
func (s *Store) Refs(session superqode.SessionID) (map[string]string, error) {
	prefix := refPrefix + session.String() + "/"
	refs := map[string]string{}
	packed, err := os.ReadFile(filepath.Join(s.dir, "packed-refs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if short, ok := strings.CutPrefix(name, prefix); ok {
			refs[short] = id
		}
	}
	root := filepath.Join(s.dir, filepath.FromSlash(prefix))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.ToSlash(path[len(root)+1:])
		if !validRef(prefix + name) { // unfinished, of a process that was killed
			return nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		refs[name] = strings.TrimSpace(string(data))
		return err
	})
	return refs, err
}

// DeleteRefs deletes all refs of a session; its objects stay until the store is
// packed.
func (s *Store) DeleteRefs(ctx context.Context, session superqode.SessionID) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// With what a process that was killed left unfinished there, locks too.
	err := os.RemoveAll(filepath.Join(s.dir, refPrefix, session.String()))
	if err != nil {
		return err
	}
	packed, err := s.Refs(session)
	if err != nil || len(packed) == 0 {
		return err
	}
	var in bytes.Buffer
	for name := range packed {
		fmt.Fprintf(&in, "delete %s%s/%s\n", refPrefix, session, name)
	}
	_, err = s.out(ctx, &in, "update-ref", "--stdin")
	return err
}

const refPrefix = "refs/superqode/"

// writeRef sets a ref durably.
func (r *repository) writeRef(ref, id string) error {
	if !validRef(ref) {
		return fmt.Errorf("bad ref name %q", ref)
	}
	file := filepath.Join(r.dir, filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(file, []byte(id+"\n"), 0o600); err != nil {
		return err
	}
	// The folders may be new: without them on disk the ref is not.
	for dir := filepath.Dir(filepath.Dir(file)); len(dir) > len(r.dir); dir = filepath.Dir(dir) {
		if err := atomicfile.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// validRef accepts refs/superqode/<session>/<name>… of plain characters.
func validRef(ref string) bool {
	parts := strings.Split(ref, "/")
	return len(parts) >= 4 && strings.HasPrefix(ref, refPrefix) && !slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || p[0] == '.' || p[0] == '-' || strings.HasSuffix(p, ".lock") || strings.HasSuffix(p, ".") || strings.Contains(p, "..") ||
			strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`~^:?*[\@{}`, r) })
	})
}

// OpenExisting opens a store as it is: unlike OpenStore it points nothing
// elsewhere, and makes only what a store must have to be one. The error wraps
// fs.ErrNotExist where no store is.
func OpenExisting(g *git.Git, dir string) (*Store, error) {
	if _, err := os.Lstat(filepath.Join(dir, "objects")); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s := newStore(g, dir, formatOf(dir))
	if err := errors.Join(s.makeFolders(), s.checkFormat()); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// formatOf reads a store's object format out of its configuration or, where that
// is gone, out of the names of its packs.
func formatOf(dir string) snapshot.Format {
	conf, err := atomicfile.Read(filepath.Join(dir, "config"))
	if err == nil && bytes.Contains(conf, []byte("objectformat = sha256")) {
		return snapshot.SHA256
	}
	packs, _ := filepath.Glob(text.QuotePattern(filepath.Join(dir, "objects/pack")) + "/pack-*.pack")
	if err != nil && len(packs) > 0 && len(filepath.Base(packs[0])) == len("pack-.pack")+2*snapshot.SHA256.Size() {
		return snapshot.SHA256
	}
	return snapshot.SHA1
}

// Format returns the hash of the store's ids.
func (s *Store) Format() snapshot.Format { return s.format }

// Ref is one ref of a store with the commit that it points at.
type Ref struct {
	Name    string // whole: refs/superqode/…
	Commit  string
	Parent  string // of the commit; "" for none
	Message string // of the commit
	// Committed is the committer's date.
	Committed time.Time
}

// ListRefs returns the refs below prefix ("refs/superqode/"), sorted by name.
func (s *Store) ListRefs(ctx context.Context, prefix string) ([]Ref, error) {
	const format = "--format=%(refname)%00%(objectname)%00%(parent)%00%(contents)%00%(committerdate:unix)%00"
	out, err := s.out(ctx, nil, "for-each-ref", format, prefix)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for f := range slices.Chunk(strings.Split(out, "\x00"), 5) {
		if len(f) == 5 {
			at, _ := strconv.ParseInt(f[4], 10, 64) // a tag or a blob has none
			refs = append(refs, Ref{strings.TrimPrefix(f[0], "\n"), f[1], f[2], strings.TrimSuffix(f[3], "\n"), time.Unix(at, 0)})
		}
	}
	return refs, nil
}

// Blob returns the content id of the file at path in a commit.
func (s *Store) Blob(ctx context.Context, commit, path string) (snapshot.ID, error) {
	out, err := s.out(ctx, nil, "rev-parse", "--verify", "--quiet", commit+":"+path)
	if err != nil {
		return snapshot.ID{}, fmt.Errorf("look for %s in commit %s: %w", path, commit, err)
	}
	return snapshot.ParseID(strings.TrimSpace(out))
}

// Missing returns the contents of entries that neither the store nor the origin
// has.
func (s *Store) Missing(ctx context.Context, entries []snapshot.Entry) (map[snapshot.ID]bool, error) {
	seen := map[snapshot.ID]bool{}
	var ids []snapshot.ID
	for i := range entries {
		if e := &entries[i]; e.Kind == snapshot.File && !e.ID.IsZero() && !seen[e.ID] {
			seen[e.ID] = true
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil, context.Cause(ctx)
	}
	c, err := s.reader(ctx, "--batch-check")
	if err != nil {
		return nil, err
	}
	missing, err := c.missing(ids)
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return missing, err
}

// WriteRef points ref (refs/superqode/<session>/<name>) at a commit, durably,
// unless it does already. The error wraps superqode.ErrNotFound when the store
// has no such commit.
func (s *Store) WriteRef(ctx context.Context, ref, commit string) error {
	if _, err := snapshot.ParseID(commit); err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "%q is no commit", commit)
	}
	var exit *git.ExitError
	if _, err := s.out(ctx, nil, "rev-parse", "--verify", "--quiet", commit+"^{commit}"); errors.As(err, &exit) {
		return superqode.Errorf(superqode.ErrNotFound, "the store has no commit %s", commit)
	} else if err != nil {
		return err
	}
	if s.pointsAt(ref, commit) {
		return nil
	}
	return s.writeRef(ref, commit)
}

// LoadSnapshot reads what Save wrote and WriteBlobs stored. An error wraps
// snapshot.ErrCorrupt when the contents are something else.
func (s *Store) LoadSnapshot(ctx context.Context, id snapshot.ID) (*snapshot.Snapshot, error) {
	var data bytes.Buffer
	if err := s.ReadBlob(ctx, id, &data); err != nil {
		return nil, err
	}
	return snapshot.Decode(data.Bytes())
}
