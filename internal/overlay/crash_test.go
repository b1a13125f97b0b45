//go:build linux

package overlay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
)

// holdWord has this binary open an overlay, write a file and hold on: its arguments are
// the file's name and the folders.
const holdWord = "hold"

func hold(words []string) error {
	m, err := Open(context.Background(), helper, Layers{Socket: words[1], Upper: words[2], Work: words[3], Lower: words[4:]})
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.Dir()+"/"+words[0], []byte(words[0]), 0o600); err != nil {
		return err
	}
	fmt.Println("open")
	time.Sleep(time.Hour) // until it is killed
	return m.Close()
}

// holder is another process that has the overlay open.
func holder(t *testing.T, l Layers, file string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(helper, append([]string{holdWord, file, l.Socket, l.Upper, l.Work}, l.Lower...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

// ended waits until a process has ended.
func ended(t *testing.T, pid int) {
	t.Helper()
	for unix.Kill(pid, 0) == nil {
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("process %d lives on", pid)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestHoldersAreKilled: processes that have the overlay open are killed in any order, the
// one that started the mounter among them. It serves the others, ends with the last one,
// and all that was written is there.
func TestHoldersAreKilled(t *testing.T) {
	t.Parallel()
	l := layers(t)
	for round := range 5 {
		first := holder(t, l, fmt.Sprint(round, "-first"))
		m := open(t, l)
		pid := m.mounter(t)
		all := []*exec.Cmd{first}
		for i := range 4 {
			all = append(all, holder(t, l, fmt.Sprint(round, "-", i)))
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, cmd := range all {
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed
			if c, err := m.Copy(); err != nil || c.Close() != nil {
				t.Fatal(err)
			}
		}
		if got := open(t, l); got.mounter(t) != pid {
			t.Error("there are two mounters")
		} else {
			must(t, got.Close())
		}
		must(t, m.Close())
		ended(t, pid)
	}
	m := open(t, l)
	for round := range 5 {
		reads(t, m.Dir()+fmt.Sprint("/", round, "-first"), fmt.Sprint(round, "-first"))
		reads(t, m.Dir()+fmt.Sprint("/", round, "-3"), fmt.Sprint(round, "-3"))
	}
}

// TestProgramOutlivesMounter: a program whose mounter was killed works on. Nobody mounts
// its workspace once more meanwhile, and is told who has it.
func TestProgramOutlivesMounter(t *testing.T) {
	t.Parallel()
	f := battlefield(t, covered)
	done := make(chan string, 1)
	go func() {
		done <- f.sh(t, "trap 'echo mine >on; cat on; exit' TERM; echo $$ >pid; while :; do sleep 0.05; done")
	}()
	pid := ""
	for pid == "" {
		data, _ := os.ReadFile(f.m.Dir() + "/pid") // once it is there
		pid = strings.TrimSpace(string(data))
	}
	mounter := f.m.mounter(t)
	must(t, unix.Kill(mounter, unix.SIGKILL))
	ended(t, mounter)
	must(t, f.m.Close())
	if _, err := Open(t.Context(), helper, f.l); !errors.Is(err, ErrBusy) || !strings.Contains(superqode.Hint(err), pid) {
		t.Errorf("while process %s has it: %v, %s", pid, err, superqode.Hint(err))
	}
	n, err := strconv.Atoi(pid)
	must(t, err)
	if len(done) > 0 || unix.Kill(n, unix.SIGTERM) != nil { // to the shell, which says what it saw
		t.Fatalf("the program ended: %s", <-done)
	}
	if out := <-done; out != "mine\n" {
		t.Errorf("the program read %q", out)
	}
	must(t, f.k.Close())
	m := open(t, f.l)
	reads(t, m.Dir()+"/pid", pid+"\n")
}

// TestFullDisk: where the upper folder's disk is full, programs are told, what was written
// stays, and it goes on when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("SMALL_DISK"); dir != "" {
		fullDisk(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", "sh", "-ec", `mount -t tmpfs -o size=256k t "$SMALL_DISK"; exec "$0" -test.run '^TestFullDisk$'`, helper)
	exe, err := os.Executable()
	must(t, err)
	cmd.Args[len(cmd.Args)-1] = exe
	cmd.Env = append(os.Environ(), "SMALL_DISK="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func fullDisk(t *testing.T, dir string) {
	l := layers(t)
	l.Upper, l.Work = dir+"/upper", dir+"/work"
	m := open(t, l)
	write(t, m.Dir()+"/kept", "before")
	if err := os.WriteFile(m.Dir()+"/big", make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a megabyte on a quarter of one: %v", err)
	}
	for i := 0; ; i++ {
		if err := os.WriteFile(fmt.Sprint(m.Dir(), "/small", i), make([]byte, 5000), 0o600); errors.Is(err, unix.ENOSPC) {
			break
		} else if must(t, err); i > 1000 {
			t.Fatal("it does not fill")
		}
	}
	if err := os.WriteFile(m.Dir()+"/a", []byte("copied up"), 0o600); err == nil {
		t.Log("a small file had room")
	}
	reads(t, m.Dir()+"/b", "of the delta")
	other := l // a session that begins now is refused, and not taken for one of another boot later
	other.Upper, other.Work, other.Socket = dir+"/2/upper", dir+"/2/work", l.Socket+"2"
	must(t, os.MkdirAll(other.Work, 0o700))
	if f, err := os.OpenFile(dir+"/filler", os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		for err == nil {
			_, err = f.Write(make([]byte, 512))
		}
		must(t, f.Close())
	}
	if _, err := Open(t.Context(), helper, other); !errors.Is(err, unix.ENOSPC) || Lost(other) {
		t.Errorf("a second session: %v, lost: %v", err, Lost(other))
	}
	must(t, m.Close())
	again := open(t, l) // on a full disk
	reads(t, again.Dir()+"/kept", "before")
	must(t, os.Remove(again.Dir()+"/big"))
	must(t, os.RemoveAll(again.Dir()+"/small0"))
	write(t, again.Dir()+"/after", "after")
}
