package hooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
)

// TestPush: nothing reaches the user's remote, whatever the address and the
// remote's own settings; a dry run says what it would do.
func TestPush(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string // lines of git config, before the session
		lines        []string
		dry          bool
	}{
		{name: "remote", lines: []string{"push origin main:new", "push --no-verify origin main:new", "push --no-verify --all origin", "push --no-verify --tags origin", "push --no-verify --atomic -f origin +HEAD~1:main", "push --no-verify"}},
		{name: "address", lines: []string{"push --no-verify HOME/remote.git main:new", "push --no-verify file://HOME/remote.git main:new", "push --no-verify ../link.git main:new"}},
		{name: "pushurl", config: "remote.origin.pushurl HOME/remote.git", lines: []string{"push origin main:new", "push --no-verify origin main:new"}},
		{name: "two pushurls", config: "remote.origin.url ../nowhere\nremote.origin.pushurl HOME/remote.git\nremote.other.pushurl HOME/remote.git", lines: []string{"push --no-verify origin main:new", "push --no-verify other main:new"}},
		{name: "pushurl of the moment", lines: []string{"-c remote.origin.pushurl=HOME/remote.git push --no-verify origin main:new", "-c remote.origin.pushurl=file://HOME/remote.git push --no-verify origin main:new"}},
		{name: "own receivepack", config: "remote.origin.receivepack git-receive-pack", lines: []string{"push --no-verify origin main:new"}},
		{name: "mirror", config: "remote.origin.mirror true", lines: []string{"push --no-verify origin"}},
		{name: "instead of", config: "url.HOME/remote.git.insteadOf gh:x", lines: []string{"push --no-verify gh:x main:new"}},
		{name: "push instead of", config: "url.HOME/.pushInsteadOf gh:\nurl.HOME/.insteadOf gh:\nurl.HOME/remote.pushInsteadOf HOME/remote", lines: []string{"push --no-verify gh:remote.git main:new", "push --no-verify origin main:new"}},
		{name: "dry", dry: true, lines: []string{"push --dry-run origin main:new", "push -n HOME/remote.git main:new HEAD~1:refs/heads/x", "push --dry-run --force origin HEAD~1:main", "push --dry-run --atomic --tags origin main:new", "push --dry-run --force-with-lease origin HEAD~1:main"}},
		{name: "network", lines: []string{"push --no-verify https://192.0.2.1/x.git main", "push --no-verify git@192.0.2.1:x.git main", "push --no-verify ssh://192.0.2.1/x main", "push --no-verify git://192.0.2.1/x main"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := userRepo(t)
			expand := func(s string) string { return strings.ReplaceAll(s, "HOME", f.Home) }
			for line := range strings.SplitSeq(tt.config, "\n") {
				if key, value, ok := strings.Cut(line, " "); ok {
					f.Git("config", expand(key), expand(value))
				}
			}
			if err := os.Symlink(filepath.Join(f.Home, "remote.git"), filepath.Join(f.Dir, "../link.git")); err != nil {
				t.Fatal(err)
			}
			s := newSession(t, f, f.Dir, nil)
			hurt := damage(t, f)
			for _, line := range tt.lines {
				r := s.sh(f.Dir, realGit(t)+" "+expand(line))
				if r.refused() == tt.dry || (r.code == 0) != tt.dry || len(hurt()) > 0 {
					t.Errorf("%s: exit code %d, %v\n%s", line, r.code, hurt(), r.errOut)
				}
				if n := strings.Count(r.errOut, "superqode: refused"); n > 1 {
					t.Errorf("%s: told %d times\n%s", line, n, r.errOut)
				}
				if strings.Contains(r.errOut, "warning:") || strings.Contains(r.errOut, "more than one receivepack") {
					t.Errorf("%s: %s", line, r.errOut)
				}
			}
			if r := s.sh(f.Dir, realGit(t)+" fetch origin && "+realGit(t)+" ls-remote origin"); tt.name != "two pushurls" && (r.code != 0 || strings.Contains(r.errOut, "superqode")) {
				t.Errorf("fetch: %d %s", r.code, r.errOut)
			}
		})
	}
}

// TestScratchPush: repositories that the session made push to one another, and
// neither to the user's nor through a disguise.
func TestScratchPush(t *testing.T) {
	t.Parallel()
	f := userRepo(t)
	s := newSession(t, f, filepath.Join(f.Dir, "../side"), func(st *guard.SessionState) {
		st.WorkTree, st.Workspace = true, superqode.HostPath(filepath.Join(filepath.Dir(f.Dir), "side"))
	})
	tmp := filepath.Join(s.dir, "tmp")
	setup := `set -e; GIT init -q --bare "$TMPDIR/r.git"; GIT clone -q "$TMPDIR/r.git" "$TMPDIR/c" 2>/dev/null; cd "$TMPDIR/c"
GIT commit -q --allow-empty -m x; GIT worktree add -q --detach ../disguise 2>/dev/null || true; GIT -C ` + f.Dir + ` worktree add -q --detach "$TMPDIR/theirs"; ln -s ` + f.Dir + ` "$TMPDIR/link"; GIT init -q "$TMPDIR/file"; rm -rf "$TMPDIR/file/.git"; echo "gitdir: ` + f.Dir + `/.git" > "$TMPDIR/file/.git"`
	if r := s.sh(tmp, shellLine(t, setup)); r.code != 0 {
		t.Fatalf("%d %s", r.code, r.errOut)
	}
	hurt := damage(t, f)
	for _, tt := range []struct {
		line string
		ok   bool
	}{
		{"push -q origin HEAD", true},
		{"push -q -u origin HEAD:two", true},
		{"push -q --atomic -o x origin HEAD:three HEAD:four; true", true},
		{"push -q --force --no-verify ../r.git HEAD:two", true},
		{"push -q origin :two", true},
		{"push -q file://TMP/r.git HEAD:five", true},
		{"push --dry-run -q origin HEAD:six", true},
		{"push -q --no-verify ORIGIN HEAD:new", false},
		{"push -q --no-verify ORIGIN/.git HEAD:new", false},
		{"push -q --no-verify file://ORIGIN HEAD:new", false},
		{"push -q --no-verify ../theirs HEAD:new", false},
		{"push -q --no-verify TMP/link HEAD:new", false},
		{"push -q --no-verify TMP/file HEAD:new", false},
		{"push -q --no-verify HOME/remote.git HEAD:new", false},
		{"push -q --no-verify https://192.0.2.1/x HEAD:new", false},
		{"push -q --no-verify 'ext::sh -c true% x' HEAD:new", false},
	} {
		line := strings.NewReplacer("ORIGIN", f.Dir, "TMP", `"$TMPDIR"`, "HOME", f.Home).Replace(tt.line)
		r := s.sh(filepath.Join(tmp, "c"), realGit(t)+" "+line)
		if (r.code == 0) != tt.ok || r.refused() == tt.ok {
			t.Errorf("%s: exit code %d\n%s", tt.line, r.code, r.errOut)
		}
		if got := hurt(); len(got) > 0 {
			t.Fatalf("%s changed %v", tt.line, got)
		}
	}
	if r := s.sh(f.Dir, realGit(t)+" push -q --no-verify "+`"$TMPDIR/r.git" main:new`); !r.refused() {
		t.Errorf("pushed from the user's repository: %d %s", r.code, r.errOut)
	}
}

// TestRemoteHelperProtocol: what is said to the helper by hand does no harm.
func TestRemoteHelperProtocol(t *testing.T) {
	t.Parallel()
	f := userRepo(t)
	s := newSession(t, f, f.Dir, nil)
	for _, text := range []string{"", "\n", "capabilities\n\n", "connect git-receive-pack\n", "list\n", "push main:x\n\n", "option dry-run true\npush x:y\n\n", "nonsense\n", strings.Repeat("x", 1<<16) + "\n"} {
		hurt := damage(t, f)
		r := s.sh(f.Dir, `printf '%s' "$TEXT" | git-remote-superqode-blocked origin superqode-blocked://`+filepath.Join(f.Home, "remote.git"), "TEXT="+text)
		if got := hurt(); len(got) > 0 || !r.refused() {
			t.Errorf("%q: %d %v %s", text, r.code, got, r.errOut)
		}
	}
	if r := s.sh(f.Dir, "git-remote-superqode-blocked </dev/null"); r.code == 0 {
		t.Error("no address: exit code 0")
	}
}
