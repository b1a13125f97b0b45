package runner

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestOwnChildren holds that what this process starts itself beside its runs is neither ended
// nor reaped by them.
func TestOwnChildren(t *testing.T) {
	if os.Getenv("RUNNER_TEST_EMBEDDER") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOwnChildren$", "-test.count=1")
		cmd.Env = append(os.Environ(), "RUNNER_TEST_EMBEDDER=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	start := func(script string, begin func(*exec.Cmd) error) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := begin(cmd); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	elsewhere := func(cmd *exec.Cmd) error { // not on the first thread, whose children look as adopted ones do
		started := make(chan error)
		go ownThread(true, func() {
			started <- cmd.Start()
			select {} // the thread stays
		})
		return <-started
	}
	var own []*exec.Cmd
	for range 10 {
		own = append(own, start("exec sleep 1000", (*exec.Cmd).Start), start("exit 7", (*exec.Cmd).Start))
	}
	apart := start("exec sleep 1000", StartApart)
	for range 3 {
		res, err := Run(t.Context(), Spec{Args: []string{"sh", "-c", "setsid sleep 1000 & env -i setsid sleep 1000 & sleep 0.3"}, Started: func(int) {
			for range 5 {
				own = append(own, start("exec sleep 1000", elsewhere), start("exit 7", elsewhere))
			}
		}})
		if err != nil || res.ExitCode != 0 || len(res.Survivors) != 2 {
			t.Errorf("%+v, %v", res, err)
		}
	}
	for i, cmd := range own {
		want := 7
		if i%2 == 0 {
			want = -1
			if err := cmd.Process.Kill(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
		if _ = cmd.Wait(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Errorf("process %d: %v", i, cmd.ProcessState)
		}
	}
	if err := apart.Process.Kill(); err != nil {
		t.Error(err)
	}
}
