package gitdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/revert"
)

// maxLogs is how much of the repository's reflogs a session's own git directory
// gets; the stash's comes first, since "git stash list" reads nothing else.
const maxLogs = 1 << 20

// copyRefs gives a session's own git directory the refs that the repository has.
// They are packed, but for symbolic ones: a folder with thousands of files takes
// long to write.
func copyRefs(ctx context.Context, repo *git.Repo, dir string) error {
	refs, err := repoRefs(ctx, repo)
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for name, value := range refs {
		target, symbolic := strings.CutPrefix(value, "ref:")
		switch {
		case validObject(value):
			ids[name] = value
		case symbolic && validRef(name):
			file := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
				os.WriteFile(file, []byte("ref: "+strings.TrimSpace(target)+"\n"), 0o600)); err != nil {
				return err
			}
		}
	}
	packed, err := atomicfile.ReadThrough(filepath.Join(repo.CommonDir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "packed-refs"), packedRefs(packed, ids), 0o600); err != nil {
		return err
	}
	return copyLogs(filepath.Join(repo.CommonDir, "logs"), filepath.Join(dir, "logs"))
}

// hasReftable reports whether a repository keeps its refs in a way that only git
// reads.
func hasReftable(common string) bool { return atomicfile.Exists(filepath.Join(common, "reftable")) }

// repoRefs returns all refs of a repository: object ids, and "ref: " with the name
// for symbolic ones.
func repoRefs(ctx context.Context, repo *git.Repo) (map[string]string, error) {
	if !hasReftable(repo.CommonDir) {
		return revert.ReadRefs(repo.CommonDir)
	}
	out, err := repo.Output(ctx, git.Cmd{Args: []string{"--git-dir", repo.CommonDir, "for-each-ref", "--format=%(objectname) %(refname) %(symref)"}})
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(f) != 3 {
			continue
		}
		if refs[f[1]] = f[0]; f[2] != "" {
			refs[f[1]] = "ref: " + f[2]
		}
	}
	return refs, nil
}

// headOf is the content of the file HEAD of a session's own git directory.
func headOf(ctx context.Context, repo *git.Repo, gitDir, commit string) (string, error) {
	if !hasReftable(repo.CommonDir) {
		data, err := atomicfile.Read(filepath.Join(gitDir, "HEAD"))
		return string(data), err
	}
	out, err := repo.Output(ctx, git.Cmd{Args: []string{"--git-dir", gitDir, "symbolic-ref", "-q", "HEAD"}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return commit + "\n", nil
	}
	return "ref: " + string(out), err
}

// packedRefs writes refs into a packed-refs file (git's refs/packed-backend.c). What
// it says of peeled tags stays where the tag stays; the header promises it no more
// for all of them.
func packedRefs(packed []byte, refs map[string]string) []byte {
	peeled := map[string]string{}
	last := ""
	for line := range bytes.Lines(packed) {
		text := strings.TrimSuffix(string(line), "\n")
		if id, ok := strings.CutPrefix(text, "^"); ok {
			peeled[last] = id
			continue
		}
		id, name, ok := strings.Cut(text, " ")
		if last = ""; ok && refs[name] == id {
			last = name
		}
	}
	names := make([]string, 0, len(refs))
	for name := range refs {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range names {
		fmt.Fprintf(&b, "%s %s\n", refs[name], name)
		if id := peeled[name]; id != "" {
			fmt.Fprintf(&b, "^%s\n", id)
		}
	}
	return b.Bytes()
}

func validObject(id string) bool {
	return (len(id) == 40 || len(id) == 64) && strings.Trim(id, "0123456789abcdef") == ""
}

// copyLogs copies reflogs up to maxLogs.
func copyLogs(from, to string) error {
	left := int64(maxLogs)
	one := func(path string) error {
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		st, err := os.Lstat(path)
		if err != nil || !st.Mode().IsRegular() || st.Size() > left || atomicfile.Exists(filepath.Join(to, rel)) {
			return nil // a log that is missing loses nobody anything
		}
		data, err := atomicfile.Read(path)
		if err != nil {
			return nil
		}
		left -= int64(len(data))
		return errors.Join(os.MkdirAll(filepath.Join(to, filepath.Dir(rel)), 0o700),
			os.WriteFile(filepath.Join(to, rel), data, 0o600))
	}
	if err := one(filepath.Join(from, "refs", "stash")); err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(from, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if left <= 0 {
			return fs.SkipAll
		}
		return one(path)
	})
}

// validRef reports whether a name can be a ref's file (git-check-ref-format(1), as
// far as a path is concerned), or is HEAD.
func validRef(name string) bool {
	if name == "HEAD" {
		return true
	}
	return strings.HasPrefix(name, "refs/") && filepath.IsLocal(name) && filepath.Clean(name) == name &&
		!strings.Contains(name, "..") && !strings.Contains(name, "/.") && !strings.HasSuffix(name, ".lock") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) })
}

// refAt reads what a git directory that a program could write to says of one ref:
// an object id, or "" for nothing that could be one. Symbolic refs are followed, and
// links are not.
func refAt(gitDir, common, name string) string {
	for range 5 {
		dir := common
		if !strings.HasPrefix(name, "refs/") {
			dir = gitDir
		}
		if !validRef(name) {
			return ""
		}
		value := atomicfile.ReadBelow(dir, name)
		if value == "" && dir == common {
			value = packedRef(common, name)
		}
		target, symbolic := strings.CutPrefix(value, "ref:")
		if !symbolic {
			if !validObject(value) {
				return ""
			}
			return value
		}
		name = strings.TrimSpace(target)
	}
	return ""
}

func packedRef(common, name string) (id string) {
	eachPacked(common, func(ref, at string) {
		if ref == name && id == "" {
			id = at
		}
	})
	return id
}

// mostPacked is how much of a packed-refs file is read, in bytes: a program may have
// made one that is mostly a hole.
const mostPacked = 64 << 20

// eachPacked names the refs of a git directory's packed-refs.
func eachPacked(common string, ref func(name, id string)) {
	path := filepath.Join(common, "packed-refs")
	if st, err := os.Lstat(path); err != nil || st.Size() > mostPacked {
		return
	}
	data, err := atomicfile.Read(path)
	if err != nil {
		return
	}
	for line := range bytes.Lines(data) {
		if id, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " "); ok && validObject(id) && validRef(name) {
			ref(name, id)
		}
	}
}

// mostRefs is how many refs of a program's own are looked at.
const mostRefs = 20000

// refsIn returns the refs of a git directory that a program could write to, under the
// rules of refAt, and without symbolic ones.
func refsIn(dir string) map[string]string {
	refs := map[string]string{}
	eachPacked(dir, func(name, id string) { refs[name] = id })
	if st, err := os.Lstat(filepath.Join(dir, "refs")); err != nil || !st.IsDir() {
		return refs
	}
	seen := 0
	_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > mostRefs {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // a folder that is closed to superqode is closed to git
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && validRef(name) {
			if id := atomicfile.ReadBelow(dir, name); validObject(id) {
				refs[name] = id
			}
		}
		return nil
	})
	return refs
}
