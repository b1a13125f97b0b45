package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
)

// HookStatus is one hook that git would run.
type HookStatus struct {
	Name string             `json:"name"`
	By   string             `json:"by"`   // superqode, husky, lefthook, pre-commit, …, hand-made
	Next string             `json:"next"` // who is behind ours, "" when nobody
	Path superqode.HostPath `json:"path"`
}

// InstallStatus is what guard status finds in a repository.
type InstallStatus struct {
	Installed   bool               `json:"installed"`
	Firing      bool               `json:"firing"` // git really runs the hooks, and they refuse
	Method      Method             `json:"method"` // "" when not installed
	Strict      bool               `json:"strict"`
	InstalledAt *time.Time         `json:"installed_at"`
	Version     string             `json:"version"`
	Helper      superqode.HostPath `json:"helper"`
	// HooksPath is where git looks for hooks; Setting is core.hooksPath, and Scope is
	// where that stands.
	HooksPath superqode.HostPath `json:"hooks_path"`
	Setting   superqode.HostPath `json:"core_hooks_path"`
	Scope     string             `json:"scope"`
	Hooks     []HookStatus       `json:"hooks"`
	Allow     []string           `json:"allow"`
	Deny      []string           `json:"deny"`
	Problems  []string           `json:"problems"`
	Blocked   []guard.Attempt    `json:"blocked"` // the last ones
	// Remedy is what to do about the problems, as a command; "" when there are none.
	Remedy string `json:"remedy"`
}

// shownAttempts bounds what of the log is shown.
const shownAttempts = 5

// Inspect looks at the hooks of a repository, and tries whether those of guard
// install fire: in the repository itself by a reference transaction that holds
// nothing, and in a scratch repository below scratch.
func (i *Installer) Inspect(ctx context.Context, repo *git.Repo, scratch string) (*InstallStatus, error) {
	l := layoutOf(repo.CommonDir)
	at, err := i.look(ctx, repo)
	if err != nil {
		return nil, err
	}
	dir := l.hooks
	if at.set {
		dir = inside(repoDir(repo), at.path)
	}
	s := &InstallStatus{HooksPath: superqode.HostPath(dir), Setting: superqode.HostPath(at.value), Scope: at.scope, Hooks: []HookStatus{}, Problems: []string{}, Blocked: []guard.Attempt{}, Allow: []string{}, Deny: []string{}}
	in, err := loadInstallation(l.state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if i.traces(l) {
			s.problem("the installation's state is gone, hooks of it are left", "superqode guard uninstall")
		}
	case err != nil:
		s.Installed = true
		s.problem(err.Error(), "superqode guard uninstall")
	default:
		s.take(in)
	}
	s.Hooks = i.list(dir, l, in)
	if in == nil {
		return s, nil
	}
	if data, err := os.ReadFile(filepath.Join(l.state, attemptsFile)); err == nil {
		list, _ := guard.ParseAttempts(data)
		s.Blocked = append(s.Blocked, list[max(0, len(list)-shownAttempts):]...)
	}
	i.checkPlaces(s, l, in, at, dir)
	i.checkFiring(ctx, s, repo, in, scratch)
	s.Firing = len(s.Problems) == 0
	return s, nil
}

func (s *InstallStatus) take(in *Installation) {
	s.Installed, s.Method, s.Strict, s.Version, s.Helper = true, in.Method, in.Strict, in.Version, in.Helper
	s.Allow, s.Deny = orEmpty(in.Allow), orEmpty(in.Deny)
	at := in.InstalledAt
	s.InstalledAt = &at
}

// problem adds one; the first remedy counts.
func (s *InstallStatus) problem(what, remedy string) {
	s.Problems = append(s.Problems, what)
	if s.Remedy == "" {
		s.Remedy = remedy
	}
}

// list names the hooks that git would run, and who made them.
func (i *Installer) list(dir string, l layout, in *Installation) []HookStatus {
	list := []HookStatus{}
	for _, name := range append(gitHooks(), "push-to-checkout") {
		path := filepath.Join(dir, name)
		st, err := os.Stat(path)
		if err != nil || st.IsDir() || st.Mode().Perm()&0o111 == 0 {
			continue
		}
		h := HookStatus{Name: name, Path: superqode.HostPath(path), By: maker(path)}
		if h.By == makerSuperqode && in != nil {
			h.Next = maker(nextOf(l, in, dir, name))
			if h.Next == "" && !slices.Contains(deciders(), name) {
				continue // handed on, and nobody is there
			}
		}
		list = append(list, h)
	}
	return list
}

// nextOf is the user's hook behind one of ours.
func nextOf(l layout, in *Installation, dir, name string) string {
	if in.Method == MethodFolder || in.Config == nil {
		return filepath.Join(l.originals, name)
	}
	if former := string(in.Config.Former); former != "" {
		return filepath.Join(inside(filepath.Dir(l.common), former), name)
	}
	return filepath.Join(l.hooks, name)
}

const makerSuperqode = "superqode"

// maker tells who made a hook, by what tools write into theirs; "" when git would
// not run it.
func maker(path string) string {
	st, err := os.Stat(path)
	if err != nil || st.IsDir() || st.Mode().Perm()&0o111 == 0 {
		return ""
	}
	if isOurs(path) {
		return makerSuperqode
	}
	f, err := os.Open(path)
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := f.Read(head)
	text := string(head[:n])
	for _, m := range []struct{ mark, name string }{
		{"/h\"", "husky"}, {"husky.sh", "husky"}, {"lefthook", "lefthook"}, {"pre-commit.com", "pre-commit"}, {"hook-impl", "pre-commit"}, {"git lfs", "git-lfs"},
		{"overcommit", "overcommit"}, {"simple-git-hooks", "simple-git-hooks"}, {"yorkie", "yorkie"}, {"ghooks", "ghooks"}, {"captainhook", "captainhook"},
	} {
		if strings.Contains(text, m.mark) {
			return m.name
		}
	}
	return "hand-made"
}

// checkPlaces compares what lies there with what install put there.
func (i *Installer) checkPlaces(s *InstallStatus, l layout, in *Installation, at place, dir string) {
	again := "superqode guard install"
	if !in.Done {
		s.problem("an install or uninstall was cut short", again)
	}
	if !executable(string(in.Helper)) {
		s.problem(fmt.Sprintf("the program that the hooks call is gone: %s", in.Helper), again)
	}
	switch {
	case in.Method == MethodFolder && at.set:
		s.problem(fmt.Sprintf("core.hooksPath is %s since (%s), so git no longer looks into %s%s", at.value, at.scope, l.hooks, byWhom(dir)), again)
		return
	case in.Method == MethodConfig && (!at.set || !samePath(at.path, l.own)):
		now := "is no longer set"
		if at.set {
			now = fmt.Sprintf("is %s (%s)%s", at.value, at.scope, byWhom(dir))
		}
		s.problem("core.hooksPath "+now+" and does not lead to the guard's hooks any more", again)
		return
	}
	for _, name := range deciders() {
		switch by := maker(filepath.Join(dir, name)); {
		case by == "":
			s.problem("the hook "+name+" is gone", again)
		case by != makerSuperqode:
			s.problem("the hook "+name+" is "+by+"'s again", again)
		}
	}
}

// byWhom names a hook manager by its folder.
func byWhom(dir string) string {
	for _, name := range gitHooks() {
		if by := maker(filepath.Join(dir, name)); by != "" && by != makerSuperqode && by != "hand-made" {
			return ", of " + by
		}
	}
	if strings.Contains(dir, ".husky") {
		return ", of husky"
	}
	return ""
}

// checkFiring asks git itself.
func (i *Installer) checkFiring(ctx context.Context, s *InstallStatus, repo *git.Repo, in *Installation, scratch string) {
	if len(s.Problems) > 0 {
		return
	}
	if err := i.ping(ctx, repo); err != nil {
		s.problem("git does not run the hooks here: "+err.Error(), "superqode guard install")
		return
	}
	if err := i.tried(ctx, in, scratch); err != nil {
		s.problem("the hooks do not refuse: "+err.Error(), "superqode doctor")
	}
}

// ping has git open a reference transaction that holds nothing; the hook says that
// it was reached, and ends it.
func (i *Installer) ping(ctx context.Context, repo *git.Repo) error {
	nonce := strconv.FormatInt(i.Now().UnixNano(), 36) + strconv.Itoa(os.Getpid())
	cmd := exec.CommandContext(ctx, i.Git.Bin, "update-ref", "--stdin")
	cmd.Dir = repoDir(repo)
	cmd.Env = append(git.CleanEnv(i.Env), "LC_ALL=C", pingVariable+"="+nonce)
	cmd.Stdin = strings.NewReader("start\nprepare\nabort\n")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), pong+nonce) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return errors.New("a reference transaction was not seen")
}
