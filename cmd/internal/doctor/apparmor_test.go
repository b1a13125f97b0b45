package doctor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// TestUserNamespaces: the profile is offered where AppArmor asks for one, and written by
// root after a yes alone.
func TestUserNamespaces(t *testing.T) {
	root := t.TempDir()
	sysctl := filepath.Join(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	file := filepath.Join(root, appArmorProfile)
	for _, f := range []string{sysctl, file} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	try := func(c Cmd) *check {
		return c.userNamespaces(t.Context(), app.New(app.IO{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}), root)
	}
	if got := try(Cmd{Fix: true, Yes: true}); got != nil {
		t.Errorf("without AppArmor: %+v", got)
	}
	set := func(value string) {
		if err := os.WriteFile(sysctl, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if set("0"); try(Cmd{Fix: true, Yes: true}) != nil {
		t.Error("it is offered although nothing is restricted")
	}
	set("1")
	for _, c := range []Cmd{{}, {Fix: true}} { // nobody is asked: there is no terminal
		got := try(c)
		if got == nil || got.Status != note || !strings.HasPrefix(got.Remedy, "sudo ") {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was written without a yes")
	}
	got := try(Cmd{Fix: true, Yes: true})
	if os.Geteuid() != 0 {
		if got == nil || got.Status != note {
			t.Errorf("as a user: %+v", got)
		}
		return
	}
	text, err := os.ReadFile(file)
	if got.Status == fail { // no parser, or an old one: nothing is left of it
		if err == nil || !strings.Contains(got.Detail, "apparmor_parser") {
			t.Errorf("%+v leaves %q", got, text)
		}
		return
	}
	if err != nil || got.Status != done || !strings.Contains(string(text), "\n  userns,\n") {
		t.Errorf("the profile is %q, %v; %+v", text, err, got)
	}
	if again := try(Cmd{Fix: true, Yes: true}); again != nil {
		t.Errorf("once it is there: %+v", again)
	}
}

// TestProfileIsAppArmors asks AppArmor's own parser, which has to know user namespaces.
func TestProfileIsAppArmors(t *testing.T) {
	parser, err := exec.LookPath("apparmor_parser")
	if _, aerr := os.Stat("/etc/apparmor.d/abi/4.0"); err != nil || aerr != nil {
		t.Skip("no AppArmor 4")
	}
	cmd := exec.Command(parser, "--skip-kernel-load", "--skip-cache", "--preprocess")
	cmd.Stdin = strings.NewReader(profileFor(`/opt/a "b" {c}/superqode`))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
