package hooks

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// place is the repository in which git called. It is found as git finds it, but
// without starting one: a hook runs many times in one command.
type place struct {
	gitDir   string
	common   string
	workTree string // "" in a bare repository
	found    bool
}

// findPlace looks at the variables that git sets for its hooks, and then upwards
// from dir.
func findPlace(dir string, env []string) place {
	if dir == "" {
		return place{}
	}
	p := place{workTree: inside(dir, superqode.Getenv(env, "GIT_WORK_TREE"))}
	if v := superqode.Getenv(env, "GIT_DIR"); v != "" {
		p.gitDir = followGitFile(inside(dir, v))
		if p.workTree == "" && !within(dir, p.gitDir) {
			p.workTree = dir // GIT_DIR alone: the work tree is where git is
		}
	} else if found := discover(dir); found.found {
		if p.workTree != "" {
			found.workTree = p.workTree
		}
		p = found
	}
	if p.gitDir == "" {
		return place{}
	}
	p.found = true
	if v := superqode.Getenv(env, "GIT_COMMON_DIR"); v != "" {
		p.common = inside(dir, v)
	} else {
		p.common = commonOf(p.gitDir)
	}
	return p
}

// inside makes a path absolute; "" stays "".
func inside(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// discover walks up as setup_git_directory does: a .git folder, a .git file, or a
// bare repository.
func discover(dir string) place {
	for {
		dotGit := filepath.Join(dir, ".git")
		if st, err := os.Stat(dotGit); err == nil {
			if g := followGitFile(dotGit); !st.IsDir() && g != dotGit || isGitDir(g) {
				return place{gitDir: g, workTree: dir, found: true}
			}
		}
		if isGitDir(dir) {
			return place{gitDir: dir, found: true}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return place{}
		}
		dir = up
	}
}

// isGitDir is is_git_directory of git's setup.c, as far as it looks for names.
func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if st, err := os.Stat(filepath.Join(commonOf(dir), name)); err != nil || !st.IsDir() {
			return false
		}
	}
	return true
}

// maxPointer bounds the files that hold one path.
const maxPointer = 64 << 10

// followGitFile returns what a .git file points at, or the path itself.
func followGitFile(path string) string {
	target, ok := strings.CutPrefix(pointer(path), "gitdir: ")
	if !ok {
		return path
	}
	return inside(filepath.Dir(path), target)
}

func commonOf(gitDir string) string {
	if c := pointer(filepath.Join(gitDir, "commondir")); c != "" {
		return inside(gitDir, c)
	}
	return gitDir
}

// pointer reads a small regular file without its last newlines; "" when there is
// none.
func pointer(path string) string {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxPointer {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(data), "\r\n")
}
