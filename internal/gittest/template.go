package gittest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Template is a fixture that Build makes once in this process and that is written
// out again for each test that wants one: some twenty processes of git less. It
// holds the fixture's home, its directory and whatever else lies beside that.
type Template struct {
	Build func(f *Fixture)
	once  sync.Once
	top   string // the folder above the directory of the fixture that was built
	home  string
	files []templateFile
}

// templateFile is one file, link or folder of a template.
type templateFile struct {
	name   string // below top, or below home with inHome
	inHome bool
	mode   fs.FileMode
	mtime  time.Time
	data   []byte // of a file, or a link's target
}

// Make writes the template out as a new fixture. The modification times are those
// of the template, so an index that git refreshes afterwards vouches for what was
// clean, unless a test changes the file again.
func (t *Template) Make(tb TB) *Fixture {
	tb.Helper()
	t.once.Do(func() {
		f := Plain(tb)
		t.Build(f)
		t.top, t.home = filepath.Dir(f.Dir), f.Home
		t.read(tb, t.top, false)
		t.read(tb, t.home, true)
	})
	f := Plain(tb)
	for i := range t.files {
		if err := t.write(f, &t.files[i]); err != nil {
			tb.Fatalf("make fixture: %v", err)
		}
	}
	for i := len(t.files) - 1; i >= 0; i-- { // a folder after what lies in it
		if e := &t.files[i]; e.mode.IsDir() {
			if err := os.Chtimes(f.place(e), e.mtime, e.mtime); err != nil {
				tb.Fatalf("make fixture: %v", err)
			}
		}
	}
	return f
}

func (f *Fixture) place(e *templateFile) string {
	if e.inHome {
		return filepath.Join(f.Home, e.name)
	}
	return filepath.Join(filepath.Dir(f.Dir), e.name)
}

func (t *Template) read(tb TB, dir string, inHome bool) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir || strings.HasSuffix(p, ".sample") { // git's examples of hooks
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		e := templateFile{name: strings.TrimPrefix(p, dir+string(filepath.Separator)), inHome: inHome, mode: st.Mode(),
			mtime: st.ModTime()}
		switch {
		case e.mode.IsRegular():
			e.data, err = os.ReadFile(p)
		case e.mode&fs.ModeSymlink != 0:
			var target string
			target, err = os.Readlink(p)
			e.data = []byte(target)
		}
		t.files = append(t.files, e)
		return err
	})
	if err != nil {
		tb.Fatalf("make fixture: %v", err)
	}
}

// write makes one file of a new fixture. What git keeps in text names the new
// places; objects and index hold none.
func (t *Template) write(f *Fixture, e *templateFile) error {
	p := f.place(e)
	switch {
	case e.mode.IsDir():
		if err := os.MkdirAll(p, 0o700); err != nil {
			return err
		}
		return os.Chmod(p, e.mode.Perm())
	case !e.mode.IsRegular():
		return os.Symlink(string(e.data), p)
	}
	data := e.data
	switch filepath.Base(e.name) {
	case "config", "FETCH_HEAD", "gitdir", ".git":
		data = bytes.ReplaceAll(data, []byte(t.home), configPath(e, f.Home))
		data = bytes.ReplaceAll(data, []byte(t.top), configPath(e, filepath.Dir(f.Dir)))
	}
	if err := os.WriteFile(p, data, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(p, e.mode.Perm()); err != nil {
		return err
	}
	return os.Chtimes(p, e.mtime, e.mtime)
}

// configPath is a path as one of a fixture's files holds it: the name of a subtest
// may have a character in it that begins a comment in git's configuration.
func configPath(e *templateFile, path string) []byte {
	if filepath.Base(e.name) == "config" && strings.ContainsAny(path, "#;") {
		return []byte(`"` + path + `"`)
	}
	return []byte(path)
}
