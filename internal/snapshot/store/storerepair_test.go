package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// A store that a program damaged works again for what is still there, and git
// does nothing that somebody wrote into its configuration.
func TestOpenStoreRepairs(t *testing.T) {
	t.Parallel()
	for _, format := range []snapshot.Format{snapshot.SHA1, snapshot.SHA256} {
		for name, damage := range map[string]func(dir string) error{
			"refs":       func(dir string) error { return os.RemoveAll(filepath.Join(dir, "refs")) },
			"head":       func(dir string) error { return os.Remove(filepath.Join(dir, "HEAD")) },
			"config":     func(dir string) error { return os.Remove(filepath.Join(dir, "config")) },
			"alternates": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "objects/info")) },
			"all": func(dir string) error {
				for _, n := range []string{"refs", "HEAD", "config", "objects/info"} {
					if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
						return err
					}
				}
				return nil
			},
			"planted": func(dir string) error {
				conf, err := os.ReadFile(filepath.Join(dir, "config"))
				if err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(dir, "config"), append(conf, "[diff]\n\texternal = touch "+dir+"/planted\n"...), 0o600)
			},
		} {
			t.Run(format.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := newPackFixture(t, format)
				if err := damage(f.store.dir); err != nil {
					t.Fatal(err)
				}
				s, err := OpenExisting(f.store.git, f.store.dir)
				if err != nil {
					t.Fatal(err)
				}
				if name != "alternates" && name != "all" {
					if _, err := s.ListRefs(t.Context(), "refs/superqode/"); err != nil {
						t.Error(err)
					}
				}
				if s, err = Open(t.Context(), f.store.git, f.store.dir, filepath.Join(f.origin, ".git/objects"), format); err != nil {
					t.Fatal(err)
				}
				for _, e := range f.later.Entries {
					var out bytes.Buffer
					if e.Kind == snapshot.File {
						if err := s.ReadBlob(t.Context(), e.ID, &out); err != nil || int64(out.Len()) != e.Size {
							t.Errorf("%s: %d bytes, %v", e.Path, out.Len(), err)
						}
					}
				}
				if conf, err := os.ReadFile(filepath.Join(s.dir, "config")); err != nil || !bytes.Equal(conf, storeConfig(format)) {
					t.Errorf("config %s, %v", conf, err)
				}
			})
		}
	}
}
