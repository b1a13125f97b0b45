package gittest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Print is the fingerprint of a directory: one line of facts for each path.
type Print map[string]string

// Fingerprint records type, permission bits and contents or link target of
// everything below dir, the git dir with index, refs, logs, config, hooks and
// objects included. For a linked worktree, whose .git is a file, the shared git
// dir is recorded too, below "COMMON/". exclude names slash-separated paths that
// are left out with all that lies below them.
//
// Times are not part of it; Times records them.
func Fingerprint(tb TB, dir string, exclude ...string) Print {
	tb.Helper()
	p := Print{}
	if err := p.walk(dir, "", exclude, contentFacts); err != nil {
		tb.Fatalf("fingerprint: %v", err)
	}
	common, err := commonDir(dir)
	if err == nil && common != "" {
		err = p.walk(common, "COMMON/", exclude, contentFacts)
	}
	if err != nil {
		tb.Fatalf("fingerprint: %v", err)
	}
	return p
}

// Times records the modification time, in nanoseconds, of every file and link
// below dir: a file that was rewritten with the same bytes shows.
func Times(tb TB, dir string, exclude ...string) Print {
	tb.Helper()
	p := Print{}
	err := p.walk(dir, "", exclude, func(_ string, info fs.FileInfo) (string, error) {
		if info.IsDir() {
			return "dir", nil
		}
		return info.ModTime().UTC().Format("2006-01-02T15:04:05.000000000"), nil
	})
	if err != nil {
		tb.Fatalf("fingerprint: %v", err)
	}
	return p
}

// Fingerprint is Fingerprint of the fixture's directory.
func (f *Fixture) Fingerprint(exclude ...string) Print {
	f.tb.Helper()
	return Fingerprint(f.tb, f.Dir, exclude...)
}

// Diff returns one line for each path that differs from p in after, sorted; none
// when nothing does.
func (p Print) Diff(after Print) []string {
	var lines []string
	for path, old := range p {
		if now, ok := after[path]; !ok {
			lines = append(lines, fmt.Sprintf("%q: gone (was %s)", path, old))
		} else if now != old {
			lines = append(lines, fmt.Sprintf("%q: was %s, is %s", path, old, now))
		}
	}
	for path, now := range after {
		if _, ok := p[path]; !ok {
			lines = append(lines, fmt.Sprintf("%q: new (%s)", path, now))
		}
	}
	slices.Sort(lines)
	return lines
}

// Same ends the test when after differs from before.
func Same(tb TB, before, after Print) {
	tb.Helper()
	if d := before.Diff(after); len(d) > 0 {
		tb.Fatalf("directory changed:\n%s", strings.Join(d, "\n"))
	}
}

func (p Print) walk(dir, prefix string, exclude []string, facts func(string, fs.FileInfo) (string, error)) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := prefix + filepath.ToSlash(rel)
		if slices.Contains(exclude, name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err == nil {
			p[name], err = facts(path, info)
		}
		return err
	})
}

func contentFacts(path string, info fs.FileInfo) (string, error) {
	mode := info.Mode()
	switch {
	case mode.IsRegular():
		data, err := os.ReadFile(path)
		return fmt.Sprintf("file %v %d %x", mode, len(data), sha256.Sum256(data)), err
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return fmt.Sprintf("link %q", target), err
	}
	return mode.String(), nil
}

// commonDir returns the git dir that a linked worktree at dir shares, or "".
func commonDir(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, ".git"))
	if err != nil {
		return "", nil // a folder, or no repository at all
	}
	admin := strings.TrimSuffix(strings.TrimPrefix(string(data), "gitdir: "), "\n")
	if !filepath.IsAbs(admin) {
		admin = filepath.Join(dir, admin)
	}
	link, err := os.ReadFile(filepath.Join(admin, "commondir"))
	if err != nil {
		return admin, nil // a submodule: the whole git dir is its own
	}
	common := strings.TrimSuffix(string(link), "\n")
	if !filepath.IsAbs(common) {
		common = filepath.Join(admin, common)
	}
	return common, nil
}
