package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// errAskGit means that a repository is not read in process: only the git binary
// knows the answer, or knows it sooner.
var errAskGit = errors.New("the git binary has to answer")

// maxIndexes is how many bytes of pack indexes go-git may load to find one object.
// It reads each index whole and checks its sum: 2 ms for 256 KB (9,000 objects),
// as long as a process of git takes that maps the file; 6 ms and 4 MB of memory for
// 1.1 MB, 50 ms for 8 MB, and 181 ms and 131 MB in a repository with a pack of
// 387 MB.
const maxIndexes = 256 << 10

// openStore opens a repository's refs and objects through go-git, which starts no
// process. It returns errAskGit where they are not in the format that go-git reads.
func (r *Repo) openStore() (*filesystem.Storage, error) {
	if r.ObjectFormat != "sha1" || !r.plain {
		return nil, errAskGit
	}
	dir := dotgit.NewRepositoryFilesystem(osfs.New(r.GitDir), osfs.New(r.CommonDir))
	return filesystem.NewStorage(dir, cache.NewObjectLRU(cache.MiByte)), nil
}

// readCommit resolves HEAD, the name of a ref, or a whole object id to a
// commit in process. Every other error than nil means that git has to be asked.
func (r *Repo) readCommit(rev string) (string, error) {
	s, err := r.openStore()
	if err != nil {
		return "", err
	}
	id := plumbing.NewHash(rev)
	if !plumbing.IsHash(rev) {
		if id, err = r.readRef(s, rev); err != nil {
			return "", err
		}
	}
	return r.peel(s, id)
}

// readRef follows a name as git does: as it is, then below refs, refs/tags,
// refs/heads and refs/remotes; see gitrevisions(7).
func (r *Repo) readRef(s *filesystem.Storage, name string) (plumbing.Hash, error) {
	rules := []string{name, "refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name,
		"refs/remotes/" + name + "/HEAD"}
	for _, full := range rules {
		id, err := r.followRef(s, plumbing.ReferenceName(full))
		if !errors.Is(err, plumbing.ErrReferenceNotFound) {
			return id, err
		}
	}
	return plumbing.ZeroHash, errAskGit
}

// followRef reads a ref and those that it names in turn.
func (r *Repo) followRef(s *filesystem.Storage, name plumbing.ReferenceName) (plumbing.Hash, error) {
	for range 5 { // as many as git follows
		if err := r.checkLoose(name); err != nil {
			return plumbing.ZeroHash, err
		}
		ref, err := s.Reference(name)
		switch {
		case err != nil && strings.HasPrefix(string(name), "refs/"):
			return plumbing.ZeroHash, err
		case err != nil: // a name that go-git takes for none, such as "main"
			return plumbing.ZeroHash, plumbing.ErrReferenceNotFound
		case ref.Type() == plumbing.HashReference:
			return ref.Hash(), nil
		}
		name = ref.Target()
	}
	return plumbing.ZeroHash, errAskGit
}

// checkLoose makes sure that go-git reads a ref's own file where there is one: it
// would pass over an empty one, which a crash leaves, and believe packed-refs, and
// wait for ever for what is no file.
func (r *Repo) checkLoose(name plumbing.ReferenceName) error {
	below := strings.HasPrefix(string(name), "refs/")
	for _, dir := range []string{r.GitDir, r.CommonDir} {
		st, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(string(name))))
		switch {
		case errors.Is(err, fs.ErrNotExist), below && err == nil && st.IsDir():
		case err != nil, !st.Mode().IsRegular(), st.Size() < int64(len("ref: refs/x")), !below && name != plumbing.HEAD:
			return errAskGit
		}
	}
	return nil
}

// peel returns the commit that id is. What a tag names git tells: go-git's decoder
// of tags would link all of OpenPGP in.
func (r *Repo) peel(s *filesystem.Storage, id plumbing.Hash) (string, error) {
	if err := r.checkSearch(id); err != nil {
		return "", err
	}
	_, err := s.EncodedObject(plumbing.CommitObject, id)
	return id.String(), err
}

// checkSearch reports, by an error, that finding an object would cost go-git more
// than it costs git.
func (r *Repo) checkSearch(id plumbing.Hash) error {
	hex := id.String()
	objects := filepath.Join(r.CommonDir, "objects")
	if st, err := os.Lstat(filepath.Join(objects, hex[:2], hex[2:])); err == nil && st.Mode().IsRegular() {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(objects, "pack", "*.idx"))
	if err != nil {
		return err
	}
	var size int64
	for _, n := range names {
		st, err := os.Lstat(n)
		if err != nil {
			return err
		}
		size += st.Size()
	}
	if _, err := os.Lstat(filepath.Join(objects, "info", "alternates")); size > maxIndexes || err == nil {
		return errAskGit
	}
	return nil
}
