package life

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// A session that opens while git packs the repository's loose objects, as it does
// in the background after a commit, keeps all of them all the same.
func TestGitSnapshotBesideGC(t *testing.T) {
	t.Parallel()
	for _, objects := range []int{300, 1500} { // kept as copies, kept by second names
		t.Run(fmt.Sprint(objects), func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			for round := range 3 {
				for i := range objects {
					f.Write(fmt.Sprintf("many/%d", i), fmt.Sprintln(round, i))
				}
				f.Git("add", "many")
				f.Git("commit", "-qm", "many")
				done := filepath.Join(t.TempDir(), "done")
				packed := make(chan error, 1)
				go func() {
					_, err := f.Try(f.Dir, "repack", "-adq")
					packed <- err
					_ = os.WriteFile(done, nil, 0o600)
				}()
				res, out, err := runInPlace(t, f, OpenOptions{}, "while [ ! -e "+done+" ]; do sleep 0.02; done; rm -rf .git/objects")
				if err != nil || res.ExitCode != 0 {
					t.Fatalf("round %d: %v\n%s", round, err, out)
				}
				if err := <-packed; err != nil {
					t.Fatal(err)
				}
				if out, err := f.Try(f.Dir, "fsck", "--no-progress"); err != nil {
					t.Fatalf("round %d: git fsck: %v\n%s", round, err, out)
				}
			}
		})
	}
}
