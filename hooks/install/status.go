package install

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
	"github.com/seed-2d964004/superqode/internal/installation"
)

// HookStatus is one hook that git would run.
type HookStatus struct {
	Name string             `json:"name"`
	By   string             `json:"by"`   // superqode, husky, lefthook, pre-commit, …, hand-made
	Next string             `json:"next"` // the hook that runs after ours, "" for none
	Path superqode.HostPath `json:"path"`
}

// Method is how the hooks were put in.
type Method string

// The methods: rule 1, a hook of ours in git's own folder, and rule 2, core.hooksPath.
const (
	MethodFolder Method = installation.MethodFolder
	MethodConfig Method = installation.MethodConfig
)

// Status is what guard status finds in a repository.
type Status struct {
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
func (i *Installer) Inspect(ctx context.Context, scratch string) (*Status, error) {
	l := i.layout()
	at, former, err := i.look(ctx)
	if err != nil {
		return nil, err
	}
	dir := l.Hooks
	if at.set {
		dir = inside(i.Dir(), at.path)
	}
	s := &Status{HooksPath: superqode.HostPath(dir), Setting: superqode.HostPath(at.value), Scope: at.scope,
		Hooks: []HookStatus{}, Problems: []string{}, Blocked: []guard.Attempt{}, Allow: []string{}, Deny: []string{}}
	in, err := installation.Load(l.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if traces(l) {
			s.problem("the installation's state is gone, hooks of it are left", "superqode guard uninstall")
		}
	case err != nil:
		s.Installed = true
		s.problem(err.Error(), "superqode guard uninstall")
	default:
		s.take(in)
		if in.Config != nil {
			in.Config.Former = superqode.HostPath(former.path) // as the hooks find it
		}
	}
	s.Hooks = i.list(dir, l, in)
	if in == nil {
		return s, nil
	}
	if data, err := os.ReadFile(filepath.Join(l.State, installation.AttemptsFile)); err == nil {
		list, _ := guard.ParseAttempts(data)
		s.Blocked = append(s.Blocked, list[max(0, len(list)-shownAttempts):]...)
	}
	i.checkPlaces(s, l, in, at, dir)
	i.checkFiring(ctx, s, in, scratch)
	s.Firing = len(s.Problems) == 0
	return s, nil
}

func (s *Status) take(in *installation.Record) {
	s.Installed, s.Method, s.Strict, s.Version, s.Helper = true, Method(in.Method), in.Strict, in.Version, in.Helper
	s.Allow, s.Deny, s.InstalledAt = orEmpty(in.Allow), orEmpty(in.Deny), new(in.InstalledAt)
}

// problem adds one; the first remedy counts.
func (s *Status) problem(what, remedy string) {
	s.Problems = append(s.Problems, what)
	if s.Remedy == "" {
		s.Remedy = remedy
	}
}

// list names the hooks that git would run, and who made them.
func (i *Installer) list(dir string, l installation.Layout, in *installation.Record) []HookStatus {
	list := []HookStatus{}
	for _, name := range append(installation.GitHooks(), "push-to-checkout") {
		path := filepath.Join(dir, name)
		if !runs(path) {
			continue
		}
		h := HookStatus{Name: name, Path: superqode.HostPath(path), By: maker(path)}
		if h.By == makerSuperqode && in != nil {
			h.Next = maker(i.nextOf(l, in, name))
			if h.Next == "" && !slices.Contains(installation.Deciders(), name) {
				continue // handed on, and nobody is there
			}
		}
		list = append(list, h)
	}
	return list
}

// nextOf is the user's hook behind one of ours.
func (i *Installer) nextOf(l installation.Layout, in *installation.Record, name string) string {
	if in.Method == installation.MethodFolder || in.Config == nil {
		return filepath.Join(l.Originals, name)
	}
	return filepath.Join(i.former(l, in), name)
}

const makerSuperqode = "superqode"

// maker names the tool that made a hook, by what tools write into theirs; "" when git would
// not run it.
func maker(path string) string {
	if !runs(path) {
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
		{"/h\"", "husky"}, {"husky.sh", "husky"}, {"lefthook", "lefthook"},
		{"pre-commit.com", "pre-commit"}, {"hook-impl", "pre-commit"}, {"git lfs", "git-lfs"},
		{"overcommit", "overcommit"}, {"simple-git-hooks", "simple-git-hooks"}, {"yorkie", "yorkie"},
		{"ghooks", "ghooks"}, {"captainhook", "captainhook"},
	} {
		if strings.Contains(text, m.mark) {
			return m.name
		}
	}
	return "hand-made"
}

// runs reports whether git would run a hook.
func runs(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir() && st.Mode().Perm()&0o111 != 0
}

// checkPlaces compares what lies there with what install put there.
func (i *Installer) checkPlaces(s *Status, l installation.Layout, in *installation.Record, at place, dir string) {
	again := "superqode guard install"
	if !in.Done {
		s.problem("an install or uninstall was cut short", again)
	}
	if !executable(string(in.Helper)) {
		s.problem(fmt.Sprintf("the program that the hooks call is gone: %s", in.Helper), again)
	}
	switch {
	case in.Method == installation.MethodFolder && at.set:
		s.problem(fmt.Sprintf("core.hooksPath is %s since (%s), so git no longer looks into %s%s", at.value, at.scope,
			l.Hooks, byWhom(dir)), again)
		return
	case in.Method == installation.MethodConfig && (!at.set || !samePath(at.path, l.Own)):
		now := "is no longer set"
		if at.set {
			now = fmt.Sprintf("is %s (%s)%s", at.value, at.scope, byWhom(dir))
		}
		s.problem("core.hooksPath "+now+" and does not lead to the guard's hooks any more", again)
		return
	}
	for _, name := range installation.Deciders() {
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
	for _, name := range installation.GitHooks() {
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
func (i *Installer) checkFiring(ctx context.Context, s *Status, in *installation.Record, scratch string) {
	if len(s.Problems) > 0 {
		return
	}
	if err := i.ping(ctx); err != nil {
		s.problem("git does not run the hooks here: "+err.Error(), "superqode guard install")
		return
	}
	if err := i.tried(ctx, in, scratch); err != nil {
		s.problem("the hooks do not refuse: "+err.Error(), "superqode doctor")
	}
}

// ping has git open a reference transaction that holds nothing; the hook says that
// it was reached, and ends it.
func (i *Installer) ping(ctx context.Context) error {
	nonce := strconv.FormatInt(i.Now().UnixNano(), 36) + strconv.Itoa(os.Getpid())
	cmd := exec.CommandContext(ctx, i.git.Bin, "update-ref", "--stdin")
	cmd.Dir = i.Dir()
	cmd.Env = append(git.CleanEnv(i.env), "LC_ALL=C", pingVariable+"="+nonce)
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
