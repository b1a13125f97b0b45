package gittest

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
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
// of the template, and the index vouches for what git found clean in the template,
// unless a test changes the file again.
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
	for i := range t.files {
		if e := &t.files[i]; filepath.Base(e.name) == "index" {
			if err := f.refresh(f.place(e), e); err != nil {
				tb.Fatalf("make fixture: %v", err)
			}
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

// refresh puts the stat data of the new files into an index, as git update-index
// --refresh would. Entries that git does not trust, because they are as young as the
// index or differ from the template's files, stay as they are.
func (f *Fixture) refresh(index string, e *templateFile) error {
	tree := filepath.Dir(filepath.Dir(index))
	if link, err := os.ReadFile(filepath.Join(filepath.Dir(index), "gitdir")); err == nil {
		tree = filepath.Dir(strings.TrimSpace(string(link)))
	} else if filepath.Base(filepath.Dir(index)) != ".git" {
		return nil
	}
	data := slices.Clone(e.data)
	body := data[:len(data)-sha1.Size]
	at := indexHeader
	for range be.Uint32(data[8:]) {
		entry, start := body[at:], indexFixed
		if be.Uint16(entry[indexFixed-2:])&indexExtended != 0 {
			start += 2
		}
		end := start + bytes.IndexByte(entry[start:], 0)
		vouch(entry, filepath.Join(tree, string(entry[start:end])), e.mtime)
		at += (end + 8) &^ 7 // one to eight NULs
	}
	sum := sha1.Sum(body)
	copy(data[len(body):], sum[:])
	if err := os.WriteFile(index, data, 0o600); err != nil {
		return err
	}
	return os.Chtimes(index, e.mtime, e.mtime)
}

// vouch puts a file's stat data into the entry of an index that is as old as written.
func vouch(entry []byte, path string, written time.Time) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return
	}
	mtime := time.Unix(st.Mtim.Unix())
	known := time.Unix(int64(be.Uint32(entry[8:])), int64(be.Uint32(entry[12:])))
	if !mtime.Equal(known) || uint32(st.Size) != be.Uint32(entry[36:]) || !mtime.Before(written) {
		return
	}
	sec, nsec := st.Ctim.Unix()
	for i, v := range map[int]uint32{0: uint32(sec), 4: uint32(nsec), 16: uint32(st.Dev), 20: uint32(st.Ino), 28: st.Uid, 32: st.Gid} {
		be.PutUint32(entry[i:], v)
	}
}

// The format of an index of version 2 or 3, see gitformat-index(5).
const (
	indexHeader   = 12
	indexFixed    = 62     // of an entry, before its name and the second word of flags
	indexExtended = 0x4000 // in the flags: there is a second word
)

var be = binary.BigEndian

// configPath is a path as one of a fixture's files holds it: the name of a subtest
// may have a character in it that begins a comment in git's configuration.
func configPath(e *templateFile, path string) []byte {
	if filepath.Base(e.name) == "config" && strings.ContainsAny(path, "#;") {
		return []byte(`"` + path + `"`)
	}
	return []byte(path)
}
