package guard

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// Found is a repository as git would find it from a directory, looked up on disk
// without starting git. It says where a command most likely acts; whoever lets
// something through because of it asks git itself.
type Found struct {
	GitDir    string // "" when there is none
	CommonDir string
	WorkTree  string // "" in a bare repository
}

// FindRepository follows setup_git_directory of git's setup.c: GIT_DIR, else
// upwards from dir. gitDir and workTree are --git-dir and --work-tree, or "".
func FindRepository(dir string, env []string, gitDir, workTree string) Found {
	if gitDir == "" {
		gitDir = superqode.Getenv(env, "GIT_DIR")
	}
	if workTree == "" {
		workTree = superqode.Getenv(env, "GIT_WORK_TREE")
	}
	var f Found
	if gitDir != "" {
		f = Found{GitDir: followGitFile(cmdline.Under(dir, gitDir)), WorkTree: dir}
	} else if f = walkUp(dir); f.GitDir == "" {
		return Found{}
	}
	if workTree != "" {
		f.WorkTree = cmdline.Under(dir, workTree)
	}
	f.CommonDir = commonDirOf(f.GitDir)
	if v := superqode.Getenv(env, "GIT_COMMON_DIR"); v != "" {
		f.CommonDir = cmdline.Under(dir, v)
	}
	return Found{realPath(f.GitDir), realPath(f.CommonDir), realPath(f.WorkTree)}
}

// RepositoryOf looks for the repository of a git command, its global options read as
// far as they name one. name is the command's, "" where there is none.
func RepositoryOf(argv []string, dir string, env []string) (f Found, name string) {
	if len(argv) < 2 || !strings.HasPrefix(argv[1], "-") {
		name = append(argv, "", "")[1]
		if dir == "" {
			return Found{}, name
		}
		return FindRepository(dir, env, "", ""), name
	}
	j := NewJudge(context.Background(), Context{Dir: dir, Env: env})
	k := j.call(Command{Argv: argv, Place: Place{Dir: j.Start()}})
	if !cmdline.Known(k.dir) {
		return Found{}, k.name
	}
	return FindRepository(k.dir, env, k.gitDir, k.workTree), k.name
}

func walkUp(dir string) Found {
	for {
		dotGit := filepath.Join(dir, ".git")
		if g := followGitFile(dotGit); g != dotGit || isGitDir(g) {
			return Found{GitDir: g, WorkTree: dir}
		}
		if isGitDir(dir) {
			return Found{GitDir: dir}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return Found{}
		}
		dir = up
	}
}

// isGitDir is is_git_directory of setup.c, as far as it looks for names.
func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	st, err := os.Stat(filepath.Join(commonDirOf(dir), "objects"))
	return err == nil && st.IsDir()
}

func commonDirOf(gitDir string) string {
	if c := pointer(filepath.Join(gitDir, "commondir")); c != "" {
		return cmdline.Under(gitDir, c)
	}
	return gitDir
}

// followGitFile returns what a .git file points at, or the path itself.
func followGitFile(path string) string {
	target, ok := strings.CutPrefix(pointer(path), "gitdir: ")
	if !ok {
		return path
	}
	return cmdline.Under(filepath.Dir(path), target)
}

// maxPointer bounds the files that hold one path.
const maxPointer = 64 << 10

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

func fileThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// realFile is realPath for a file that need not exist yet.
func realFile(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

func realPath(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// madeSince reports whether a folder was made after a moment. Where the file
// system does not tell when that was, the oldest thing in it counts; what cannot
// be told is old.
func madeSince(dir string, when time.Time) bool {
	if when.IsZero() {
		return false
	}
	if birth, ok := birthTime(dir); ok {
		return birth.After(when)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return false
	}
	for _, e := range entries {
		if st, err := os.Lstat(filepath.Join(dir, e.Name())); err != nil || !st.ModTime().After(when) {
			return false
		}
	}
	return true
}
