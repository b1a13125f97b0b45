package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/installation"
)

// trial is what a trial in a scratch repository found, kept for as long as all
// that it depends on stays the same.
type trial struct {
	SchemaVersion int       `json:"schema_version"`
	Failure       string    `json:"failure"` // "": everything was refused
	At            time.Time `json:"at"`
}

const trialVersion = 1

// badTrial is how long a trial that failed counts.
const badTrial = time.Minute

// tried reports whether hooks like these refuse, with this git: tried in a scratch
// repository below scratch, once for each git, helper and method.
func (i *Installer) tried(ctx context.Context, in *installation.Record, scratch string) error {
	file, err := i.trialFile(in, scratch)
	if err != nil {
		return err
	}
	var t trial
	if data, err := atomicfile.Read(file); err == nil && json.Unmarshal(data, &t) == nil &&
		t.SchemaVersion == trialVersion {
		if t.Failure == "" {
			return nil
		}
		if i.Now().Sub(t.At) < badTrial {
			return errors.New(t.Failure)
		}
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return err
	}
	t = trial{SchemaVersion: trialVersion, At: i.Now().UTC()}
	ferr := i.try(ctx, in, scratch)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if ferr != nil {
		t.Failure = ferr.Error()
	}
	return errors.Join(ferr, atomicfile.WriteJSON(file, t))
}

func (i *Installer) trialFile(in *installation.Record, scratch string) (string, error) {
	sum := sha256.New()
	for _, path := range []string{i.git.Bin, string(in.Helper)} {
		st, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d %d\n", path, st.Size(), st.ModTime().UnixNano())
	}
	fmt.Fprintf(sum, "%s %s %s", in.Method, i.git.Version, script(in, installation.TransactionHook, ""))
	return filepath.Join(scratch, "installed-"+hex.EncodeToString(sum.Sum(nil)[:6])+".json"), nil
}

// probeIdentity lets git commit whatever the user's configuration says.
var probeIdentity = []string{"-c", "user.name=probe", "-c", "user.email=probe@localhost", "-c", "commit.gpgSign=false"}

// try makes a repository, installs into it in the same way, and has git do what
// must be refused.
func (i *Installer) try(ctx context.Context, in *installation.Record, scratch string) (err error) {
	dir, err := os.MkdirTemp(scratch, ".installed-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	work := filepath.Join(dir, "repo")
	steps := [][]string{
		{"init", "-q", "--template=", work},
		{"init", "-q", "--bare", "--template=", filepath.Join(dir, "remote.git")},
		{"-C", work, "commit", "-q", "--allow-empty", "-m", "first"},
		{"-C", work, "branch", "other"},
		{"-C", work, "tag", "mark"},
		{"-C", work, "remote", "add", "origin", filepath.Join(dir, "remote.git")},
	}
	if in.Method == installation.MethodConfig {
		steps = append(steps, []string{"-C", work, "config", "core.hooksPath", "former"})
	}
	for _, args := range steps {
		if err := i.git.Run(ctx, git.Cmd{Args: slices.Concat(probeIdentity, args)}); err != nil {
			return err
		}
	}
	repo, err := i.git.Discover(ctx, work)
	if err != nil {
		return err
	}
	own := *i
	own.Helper, own.repo = string(in.Helper), repo
	if _, err := own.Install(ctx, Options{Strict: true}); err != nil {
		return err
	}
	return own.tryAll(ctx, dir)
}

// tryAll runs commands that must be refused and must change nothing.
func (i *Installer) tryAll(ctx context.Context, dir string) error {
	before, err := i.refs(ctx, dir)
	if err != nil {
		return err
	}
	lines := []string{
		"commit --allow-empty -m x", "commit --allow-empty --no-verify -m x", "push origin HEAD:refs/heads/main", "update-ref -d refs/heads/other", "branch -D other", "tag -d mark", "rebase --root",
	}
	for _, line := range lines {
		cmd := exec.CommandContext(ctx, i.git.Bin, slices.Concat(probeIdentity, strings.Fields(line))...)
		cmd.Dir, cmd.Env = i.repo.TopLevel, i.scratchEnv(dir)
		if cmd.Run() == nil {
			return fmt.Errorf("git %s was not refused", line)
		}
	}
	after, err := i.refs(ctx, dir)
	if err == nil && after != before {
		err = errors.New("something that was refused happened all the same")
	}
	if _, lerr := installation.Load(i.layout().State); lerr != nil {
		return lerr
	}
	list, _ := os.ReadFile(filepath.Join(i.layout().State, installation.AttemptsFile))
	if seen, _ := guard.ParseAttempts(list); err == nil && len(seen) < len(lines) {
		err = fmt.Errorf("git failed by itself: the hooks refused %d of %d commands", len(seen), len(lines))
	}
	return err
}

func (i *Installer) refs(ctx context.Context, dir string) (string, error) {
	here, err := i.git.Output(ctx, git.Cmd{Dir: i.repo.TopLevel, Args: []string{"for-each-ref"}})
	if err != nil {
		return "", err
	}
	there, err := i.git.Output(ctx, git.Cmd{Dir: filepath.Join(dir, "remote.git"), Args: []string{"for-each-ref"}})
	return string(here) + string(there), err
}

// scratchEnv is the environment of a program outside of every session, with no
// configuration but the scratch repository's.
func (i *Installer) scratchEnv(dir string) []string {
	env := slices.DeleteFunc(git.CleanEnv(i.env), func(kv string) bool {
		return strings.HasPrefix(kv, "SUPERQODE_") || strings.HasPrefix(kv, "XDG_CONFIG_HOME=")
	})
	return superqode.Override(env, []string{
		"HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true",
	})
}
