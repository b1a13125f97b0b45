package gitfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// Every kind of object file that git and git-lfs make holds against itself, and
// not when a byte of it is another.
func TestCheckObject(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t, "--object-format="+format)
			for i := range 20 {
				f.Write("file"+string(rune('a'+i)), strings.Repeat("text ", i*10))
			}
			f.Commit("first")
			f.Git("gc", "-q")
			f.Git("commit-graph", "write", "--reachable")
			f.Git("multi-pack-index", "write")
			f.Write("loose", "not packed yet")
			f.Commit("second")
			big := strings.Repeat("of git-lfs", 100)
			sum := sha256.Sum256([]byte(big))
			oid := hex.EncodeToString(sum[:])
			f.Write(".git/lfs/objects/"+oid[:2]+"/"+oid[2:4]+"/"+oid, big)
			kinds := map[string]bool{}
			for _, dir := range []string{".git/objects", ".git/lfs/objects"} {
				err := filepath.WalkDir(f.Path(dir), func(path string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) == "info" && d.Name() == "packs" {
						return err
					}
					kinds[filepath.Ext(path)] = true
					return checkOne(t, path, format)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, kind := range []string{"", ".pack", ".idx"} {
				if !kinds[kind] {
					t.Errorf("no %q among %v", kind, kinds)
				}
			}
		})
	}
}

// checkOne checks a file, and copies of it with damage.
func checkOne(t *testing.T, path, format string) error {
	t.Helper()
	if err := CheckObject(path, format); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir := filepath.Join(t.TempDir(), filepath.Base(filepath.Dir(path)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	bad := filepath.Join(dir, filepath.Base(path))
	for what, change := range map[string]func() []byte{
		"a bit in the middle": func() []byte { b := append([]byte{}, data...); b[len(b)/2] ^= 4; return b },
		"the last byte":       func() []byte { b := append([]byte{}, data...); b[len(b)-1]++; return b },
		"cut":                 func() []byte { return data[:len(data)*2/3] },
		"almost nothing":      func() []byte { return data[:3] },
		"nothing":             func() []byte { return nil },
		"other":               func() []byte { return []byte(strings.Repeat("garbage", 20)) },
	} {
		if err := os.WriteFile(bad, change(), 0o644); err != nil {
			return err
		}
		if err := CheckObject(bad, format); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, %s: %v", filepath.Base(path), what, err)
		}
	}
	return nil
}

func TestCheckObjectOfNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := CheckObject(filepath.Join(dir, "none.pack"), "sha1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "x.pack")); err != nil {
		t.Fatal(err)
	}
	if err := CheckObject(filepath.Join(dir, "x.pack"), "sha1"); !errors.Is(err, atomicfile.ErrNotRegular) {
		t.Errorf("a link: %v", err)
	}
}
