package life

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/gittest"
)

// A program that the kernel does not keep out may delete superqode's own state.
// What is held open is written anew, and the origin comes back.
func TestGitSnapshotSurvivesLossOfItsState(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"aside":         `rm -rf "$SUPERQODE_ARTIFACT_DIR/../aside"`,
		"aside moved":   `cd "$SUPERQODE_ARTIFACT_DIR/.." && mv aside elsewhere && ln -s / aside`,
		"session":       `rm -rf "$(dirname "$SUPERQODE_ARTIFACT_DIR")"`,
		"project":       `cd "$SUPERQODE_ARTIFACT_DIR/../../.." && rm -rf "$PWD"`,
		"home":          `rm -rf "$SUPERQODE_HOME"`,
		"store":         `rm -rf "$SUPERQODE_ARTIFACT_DIR/../../../store.git"`,
		"snapshots":     `cd "$SUPERQODE_ARTIFACT_DIR/.." && rm -f base.snap git.snap ignored session.json`,
		"snapshots cut": `cd "$SUPERQODE_ARTIFACT_DIR/.." && for f in base.snap git.snap ignored session.json; do : > $f; done`,
		"modes":         `chmod -R 000 "$SUPERQODE_ARTIFACT_DIR/../aside" "$SUPERQODE_ARTIFACT_DIR/../base.snap"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			b := remember(t, f)
			res, out, err := runInPlace(t, f, OpenOptions{}, "export SUPERQODE_HOME='"+superqode.Getenv(f.Env(), "SUPERQODE_HOME")+"'; rm -rf src untracked.txt build .git; echo x > README.md; "+script)
			if err != nil || !res.Revert.Verified || res.State != superqode.StateDone {
				t.Fatalf("%v\n%s", err, out)
			}
			b.check(t, f)
		})
	}
}

// What a program writes into the copies themselves cannot be undone. The rest
// comes back, what did not is named, and nobody claims otherwise.
func TestGitSnapshotTellsOfDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		lost   []string // as the differences begin
	}{
		"work tree": {`cd "$SUPERQODE_ARTIFACT_DIR/../aside/tree" && echo bad > untracked.txt && : > build/secret`, []string{"build/secret: ", "untracked.txt: "}},
		"unneeded":  {`cd "$SUPERQODE_ARTIFACT_DIR/../aside/tree" && echo bad > debug.log`, nil},
		"git":       {`cd "$SUPERQODE_ARTIFACT_DIR/../aside/git" && echo bad > config && : > refs/stash`, []string{"config: ", "refs/stash: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			b := remember(t, f)
			res, out, err := runInPlace(t, f, OpenOptions{}, "set -e; rm -rf src untracked.txt build; rm .git/config .git/refs/stash .git/hooks/*; echo x > README.md; "+c.script)
			if c.lost == nil {
				if err != nil || !res.Revert.Verified {
					t.Fatalf("%v\n%s", err, out)
				}
				b.check(t, f)
				return
			}
			if !errors.Is(err, superqode.ErrVerification) || res.Revert.Verified || res.OriginCheck.Unchanged || res.State != superqode.StatePreserved {
				t.Fatalf("%v %+v %s\n%s", err, res.Revert, res.State, out)
			}
			for _, want := range c.lost {
				if !slices.ContainsFunc(res.Revert.Differences, func(d string) bool { return strings.HasPrefix(d, want) }) {
					t.Errorf("%q is not named in %q", want, res.Revert.Differences)
				}
			}
			if f.Read("README.md") == "x\n" || f.Read("src/deep/er/lib.go") == "" || f.Read(".git/hooks/pre-commit") == "" {
				t.Error("the rest did not come back")
			}
			if hint := superqode.Hint(err); !strings.Contains(hint, "workspace revert --session") {
				t.Errorf("hint %q", hint)
			}
		})
	}
}

// An object file that is big is kept by a second name. Deleted, it comes back;
// written into, it is lost, and that is said.
func TestGitSnapshotOfBigObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		lost   bool
	}{
		"deleted":      {"rm -f .git/objects/pack/*", false},
		"gc":           {"git -c gc.reflogExpire=now -c gc.reflogExpireUnreachable=now reflog expire --expire=now --all; git checkout -q --orphan x; git commit -qm x; git branch -D main feature; git tag -d v1.0.0; rm -rf .git/refs/remotes .git/refs/stash .git/ORIG_HEAD .git/FETCH_HEAD .git/logs; git gc -q --prune=now", false},
		"touched":      {"touch .git/objects/pack/*; chmod 600 .git/objects/pack/*", false},
		"replaced":     {`for f in .git/objects/pack/*; do cp "$f" x; mv -f x "$f"; done`, false},
		"written into": {`for f in .git/objects/pack/*.pack; do chmod u+w "$f"; printf garbage | dd of="$f" bs=1 seek=100 conv=notrunc 2>/dev/null; touch -d 2020-01-01 "$f"; done`, true},
		"cut":          {`for f in .git/objects/pack/*.pack; do chmod u+w "$f"; : > "$f"; done; rm untracked.txt`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Dirty(t)
			big := make([]byte, 3<<19)
			for i, x := 0, uint32(1); i < len(big); i++ { // nothing that packs well
				x = x*1664525 + 1013904223
				big[i] = byte(x >> 24)
			}
			f.Write("big.bin", string(big))
			f.Git("add", "big.bin")
			f.Git("commit", "-qm", "big", "--no-verify")
			f.Git("gc", "-q")
			b := remember(t, f)
			res, out, err := runInPlace(t, f, OpenOptions{}, c.script)
			if !c.lost {
				if err != nil || !res.Revert.Verified {
					t.Fatalf("%v\n%s", err, out)
				}
				b.check(t, f)
				return
			}
			if !errors.Is(err, superqode.ErrVerification) || res.Revert.Verified || !slices.ContainsFunc(res.Revert.Differences, func(d string) bool { return strings.Contains(d, ".pack: ") }) {
				t.Fatalf("%v %+v\n%s", err, res.Revert, out)
			}
			if _, err := os.Stat(f.Path("untracked.txt")); err != nil {
				t.Error("the rest did not come back")
			}
		})
	}
}
