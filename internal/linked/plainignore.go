package linked

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// errNotPlain means that git has to decide what is ignored.
var errNotPlain = errors.New("an ignore pattern that is not plain")

// plainIgnore decides in process as long as the ignore files that it meets hold
// only plain patterns, text and single stars, as nearly all do; git decides the
// rest. (go-git's matcher differs from git's: it also matches a folder's
// pattern with everything in it, and so "!/a/x" brings back "/a/x/x", too.)
type plainIgnore struct {
	top    string
	origin *snapshot.Snapshot
	global []ignorePattern                     // core.excludesFile and info/exclude
	inTree map[superqode.RelPath]ignoredFolder // those met so far
	ask    func() (judge, error)
	git    judge // nil until it is needed
}

// ignoredFolder is a folder of the origin.
type ignoredFolder struct {
	ignored  bool            // with everything in it
	patterns []ignorePattern // of its .gitignore
}

// ignorePattern is one line of an ignore file.
type ignorePattern struct {
	glob    string // for path.Match, with the whole path below the file's folder or with the last name
	whole   bool
	dirOnly bool
	negated bool
}

// plainJudge reads the ignore files outside the work tree. The error is
// errNotPlain if git has to decide.
func (c *creation) plainJudge(ctx context.Context) (*plainIgnore, error) {
	if v, ok := c.config.Last("core.ignorecase"); ok && v != "false" {
		return nil, errNotPlain
	}
	user, err := globalFile(ctx, c.Repo, "core.excludesfile", "ignore")
	if err != nil {
		return nil, err
	}
	p := &plainIgnore{
		top: c.Repo.TopLevel, origin: c.origin, inTree: map[superqode.RelPath]ignoredFolder{},
		ask: func() (judge, error) { return c.checkIgnore(ctx) },
	}
	for _, file := range []string{user, filepath.Join(c.Repo.CommonDir, "info", "exclude")} {
		list, err := readIgnoreFile(file)
		if err != nil {
			return nil, err
		}
		p.global = append(p.global, list...)
	}
	return p, nil
}

// folder returns what is known about a folder.
func (p *plainIgnore) folder(dir superqode.RelPath) (f ignoredFolder, err error) {
	f, known := p.inTree[dir]
	if known {
		return f, nil
	}
	if dir != "" {
		if f.ignored, err = p.ignores(dir, true); err != nil {
			return f, err
		}
	}
	switch e := p.origin.Find(dir.Join(".gitignore")); {
	case e == nil || f.ignored:
	case e.Kind == snapshot.Link:
		return f, errNotPlain // git follows no link here, since 2.32
	case e.Kind == snapshot.File:
		if f.patterns, err = readIgnoreFile(e.Path.In(p.top)); err != nil {
			return f, err
		}
	}
	p.inTree[dir] = f
	return f, nil
}

// readIgnoreFile reads one file of patterns; a missing one has none.
func readIgnoreFile(file string) ([]ignorePattern, error) {
	if file == "" {
		return nil, nil
	}
	data, err := atomicfile.ReadThrough(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errNotPlain // git decides what an unreadable one means
	}
	var list []ignorePattern
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		text = strings.TrimRight(text, " ")
		if text == "" || text[0] == '#' {
			continue
		}
		pattern, ok := parseIgnorePattern(text)
		if !ok {
			return nil, errNotPlain
		}
		list = append(list, pattern)
	}
	return list, nil
}

// parseIgnorePattern reads a line that is neither empty nor a comment; ok is false
// for one that is not plain. See gitignore(5).
func parseIgnorePattern(text string) (p ignorePattern, ok bool) {
	text, p.negated = strings.CutPrefix(text, "!")
	text, p.dirOnly = strings.CutSuffix(text, "/")
	p.whole = strings.Contains(text, "/")
	p.glob = strings.TrimPrefix(text, "/")
	plain := p.glob != "" && p.glob[0] != '/' && p.glob[len(p.glob)-1] != '/' &&
		!strings.ContainsAny(p.glob, "?[\\\x00\r") && !strings.Contains(p.glob, "**")
	return p, plain
}

func (p *plainIgnore) ignored(paths []superqode.RelPath) (answers []bool, err error) {
	if p.git == nil {
		answers = make([]bool, len(paths))
		for i := 0; i < len(paths) && err == nil; i++ {
			e := p.origin.Find(paths[i])
			answers[i], err = p.ignores(paths[i], e != nil && e.Kind == snapshot.Dir)
		}
		if !errors.Is(err, errNotPlain) {
			return answers, err
		}
		if p.git, err = p.ask(); err != nil {
			return nil, err
		}
	}
	return p.git.ignored(paths)
}

// ignores reports whether a path or a folder above it is ignored. The ignore
// file nearest to the path counts first and the user's own last; in each the
// last matching pattern counts.
func (p *plainIgnore) ignores(name superqode.RelPath, isDir bool) (bool, error) {
	parent, err := p.folder(name.Parent())
	if err != nil || parent.ignored {
		return parent.ignored, err
	}
	for dir := name; dir != ""; {
		dir = dir.Parent()
		f, err := p.folder(dir)
		if err != nil {
			return false, err
		}
		below := strings.TrimPrefix(string(name[len(dir):]), "/")
		if found, negated := lastMatch(f.patterns, below, isDir); found {
			return !negated, nil
		}
	}
	found, negated := lastMatch(p.global, string(name), isDir)
	return found && !negated, nil
}

func lastMatch(list []ignorePattern, name string, isDir bool) (found, negated bool) {
	for _, p := range slices.Backward(list) {
		subject := name
		if !p.whole {
			subject = path.Base(name)
		}
		if ok, _ := path.Match(p.glob, subject); ok && (isDir || !p.dirOnly) { // a plain pattern is never malformed
			return true, p.negated
		}
	}
	return false, false
}

func (p *plainIgnore) close() {
	if p.git != nil {
		p.git.close()
	}
}
