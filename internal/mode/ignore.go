package mode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// ignoreRounds bounds how often git is asked level by level; what lies deeper
// below new folders goes into one last question.
const ignoreRounds = 8

// dropIgnored takes out of now what the program created and git ignores: build
// output, caches, installed dependencies. They are the program's, they are in
// no patch, and reading them all could take minutes. What base knows stays,
// ignored or not. It returns how many entries were dropped, and the topmost of
// their paths.
//
// git decides: check-ignore is asked for the topmost new names only, then for
// the contents of new folders that it does not ignore. It runs with the store
// as its repository, so that no configuration that the program may have planted
// in the workspace is read.
func dropIgnored(ctx context.Context, s *site.Site, now *snapshot.Snapshot) (int, []superqode.RelPath, error) {
	fresh := newEntries(s.Base, now)
	if len(fresh) == 0 || s.Rec.CommonDir == "" {
		return 0, nil, nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return 0, nil, err
	}
	excludes, err := excludesFile(ctx, s)
	if err != nil {
		return 0, nil, err
	}
	ignored := map[superqode.RelPath]bool{}
	settled := map[superqode.RelPath]bool{"": true} // folders whose own state is known: old ones, and new ones that git does not ignore
	for round, rest := 1, fresh; len(rest) > 0; round++ {
		var ask, later []*snapshot.Entry
		for _, e := range rest {
			dir := e.Path.Parent()
			switch {
			case ignored[dir]:
				ignored[e.Path] = ignored[e.Path] || e.Kind == snapshot.Dir
			case settled[dir] || s.Base.Find(dir) != nil || round > ignoreRounds:
				ask = append(ask, e)
			default:
				later = append(later, e)
			}
		}
		hits, err := checkIgnore(ctx, s, excludes, ask)
		if err != nil {
			return 0, nil, err
		}
		for _, e := range ask {
			if hits[e.Path] {
				ignored[e.Path] = true
			} else if e.Kind == snapshot.Dir {
				settled[e.Path] = true
			}
		}
		rest = later
	}
	before := len(now.Entries)
	fresh = nil
	now.Entries = slices.DeleteFunc(now.Entries, func(e snapshot.Entry) bool {
		if len(ignored) == 0 || s.Base.Find(e.Path) != nil {
			return false
		}
		for p := e.Path; p != ""; p = p.Parent() {
			if ignored[p] {
				return true
			}
		}
		return false
	})
	var top []superqode.RelPath
	for p := range ignored {
		if ignored[p] && !ignored[p.Parent()] {
			top = append(top, p)
		}
	}
	return before - len(now.Entries), top, nil
}

// newEntries returns the entries of now whose paths base does not have.
func newEntries(base, now *snapshot.Snapshot) []*snapshot.Entry {
	var fresh []*snapshot.Entry
	for old, e := range snapshot.Join(base.Entries, now.Entries) {
		if old == nil {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// checkIgnore asks git which of the paths are ignored.
func checkIgnore(ctx context.Context, s *site.Site, excludes string, ask []*snapshot.Entry) (pathSet, error) {
	hits := pathSet{}
	if len(ask) == 0 {
		return hits, nil
	}
	var in bytes.Buffer
	for _, e := range ask {
		in.WriteString("./" + string(e.Path)) // a name may begin with ":" or "-"
		if e.Kind == snapshot.Dir {
			in.WriteByte('/')
		}
		in.WriteByte(0)
	}
	g, err := s.Git(ctx)
	if err != nil {
		return nil, err
	}
	out, err := g.Output(ctx, git.Cmd{
		Dir: string(s.Rec.Workspace), Stdin: &in,
		Args: []string{"-c", "core.excludesFile=" + excludes, "-c", "core.bare=false", "check-ignore", "-z", "--stdin", "--no-index"},
		Env:  []string{"GIT_DIR=" + s.Project.StorePath(), "GIT_WORK_TREE=" + string(s.Rec.Workspace)},
	})
	var exit *git.ExitError
	if errors.As(err, &exit) && exit.Code == 1 { // none of them
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask git what is ignored: %w", err)
	}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 {
			hits[superqode.RelPath(strings.TrimSuffix(strings.TrimPrefix(string(name), "./"), "/"))] = true
		}
	}
	return hits, nil
}

// excludesFile writes the ignore rules that lie outside the work tree into one
// file: the user's own and, stronger because later, the repository's
// info/exclude.
func excludesFile(ctx context.Context, s *site.Site) (string, error) {
	g, err := s.Git(ctx)
	if err != nil {
		return "", err
	}
	var rules []byte
	out, err := g.Output(ctx, git.Cmd{Dir: s.Folder, Args: []string{"config", "--type=path", "--get", "core.excludesFile"}, Env: []string{"GIT_DIR=" + string(s.Rec.CommonDir)}})
	var exit *git.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	global := strings.TrimSuffix(string(out), "\n")
	if err != nil {
		global = defaultExcludes(s)
	}
	if global != "" && !filepath.IsAbs(global) { // git reads it from the work tree's root
		global = filepath.Join(string(s.Rec.Origin), global)
	}
	for _, path := range []string{global, filepath.Join(string(s.Rec.CommonDir), "info", "exclude")} {
		data, err := atomicfile.ReadThrough(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) && path != global {
			return "", err
		}
		rules = append(append(rules, data...), '\n')
	}
	file := filepath.Join(s.Folder, "excludes")
	return file, atomicfile.Write(file, rules, 0o600)
}

// defaultExcludes is where git looks when core.excludesFile is not set; see
// gitignore(5). It is "" where there is no home.
func defaultExcludes(s *site.Site) string {
	if x := superqode.Getenv(s.Env, "XDG_CONFIG_HOME"); x != "" {
		return filepath.Join(x, "git", "ignore")
	}
	if home := superqode.Getenv(s.Env, "HOME"); home != "" {
		return filepath.Join(home, ".config", "git", "ignore")
	}
	return ""
}

// pathSet is a set of paths that stand for themselves and all below them.
type pathSet map[superqode.RelPath]bool

func setOf(paths []superqode.RelPath) pathSet {
	set := make(pathSet, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// covers reports whether path is in the set or below a path of it.
func (set pathSet) covers(path superqode.RelPath) bool {
	if len(set) == 0 {
		return false
	}
	for p := path; p != ""; p = p.Parent() {
		if set[p] {
			return true
		}
	}
	return false
}

// writePaths writes a set of paths into a file of the session's folder, each ended by
// NUL.
func writePaths(s *site.Site, name string, paths iter.Seq[superqode.RelPath]) error {
	var b bytes.Buffer
	for p := range paths {
		b.WriteString(string(p))
		b.WriteByte(0)
	}
	return atomicfile.Write(filepath.Join(s.Folder, name), b.Bytes(), 0o600)
}

// readPaths reads what writePaths wrote.
func readPaths(s *site.Site, name string) (pathSet, error) {
	data, err := site.Held(s, name, atomicfile.Read)
	if err != nil {
		return nil, err
	}
	set := pathSet{}
	for p := range bytes.SplitSeq(data, []byte{0}) {
		if len(p) > 0 {
			set[superqode.RelPath(p)] = true
		}
	}
	return set, nil
}

// patchable returns the part of a snapshot of the origin that a patch is about:
// nothing that git ignored when the session began, and no nested repository's
// own files.
func patchable(sn *snapshot.Snapshot, ignored pathSet) *snapshot.Snapshot {
	out := *sn
	out.Entries = slices.DeleteFunc(slices.Clone(sn.Entries), func(e snapshot.Entry) bool { return InsideGit(e.Path) || ignored.covers(e.Path) })
	return &out
}

// InsideGit reports whether a path leads through a .git folder, or is one.
func InsideGit(path superqode.RelPath) bool {
	for ; path != ""; path = path.Parent() {
		if path.Name() == ".git" {
			return true
		}
	}
	return false
}
