package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-2d964004/superqode/internal/gittest"
)

// TestParallelRuns holds that many runs on one repository do not disturb one
// another: each sees its own changes only, each leaves its patch, none leaves
// anything else.
func TestParallelRuns(t *testing.T) {
	t.Parallel()
	const runs = 20
	f := gittest.Repo(t)
	for i := range 200 {
		f.Write(fmt.Sprintf("dir%d/file%d.txt", i%10, i), strings.Repeat(fmt.Sprintf("line %d\n", i), 20))
	}
	f.Commit("first")
	f.Write("dir0/file0.txt", "changed by the user\n")
	f.Write("untracked.txt", "u\n")
	before := f.Fingerprint(".superqode")
	outs, errs := make([][]byte, runs), make([]error, runs)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			cmd := exec.Command("superqode", "run", "--json", "--", "sh", "-c", `echo "$1" > mine.txt; echo more >> dir1/file1.txt; rm dir2/file2.txt; mkdir -p "$SUPERQODE_ARTIFACT_DIR/evidence"; echo "$1" > "$SUPERQODE_ARTIFACT_DIR/evidence/e.txt"`, "sh", fmt.Sprint(i))
			cmd.Dir, cmd.Env = f.Dir, f.Env()
			outs[i], errs[i] = cmd.Output()
		})
	}
	wg.Wait()
	for i, err := range errs {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("run %d: %v\n%s", i, err, exit.Stderr)
		} else if err != nil {
			t.Fatal(err)
		}
		checkRun(t, f, i, outs[i])
	}
	gittest.Same(t, before, f.Fingerprint(".superqode"))
	checkManifest(t, f, runs)
	verify := exec.Command("superqode", "artifacts", "verify")
	verify.Dir, verify.Env = f.Dir, f.Env()
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("artifacts verify: %v\n%s", err, out)
	}
	if out := f.Git("worktree", "list"); strings.Count(out, "\n") != 0 {
		t.Errorf("worktrees left:\n%s", out)
	}
}

func checkRun(t *testing.T, f *gittest.Fixture, i int, out []byte) {
	t.Helper()
	var res struct {
		SessionID string `json:"session_id"`
		State     string
		Changes   []struct{ Path, Type string }
		Origin    struct{ Unchanged bool } `json:"origin_check"`
	}
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatalf("run %d: %v\n%s", i, err, out)
	}
	if fmt.Sprint(res.Changes) != "[{dir1/file1.txt modified} {dir2/file2.txt deleted} {mine.txt created}]" || res.State != "done" || !res.Origin.Unchanged {
		t.Errorf("run %d: %s", i, out)
	}
	patch, err := os.ReadFile(f.Path(".superqode/qe-artifacts/patches/" + res.SessionID + ".patch"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(patch), fmt.Sprintf("\n+%d\n", i)) {
		t.Errorf("run %d has another run's patch:\n%s", i, patch)
	}
}

// checkManifest holds that no entry was lost.
func checkManifest(t *testing.T, f *gittest.Fixture, runs int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Dir, ".superqode", "qe-artifacts", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Artifacts []struct{ ID, Type, Path string }
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	patches, evidence, ids := 0, 0, map[string]bool{}
	for _, a := range manifest.Artifacts {
		ids[a.ID] = true
		switch {
		case a.Type == "patch":
			patches++
		case strings.HasPrefix(a.Path, "evidence/"):
			evidence++
		}
	}
	if patches != runs || evidence != runs || len(ids) != len(manifest.Artifacts) {
		t.Errorf("%d patches, %d pieces of evidence, %d ids for %d artifacts", patches, evidence, len(ids), len(manifest.Artifacts))
	}
}
