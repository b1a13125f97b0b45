package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// monitored is a program of a session that changes its work tree at random, by itself and
// by git, and compares after each step what git says that asks the session's monitor with
// what git says that looks at every file. Its arguments are a seed and a number of steps.
func monitored() {
	m := &monitoredTree{dir: filepath.Dir(os.Getenv("SUPERQODE_SOCKET"))}
	if len(os.Args) == 2 { // of its own mounts, see elsewhere
		m.fail(syscall.Mount("none", os.Args[1], "tmpfs", 0, ""))
		m.fail(syscall.Exec(filepath.Join(m.dir, "hooks/fsmonitor"), []string{"fsmonitor", "2", "0:superqode"}, os.Environ()))
	}
	seed, err := strconv.ParseUint(os.Args[1], 10, 64)
	steps, err2 := strconv.Atoi(os.Args[2])
	m.fail(errors.Join(err, err2))
	m.r = rand.New(rand.NewPCG(seed, seed))
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) { // the shim starts no monitor for few files
		if git := filepath.Join(dir, "git"); m.git == "" && dir != filepath.Join(m.dir, "bin") && exec.Command(git, "version").Run() == nil {
			m.git = git
		}
	}
	for range steps {
		if m.r.IntN(4) > 0 {
			m.compare()
		}
		m.did = append(m.did, m.step())
	}
	m.compare()
	m.elsewhere()
}

type monitoredTree struct {
	dir, git string
	r        *rand.Rand
	did      []string
}

func (m *monitoredTree) fail(err error) {
	if err != nil {
		fmt.Println("monitored:", err, m.did)
		os.Exit(1)
	}
}

func (m *monitoredTree) run(args ...string) string {
	cmd := exec.Command(m.git, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.fail(fmt.Errorf("git %q: %w: %s", args, err, stderr.Bytes()))
	}
	return string(out)
}

// compare is the judge.
func (m *monitoredTree) compare() {
	status := []string{"status", "--porcelain=v2", "-uall", "--ignored"}
	want := m.run(append([]string{"-c", "core.fsmonitor=", "-c", "core.untrackedCache=false", "--no-optional-locks"}, status...)...)
	if m.r.IntN(4) == 0 { // what it writes is asked for later
		status = append([]string{"--no-optional-locks"}, status...)
	}
	if got := m.run(status...); got != want {
		m.fail(fmt.Errorf("with the monitor git says\n%s\nand without\n%s", got, want))
	}
}

// elsewhere makes sure that the monitor answered, and that it does not where a mount
// covers what it would answer for.
func (m *monitoredTree) elsewhere() {
	out, err := exec.Command(filepath.Join(m.dir, "hooks/fsmonitor"), "2", "0:superqode").Output()
	if m.fail(err); !bytes.HasPrefix(out, []byte("0:superqode\x00")) || bytes.Contains(out, []byte("\x00/\x00")) {
		m.fail(fmt.Errorf("the monitor answers %q", out))
	}
	m.fail(os.MkdirAll("covered", 0o755))
	self, err := os.Executable()
	m.fail(err)
	cmd := exec.Command(self, "covered")
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if out, err = cmd.Output(); string(out) != "0\x00/\x00" {
		m.fail(fmt.Errorf("under a mount the monitor answers %q (%w)", out, err))
	}
}

// name is a path, every other time one that git knows, or the folder of one.
func (m *monitoredTree) name() string {
	if known := strings.Fields(m.run("-c", "core.fsmonitor=", "ls-files", "-co", "a", "b", "c")); len(known) > 0 && m.r.IntN(2) == 0 {
		p := known[m.r.IntN(len(known))]
		if dir := filepath.Dir(p); dir != "." && m.r.IntN(3) == 0 {
			return dir
		}
		return p
	}
	p := ""
	for range 1 + m.r.IntN(3) {
		p = filepath.Join(p, []string{"a", "b", "c", "b-"}[m.r.IntN(4)])
	}
	return p
}

// step does one thing to the work tree; what cannot be done is not done.
func (m *monitoredTree) step() string {
	at, to := m.name(), m.name()
	write := func(name string) {
		if os.MkdirAll(filepath.Dir(name), 0o755) == nil {
			_ = os.WriteFile(name, fmt.Append(nil, m.r.IntN(3)), 0o644)
		}
	}
	git := func(args ...string) { _ = exec.Command(m.git, args...).Run() }
	steps := []struct {
		what string
		do   func()
	}{
		{"write " + at, func() { write(at) }},
		{"write below " + at, func() { write(filepath.Join(at, "new", to)) }},
		{"remove " + at, func() { _ = os.RemoveAll(at) }},
		{"move " + at + " " + to, func() { _ = exec.Command("mv", "-T", at, to).Run() }},
		{"link " + at, func() { _ = errors.Join(os.RemoveAll(at), os.Symlink("x", at)) }},
		{"folder anew " + at, func() { _ = errors.Join(os.RemoveAll(at), os.MkdirAll(at, 0o755)); write(filepath.Join(at, "a")) }},
		{"chmod " + at, func() { _ = os.Chmod(at, []os.FileMode{0o755, 0o744}[m.r.IntN(2)]) }},
		{"map " + at, func() { _ = throughMemory(at) }},
		{"ignore " + at, func() { _ = os.WriteFile(".gitignore", []byte(at+"\n"), 0o644) }},
		{"hard link " + at + " " + to, func() { _ = os.Link(at, to) }},
		{"submodule", func() { _ = os.WriteFile("sub/f", fmt.Append(nil, m.r.IntN(3)), 0o644) }},
		{"add " + at, func() { git("add", "-A", "--", at) }},
		{"add all", func() { git("add", "-A") }},
		{"intend to add " + at, func() { git("add", "-N", "--", at) }},
		{"forget " + at, func() { git("rm", "-rq", "--cached", "--", at) }},
		{"unstage", func() { git("reset", "-q") }},
		{"commit", func() { git("commit", "-qm", "x") }},
		{"commit " + at, func() { git("commit", "-qm", "x", "--", at) }},
		{"check out " + at, func() { git("checkout", "HEAD", "--", at) }},
		{"check out the first " + at, func() { git("checkout", "origin-head", "--", at) }},
		{"reset hard", func() { git("reset", "-q", "--hard") }},
		{"switch", func() { git("checkout", "-q", "-f", "--detach", []string{"origin-head", "HEAD~1"}[m.r.IntN(2)]) }},
		{"stash", func() { git("stash", "push", "-qu") }},
		{"pop", func() { git("stash", "pop", "-q") }},
		{"without the monitor", func() { git("-c", "core.fsmonitor=", "status") }},
	}
	seen := func(change func()) { // what git has found clean leaves no other trace than that it is gone
		git("add", "-A")
		m.run("status")
		m.compare()
		change()
	}
	for _, gone := range []string{at, filepath.Dir(at), filepath.Join(at, "n")} {
		steps = append(steps, []struct {
			what string
			do   func()
		}{
			{"write " + at + ", see and remove " + gone, func() { write(at); seen(func() { _ = os.RemoveAll(gone) }) }},
			{"write below " + at + ", see and remove " + gone, func() { write(filepath.Join(at, "n/o/p")); seen(func() { _ = os.RemoveAll(gone) }) }},
			{"write below " + at + ", see and move " + gone, func() { write(filepath.Join(at, "n/o/p")); seen(func() { _ = os.Rename(gone, to) }) }},
			{"anew " + at + ", see and remove " + gone, func() {
				_ = errors.Join(os.RemoveAll(at), os.MkdirAll(at, 0o755))
				write(filepath.Join(at, "n/o"))
				seen(func() { _ = os.RemoveAll(gone) })
			}},
		}...)
	}
	s := steps[m.r.IntN(len(steps))]
	if m.r.IntN(2) == 0 { // most that is done to a tree
		s = steps[[]int{0, 1, 2, 2, 3, 11, 12, 12}[m.r.IntN(8)]]
	}
	s.do()
	return s.what
}

// throughMemory changes a file's first byte by writing to memory.
func throughMemory(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	data[0] = 'm'
	return syscall.Munmap(data)
}
