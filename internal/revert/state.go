package revert

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
)

// RepoState is a repository without its work tree and its objects, as it was at
// one moment.
type RepoState struct {
	SchemaVersion int               `json:"schema_version"`
	GitDir        []byte            `json:"git_dir"`
	CommonDir     []byte            `json:"common_dir"`
	ObjectFormat  string            `json:"object_format"`
	Refs          map[string]string `json:"refs"`  // full name → object id, or "ref: <name>" for a symbolic one
	Files         map[string]string `json:"files"` // label (see fileRoots) → mode and SHA-256 of contents
	IndexCopy     []byte            `json:"index_copy"`
	IndexSum      string            `json:"index_sum"` // of the index's bytes
}

// Difference is one way in which a repository differs from what it was.
type Difference struct {
	What string // "HEAD", "ref refs/heads/main", "index", "config", "hooks/pre-commit", …
	Old  string // "" where it did not exist
	New  string // "" where it no longer exists
}

// String returns one line: what, and from what to what.
func (d Difference) String() string {
	switch {
	case d.Old == "":
		return d.What + ": created"
	case d.New == "":
		return d.What + ": deleted"
	case strings.HasPrefix(d.What, "ref ") || d.What == "HEAD":
		return fmt.Sprintf("%s: %.12s is now %.12s", d.What, d.Old, d.New)
	}
	return d.What + ": changed"
}

// fileRoots lists what belongs to the state, as paths below the work tree's git
// dir and below the common dir, without FETCH_HEAD, ORIG_HEAD, COMMIT_EDITMSG,
// gc's own files and the list of linked worktrees: fetching, reading and other
// sessions change them and lose nothing.
func fileRoots() (gitDir, commonDir []string) {
	gitDir = []string{"HEAD", "config.worktree", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE",
		"rebase-merge", "rebase-apply", "sequencer", "BISECT_LOG", "BISECT_START", "BISECT_TERMS", "BISECT_EXPECTED_REV", "BISECT_NAMES", "refs/bisect", "info/sparse-checkout"}
	commonDir = []string{"config", "info", "hooks", "shallow", "logs/refs/stash", "modules.config", "reftable"}
	return gitDir, commonDir
}

// Judges reports whether Compare looks at what a file holds, an absolute path. It
// does not look at the lock files, nor at the modes of most files.
func (s *RepoState) Judges(path string) bool {
	own, common := fileRoots()
	in := func(dir []byte, roots []string) bool {
		rel, ok := strings.CutPrefix(path, string(dir)+"/")
		return ok && slices.ContainsFunc(roots, func(r string) bool { return rel == r || strings.HasPrefix(rel, r+"/") })
	}
	return in(s.GitDir, append(own, "index")) || in(s.CommonDir, append(common, "refs", "packed-refs"))
}

// Capture records the state of a repository. It copies the index to indexCopy,
// so that its entries can be compared later even if its bytes have changed; an
// empty indexCopy keeps none.
func Capture(r *git.Repo, indexCopy string) (*RepoState, error) {
	s := &RepoState{SchemaVersion: 1, GitDir: []byte(r.GitDir), CommonDir: []byte(r.CommonDir), ObjectFormat: r.ObjectFormat, Files: map[string]string{}, IndexCopy: []byte(indexCopy)}
	own, common := fileRoots()
	for _, root := range own {
		if err := s.addTree("", r.GitDir, root); err != nil {
			return nil, err
		}
	}
	for _, root := range common {
		if err := s.addTree("common/", r.CommonDir, root); err != nil {
			return nil, err
		}
	}
	var err error
	if s.Refs, err = ReadRefs(r.CommonDir); err != nil {
		return nil, err
	}
	return s, s.captureIndex(filepath.Join(r.GitDir, "index"))
}

// addTree adds one file, or every file below one folder.
func (s *RepoState) addTree(prefix, dir, root string) error {
	return filepath.WalkDir(filepath.Join(dir, root), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read repository state: %w", err)
		}
		rel, rerr := filepath.Rel(dir, path)
		if d.IsDir() || rel == "info/refs" { // git gc writes that one, for servers
			return rerr
		}
		sum, err := fileSum(path, d)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		s.Files[prefix+rel] = sum
		return err
	})
}

// fileSum describes a file by mode and contents, a link by its target, and
// anything else by its type, without opening it.
func fileSum(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	switch {
	case info.Mode().IsRegular():
		data, err := atomicfile.Read(path)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(data)
		return fmt.Sprintf("%04o %s", info.Mode().Perm(), hex.EncodeToString(sum[:])), nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return "link " + target, err
	}
	return info.Mode().Type().String(), nil
}

func (s *RepoState) captureIndex(path string) error {
	data, err := atomicfile.ReadThrough(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	s.IndexSum = hex.EncodeToString(sum[:])
	if len(s.IndexCopy) == 0 {
		return nil
	}
	return os.WriteFile(string(s.IndexCopy), data, 0o600)
}

// ReadRefs reads loose and packed refs below a common dir, without per-worktree
// ones. A loose ref hides the packed one of its name.
func ReadRefs(common string) (map[string]string, error) {
	refs := map[string]string{}
	packed, err := atomicfile.ReadThrough(filepath.Join(common, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(packed) {
		id, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if ok && !strings.HasPrefix(id, "#") {
			refs[name] = id
		}
	}
	root, err := filepath.EvalSymlinks(filepath.Join(common, "refs")) // several checkouts may share one folder of refs
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = "refs/" + rel
		if perWorktree(rel) || strings.HasSuffix(rel, ".lock") {
			return nil
		}
		ref, err := readRef(path, d)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		refs[rel] = ref
		return err
	})
	return refs, err
}

// readRef returns what a loose ref holds. It describes a link, and anything
// that is not a file, as such.
func readRef(path string, d fs.DirEntry) (string, error) {
	if !d.Type().IsRegular() {
		return fileSum(path, d)
	}
	data, err := atomicfile.Read(path)
	return strings.TrimSpace(string(data)), err
}

// perWorktree reports whether a ref belongs to one work tree only; see
// git-worktree(1), section REFS.
func perWorktree(name string) bool {
	return strings.HasPrefix(name, "refs/bisect/") || strings.HasPrefix(name, "refs/worktree/") || strings.HasPrefix(name, "refs/rewritten/")
}

// Compare returns how now differs from s, sorted by what differs.
func (s *RepoState) Compare(now *RepoState) ([]Difference, error) {
	var diffs []Difference
	diffs = appendDiffs(diffs, s.Refs, now.Refs, "ref ")
	diffs = appendDiffs(diffs, s.Files, now.Files, "")
	for i, d := range diffs {
		diffs[i].What = strings.TrimPrefix(d.What, "common/")
		if d.What == "ref refs/stash" {
			diffs[i].What = "stash"
		}
	}
	if s.IndexSum != now.IndexSum {
		same, err := s.sameEntries(filepath.Join(string(s.GitDir), "index"))
		if err != nil {
			return nil, err
		}
		if !same {
			diffs = append(diffs, Difference{What: "index", Old: s.IndexSum, New: now.IndexSum})
		}
	}
	slices.SortStableFunc(diffs, func(a, b Difference) int { return strings.Compare(a.What, b.What) })
	return diffs, nil
}

func appendDiffs(diffs []Difference, old, now map[string]string, prefix string) []Difference {
	for _, k := range slices.Sorted(maps.Keys(old)) {
		if now[k] != old[k] {
			diffs = append(diffs, Difference{prefix + k, old[k], now[k]})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if _, was := old[k]; !was {
			diffs = append(diffs, Difference{prefix + k, "", now[k]})
		}
	}
	return diffs
}

// Save writes the state as JSON and waits for as much.
func (s *RepoState) Save(path string, wait atomicfile.Wait) error { return wait.WriteJSON(path, s) }

// LoadState reads what Save wrote.
func LoadState(path string) (*RepoState, error) {
	data, err := atomicfile.Read(path)
	if err != nil {
		return nil, err
	}
	var s RepoState
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}
