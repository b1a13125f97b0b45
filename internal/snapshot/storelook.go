package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/text"
)

// OpenExisting opens a store as it is: unlike OpenStore it points nothing
// elsewhere, and makes only what a store must have to be one. The error wraps
// fs.ErrNotExist where no store is.
func OpenExisting(g *git.Git, dir string) (*Store, error) {
	if _, err := os.Lstat(filepath.Join(dir, "objects")); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s := &Store{git: g, dir: dir, format: formatOf(dir), mine: map[ID]bool{}}
	if err := errors.Join(s.makeFolders(), s.checkFormat()); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// formatOf reads a store's object format out of its configuration or, where that
// is gone, out of the names of its packs.
func formatOf(dir string) Format {
	conf, err := atomicfile.Read(filepath.Join(dir, "config"))
	if err == nil && bytes.Contains(conf, []byte("objectformat = sha256")) {
		return SHA256
	}
	packs, _ := filepath.Glob(text.QuotePattern(filepath.Join(dir, "objects/pack")) + "/pack-*.pack")
	if err != nil && len(packs) > 0 && len(filepath.Base(packs[0])) == len("pack-.pack")+2*SHA256.Size() {
		return SHA256
	}
	return SHA1
}

// Format returns the hash of the store's ids.
func (s *Store) Format() Format { return s.format }

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
	var out bytes.Buffer
	const format = "--format=%(refname)%00%(objectname)%00%(parent)%00%(contents)%00%(committerdate:unix)%00"
	if err := s.run(ctx, git.Cmd{Args: []string{"for-each-ref", format, prefix}, Stdout: &out}); err != nil {
		return nil, err
	}
	var refs []Ref
	for f := range slices.Chunk(strings.Split(out.String(), "\x00"), 5) {
		if len(f) == 5 {
			at, _ := strconv.ParseInt(f[4], 10, 64) // a tag or a blob has none
			refs = append(refs, Ref{strings.TrimPrefix(f[0], "\n"), f[1], f[2], strings.TrimSuffix(f[3], "\n"), time.Unix(at, 0)})
		}
	}
	return refs, nil
}

// Blob returns the content id of the file at path in a commit.
func (s *Store) Blob(ctx context.Context, commit, path string) (ID, error) {
	var out bytes.Buffer
	if err := s.run(ctx, git.Cmd{Args: []string{"rev-parse", "--verify", "--quiet", commit + ":" + path}, Stdout: &out}); err != nil {
		return ID{}, fmt.Errorf("look for %s in commit %s: %w", path, commit, err)
	}
	return ParseID(strings.TrimSpace(out.String()))
}

// Missing returns the contents of entries that neither the store nor the origin
// has.
func (s *Store) Missing(ctx context.Context, entries []Entry) (map[ID]bool, error) {
	seen := map[ID]bool{}
	var ids []ID
	for i := range entries {
		if e := &entries[i]; e.Kind == File && !e.ID.IsZero() && !seen[e.ID] {
			seen[e.ID] = true
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	c, err := s.catFile(ctx, "--batch-check")
	if err != nil {
		return nil, err
	}
	missing, err := c.missing(ids)
	if cerr := c.close(); err == nil {
		err = cerr
	}
	return missing, err
}

// WriteRef points ref (refs/superqode/<session>/<name>) at a commit, durably,
// unless it does already. The error wraps superqode.ErrNotFound when the store
// has no such commit.
func (s *Store) WriteRef(ctx context.Context, ref, commit string) error {
	if _, err := ParseID(commit); err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "%q is no commit", commit)
	}
	var exit *git.ExitError
	err := s.run(ctx, git.Cmd{Args: []string{"rev-parse", "--verify", "--quiet", commit + "^{commit}"}, Stdout: io.Discard})
	if errors.As(err, &exit) {
		return superqode.Errorf(superqode.ErrNotFound, "the store has no commit %s", commit)
	}
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(ref))); err == nil && strings.TrimSpace(string(have)) == commit {
		return nil
	}
	return s.writeRef(ref, commit)
}

// LoadSnapshot reads what Save wrote and WriteBlobs stored. An error wraps
// ErrCorrupt when the contents are something else.
func (s *Store) LoadSnapshot(ctx context.Context, id ID) (*Snapshot, error) {
	var data bytes.Buffer
	if err := s.ReadBlob(ctx, id, &data); err != nil {
		return nil, err
	}
	return decode(data.Bytes())
}
