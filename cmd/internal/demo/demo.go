// Package demo is the command that shows superqode at work on a throw-away repository.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Cmd shows in a few seconds what superqode does: an unruly script in a
// throw-away repository, once in a work tree of its own and once in the repository
// itself. Nothing of it is acted: the sessions are real, and so are the digests.
type Cmd struct {
	Keep bool `help:"Keep the folder with the reports."`
}

// demoAct is one session of the demo.
type demoAct struct {
	Mode      superqode.Mode      `json:"mode"`
	SessionID superqode.SessionID `json:"session_id"`
	Layers    artifacts.Layers    `json:"layers"`
	Steps     []demoStep          `json:"steps"`
	Before    superqode.Digest    `json:"digest_before"`
	After     superqode.Digest    `json:"digest_after"`
	Unchanged bool                `json:"unchanged"` // the digests are the same
	Report    string              `json:"report"`
	Patch     string              `json:"patch"`
}

// demoJSON is what demo --json prints.
type demoJSON struct {
	SchemaVersion int       `json:"schema_version"`
	OK            bool      `json:"ok"`
	Folder        string    `json:"folder"`
	Kept          bool      `json:"kept"`
	Seconds       float64   `json:"duration_seconds"`
	Acts          []demoAct `json:"acts"`
	Problems      []string  `json:"problems"` // what is not as promised
}

// demo is the stage: a folder that goes when the demo ends.
type demo struct {
	a        *app.App
	dir      string
	repo     string
	git      *git.Git
	sessions *life.Manager
	problems []string
}

// Run plays both acts and says whether everything was as promised.
func (c *Cmd) Run(ctx context.Context, a *app.App) (err error) {
	start := time.Now()
	d, err := newDemo(ctx, a)
	if err != nil {
		return err
	}
	if !c.Keep {
		release, err := markDemo(d.dir)
		if err != nil {
			return errors.Join(err, os.RemoveAll(d.dir))
		}
		defer func() { err = errors.Join(err, os.RemoveAll(d.dir), release()) }()
	}
	out := demoJSON{SchemaVersion: 1, Folder: d.dir, Kept: c.Keep}
	d.say("%s\n", a.PaintOut("A throw-away repository with uncommitted work: "+d.repo, term.Bold))
	for _, k := range mode.All() {
		kind := k.About()
		if !kind.WorkTree || !kind.Restores || kind.Mounted { // which not every machine has
			continue
		}
		act, err := d.act(ctx, kind)
		if err != nil {
			return err
		}
		out.Acts = append(out.Acts, *act)
	}
	out.OK, out.Problems, out.Seconds = len(d.problems) == 0, app.NotNil(d.problems), text.Seconds(time.Since(start))
	if a.Flags.JSON {
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	}
	d.curtain(out)
	if !out.OK {
		err := superqode.Errorf(superqode.ErrVerification, "the demo did not go as promised: %s", strings.Join(d.problems, "; "))
		return superqode.WithHint(err, "superqode doctor")
	}
	return nil
}

// newDemo builds the repository: one commit, and work that is in no commit.
func newDemo(ctx context.Context, a *app.App) (d *demo, err error) {
	sweepDemos(a.Getenv("TMPDIR"))
	dir, err := os.MkdirTemp(a.Getenv("TMPDIR"), demoPrefix)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	env := demoEnv(a.Env, dir)
	d = &demo{a: a, dir: dir, repo: filepath.Join(dir, "shop")}
	if d.git, err = git.Find(ctx, env); err != nil {
		return nil, err
	}
	for _, name := range []string{d.repo, filepath.Join(dir, "home")} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
	}
	const head, total = "package shop\n\n", `func Total(prices []int) (sum int) {
	for _, p := range prices {
		sum += p
	}
	return sum
}
`
	files := map[string]string{"README.md": "# A shop\n\nSells things.\n", "cart.go": head + total, "unruly.sh": demoScript}
	if err := d.write(files); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"config", "user.name", "Ann"}, {"config", "user.email", "ann@example.com"},
		{"config", "commit.gpgsign", "false"}, {"add", "-A"}, {"commit", "-q", "-m", "The shop opens"},
	} {
		if err := d.git.Run(ctx, git.Cmd{Dir: d.repo, Args: args}); err != nil {
			return nil, fmt.Errorf("build the demo's repository: %w", err)
		}
	}
	const comment = "// Total is what all prices are together; this line is in no commit yet.\n"
	files = map[string]string{"cart.go": head + comment + total, "notes.txt": "never committed, never staged\n"}
	if err := d.write(files); err != nil {
		return nil, err
	}
	d.sessions = life.NewManager(life.Config{Home: d.home(), Env: env, Log: a.Log, Version: a.BuildVersion(), Program: app.Self(), Shim: a.Shim})
	return d, nil
}

// home is where the demo's sessions are kept.
func (d *demo) home() string { return filepath.Join(d.dir, "state") }

// demoEnv is the caller's environment with a HOME of the demo's, so that no
// configuration of the user's is read and nothing of theirs is written.
func demoEnv(env []string, dir string) []string {
	out := make([]string, 0, len(env)+3)
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		prefix, _, _ := strings.Cut(key, "_")
		if key != "HOME" && (prefix == key || !slices.Contains([]string{"SUPERQODE", "GIT", "XDG"}, prefix)) {
			out = append(out, kv)
		}
	}
	home := filepath.Join(dir, "home")
	return append(out, "HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
}

func (d *demo) write(files map[string]string) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(d.repo, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// act runs the script in one session and looks at the repository before and after.
func (d *demo) act(ctx context.Context, kind mode.Facts) (*demoAct, error) {
	before, err := d.digest(ctx)
	if err != nil {
		return nil, err
	}
	what := "in a work tree of its own"
	if kind.InPlace {
		what = "in the repository itself"
	}
	title := fmt.Sprintf("An unruly script, %s:  superqode run --mode %s -- sh unruly.sh", what, kind.Mode)
	d.say("\n%s\n", d.a.PaintOut(title, term.Bold))
	var stdout bytes.Buffer
	open := life.OpenOptions{Dir: d.repo, Mode: kind.Mode, Keep: superqode.KeepNever}
	res, err := d.sessions.Run(ctx, open, program.ExecOptions{
		Args: []string{"sh", "unruly.sh", d.git.Bin}, Stdout: &stdout, Stderr: &bytes.Buffer{}, Timeout: time.Minute,
	})
	if err != nil {
		return nil, fmt.Errorf("the demo's session in %s mode: %w", kind.Mode, err)
	}
	act := &demoAct{Mode: kind.Mode, SessionID: res.SessionID, Layers: res.Guard.Layers, Before: before}
	if act.After, err = d.digest(ctx); err != nil {
		d.problem("the repository cannot be read after the session: %v", err)
	}
	act.Unchanged = act.After == act.Before && !act.After.IsZero()
	act.Steps = demoSteps(stdout.String(), res)
	patch, page := report.KeyArtifacts(res.SessionID, res.Artifacts)
	root := filepath.Join(d.repo, ".superqode", "qe-artifacts")
	act.Report, act.Patch = filepath.Join(root, page), filepath.Join(root, patch)
	d.check(act, res)
	d.show(act, res)
	return act, nil
}

// digest is one number for everything in the repository that a session has to
// leave alone: the files, and git's own folder but for its index, whose entries
// stand in it by name (git refreshes the times in the file), and the objects,
// which the refs name.
func (d *demo) digest(ctx context.Context) (superqode.Digest, error) {
	skip := map[superqode.RelPath]bool{".superqode": true, ".git/index": true, ".git/objects": true, ".git/worktrees": true}
	snap, problems, err := snapshot.Scan(ctx, d.repo, snapshot.ScanOptions{
		Format: snapshot.SHA1, Skip: func(path superqode.RelPath, _ snapshot.Kind) bool { return skip[path] },
	})
	if err != nil {
		return superqode.Digest{}, err
	}
	if len(problems) > 0 {
		return superqode.Digest{}, problems[0].Err
	}
	files, err := snap.Digest()
	if err != nil {
		return superqode.Digest{}, err
	}
	state := files.String()
	for _, args := range [][]string{
		{"ls-files", "--stage", "-z"}, {"for-each-ref"}, {"rev-parse", "HEAD"}, {"fsck", "--connectivity-only"},
	} {
		out, err := d.git.Output(ctx, git.Cmd{Dir: d.repo, Args: args})
		if err != nil {
			return superqode.Digest{}, err
		}
		if args[0] != "fsck" { // it only has to succeed: what it prints are objects that nothing names
			state += "\x00" + string(out)
		}
	}
	return sumOf(state), nil
}
