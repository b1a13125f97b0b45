package life

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/team"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/kernel"
)

// The stress of several agents: stressAgents programs make stressEdits random
// edits each in stressFiles shared files, the first half of them under claims.
// Under the race detector, which looks at superqode and not at what the agents write,
// they are fewer. Every edit has a text of its own, so that each can be looked for afterwards.
const (
	stressAgents = 8
	stressFiles  = 50
	stressLines  = 300
)

// edit is one edit of an agent: a line of a file that it deleted or changed, or
// behind which it put one.
type edit struct {
	file, line int
	kind       string // insert, delete or change
	token      string // the text that it put in
}

func stressFile(n int) string { return fmt.Sprintf("src/file-%02d.txt", n) }

// baseLine is a line of a file at the start; no two are the same.
func baseLine(file, line int) string { return fmt.Sprintf("file %d line %d", file, line) }

// plan returns the edits of an agent: no line is touched twice by the same one.
func stressPlan(seed uint64, agent, edits int) []edit {
	rnd := rand.New(rand.NewPCG(seed, uint64(agent)))
	used := map[[2]int]bool{}
	var list []edit
	for len(list) < edits {
		e := edit{file: rnd.IntN(stressFiles), line: rnd.IntN(stressLines), kind: []string{"insert", "delete", "change"}[rnd.IntN(3)]}
		if used[[2]int{e.file, e.line}] {
			continue
		}
		used[[2]int{e.file, e.line}] = true
		e.token = fmt.Sprintf("agent %d edit %d", agent, len(list))
		list = append(list, e)
	}
	return list
}

// do makes the edit in the folder dir, by the text of the line that it is about.
func (e edit) do(dir string) error {
	path := filepath.Join(dir, stressFile(e.file))
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	old := baseLine(e.file, e.line) + "\n"
	fresh := map[string]string{"insert": old + e.token + "\n", "delete": "", "change": e.token + "\n"}[e.kind]
	i := strings.Index("\n"+string(data), "\n"+old)
	if i < 0 {
		return fmt.Errorf("%s has no line %q", path, old)
	}
	text := string(data[:i]) + fresh + string(data[i+len(old):])
	return os.WriteFile(path, []byte(text), 0o644)
}

// in reports whether a text of the edit's file holds it.
func (e edit) in(text string) bool {
	if e.kind == "delete" {
		return !strings.Contains("\n"+text, "\n"+baseLine(e.file, e.line)+"\n")
	}
	return strings.Contains("\n"+text, "\n"+e.token+"\n")
}

// childEdits is an agent of the stress. Those of the first half take a claim on
// the place, one line more on each side, before each edit, and pass over an edit
// whose place another one has; what they passed over they write down.
func childEdits() int {
	agent, _ := strconv.Atoi(os.Getenv("SUPERQODE_TEST_AGENT"))
	seed, _ := strconv.ParseUint(os.Getenv("SUPERQODE_TEST_SEED"), 10, 64)
	edits, _ := strconv.Atoi(os.Getenv("SUPERQODE_TEST_EDITS"))
	pause, _ := time.ParseDuration(os.Getenv("SUPERQODE_TEST_PAUSE"))
	table := coordinator.OpenTable(os.Getenv("SUPERQODE_TEST_CLAIMS"))
	holder, err := coordinator.ProcessHolder(os.Getpid())
	if err != nil {
		fmt.Println(err)
		return 9
	}
	for n, e := range stressPlan(seed, agent, edits) {
		if agent < stressAgents/2 {
			target, err := coordinator.NewTarget(coordinator.KindFile, stressFile(e.file), coordinator.Lines{Start: max(1, e.line), End: e.line + 2})
			if err != nil {
				fmt.Println(err)
				return 8
			}
			id, _ := superqode.ParseAgentID("agent-" + strconv.Itoa(agent))
			if _, err := table.Acquire(context.Background(), coordinator.Request{Owner: coordinator.Owner{Agent: id}, Targets: []coordinator.Target{target}, Holder: holder}, 0); err != nil {
				fmt.Printf("passed over %d\n", n)
				continue
			}
		}
		if err := e.do("."); err != nil {
			fmt.Println(err)
			return 7
		}
		time.Sleep(pause)
	}
	return 0
}

// stressRepo is the shared files.
func stressRepo(t *testing.T) *gittest.Fixture {
	t.Helper()
	f := gittest.Repo(t)
	for n := range stressFiles {
		var b strings.Builder
		for l := range stressLines {
			b.WriteString(baseLine(n, l) + "\n")
		}
		f.Write(stressFile(n), b.String())
	}
	f.Git("add", ".")
	f.Git("commit", "-qm", "shared files")
	return f
}

func stressEnv(claims string, seed uint64, edits int, pause time.Duration) []string {
	return []string{
		"SUPERQODE_TEST_CLAIMS=" + claims, fmt.Sprintf("SUPERQODE_TEST_SEED=%d", seed), fmt.Sprintf("SUPERQODE_TEST_EDITS=%d", edits), "SUPERQODE_TEST_PAUSE=" + pause.String(),
	}
}

// stressCommands are the agents; each is this test binary again, which
// SUPERQODE_TEST_DO keeps from running the tests.
func stressCommands(exe string) []team.AgentCommand {
	var list []team.AgentCommand
	for n := range stressAgents {
		id, _ := superqode.ParseAgentID("agent-" + strconv.Itoa(n))
		list = append(list, team.AgentCommand{Agent: id, Command: fmt.Sprintf("SUPERQODE_TEST_DO=edits SUPERQODE_TEST_AGENT=%d exec '%s'", n, exe)})
	}
	return list
}

// TestAgentsStress counts: every edit of every agent is in the merged patch or in
// exactly one reported conflict, and always in the agent's own patch.
func TestAgentsStress(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if own := os.Getenv("SUPERQODE_STRESS_SEED"); own != "" {
		seed, _ = strconv.ParseUint(own, 10, 64)
	}
	t.Logf("SUPERQODE_STRESS_SEED=%d", seed)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, claims := stressRepo(t), t.TempDir()
	env := f.Env(stressEnv(claims, seed, stressEdits, 0)...)
	m := NewManager(Config{Home: superqode.Getenv(env, "SUPERQODE_HOME"), Env: env})
	res, err := m.RunAgents(t.Context(), OpenOptions{Dir: f.Dir, Keep: superqode.KeepNever}, program.ExecOptions{KernelOptions: program.KernelOptions{AllowWrite: []string{claims}}}, team.AgentsOptions{Agents: stressCommands(exe)})
	if res == nil || res.ExitCode != 0 || err != nil && !errors.Is(err, superqode.ErrConflict) {
		t.Fatalf("%+v, %v", res, err)
	}
	c := readStress(t, f, res.SessionID)
	merged, conflicted := c.count(t, res, seed, func(agent int, line string) bool { return strings.Contains(c.logs[agent], line) })
	if merged+conflicted+c.passed != stressAgents*stressEdits {
		t.Errorf("%d merged + %d in conflicts + %d passed over are not %d edits", merged, conflicted, c.passed, stressAgents*stressEdits)
	}
	t.Logf("%d edits merged, %d in %d conflicts, %d passed over for another's claim", merged, conflicted, c.conflicts, c.passed)
	if merged == 0 || c.passed == stressAgents*stressEdits {
		t.Error("nothing was put to the test")
	}
	leases, waiters, err := coordinator.OpenTable(claims).List(t.Context())
	if err != nil || len(leases)+len(waiters) > 0 {
		t.Errorf("claims of ended agents: %d held, %d waiting, %v", len(leases), len(waiters), err)
	}
}

// stressResult is what a session of the stress left in the origin.
type stressResult struct {
	merged    stressDir   // the origin with the merged patch
	own       []stressDir // and with each agent's own
	logs      []string
	conflicts int
	passed    int
}

type stressDir struct {
	t   *testing.T
	dir string
}

func (d stressDir) Read(file string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

func readStress(t *testing.T, f *gittest.Fixture, id superqode.SessionID) *stressResult {
	t.Helper()
	store := filepath.Join(f.Dir, ".superqode", "qe-artifacts")
	with := func(patch string) stressDir {
		c := stressDir{t, filepath.Join(t.TempDir(), "clone")}
		f.Git("clone", "-q", f.Dir, c.dir)
		if _, err := os.Stat(filepath.Join(store, patch)); err == nil {
			f.GitIn(c.dir, "apply", "--whitespace=nowarn", filepath.Join(store, patch))
		}
		return c
	}
	r := &stressResult{merged: with(artifacts.SessionPatch(id))}
	for n := range stressAgents {
		agent, _ := superqode.ParseAgentID("agent-" + strconv.Itoa(n))
		r.own = append(r.own, with(artifacts.AgentPatch(id, agent)))
		log, _ := os.ReadFile(filepath.Join(store, artifacts.SessionLog(id, agent.String()+"-command"))) // an agent that prints nothing has none
		r.logs = append(r.logs, string(log))
	}
	return r
}

// count looks for every edit; passed says which were never made.
func (r *stressResult) count(t *testing.T, res *artifacts.Result, seed uint64, passed func(agent int, line string) bool) (merged, conflicted int) {
	t.Helper()
	for n := range stressAgents {
		files := res.Agents[n].Conflicts
		r.conflicts += len(files)
		if len(files) != len(slices.Compact(slices.Sorted(slices.Values(files)))) {
			t.Errorf("agent %d: a file is in two conflicts: %v", n, files)
		}
		for i, e := range stressPlan(seed, n, stressEdits) {
			if passed(n, fmt.Sprintf("passed over %d\n", i)) {
				r.passed++
				continue
			}
			if !e.in(r.own[n].Read(stressFile(e.file))) {
				t.Errorf("agent %d: edit %d (%s of %s) is not in its own patch", n, i, e.kind, stressFile(e.file))
			}
			in, out := e.in(r.merged.Read(stressFile(e.file))), slices.Contains(files, stressFile(e.file))
			switch {
			case out && in && e.kind != "delete": // a deletion may be another agent's, too
				t.Errorf("agent %d: edit %d of %s is in the patch and in a conflict", n, i, stressFile(e.file))
			case out:
				conflicted++
			case in:
				merged++
			default:
				t.Errorf("agent %d: edit %d (%s line %d of %s) is lost", n, i, e.kind, e.line, stressFile(e.file))
			}
		}
	}
	return merged, conflicted
}

// childAgents is the superqode that is killed.
func childAgents() int {
	exe, err := os.Executable()
	if err != nil {
		return 98
	}
	m := childManager()
	exec := program.ExecOptions{KernelOptions: program.KernelOptions{AllowWrite: []string{os.Getenv("SUPERQODE_TEST_CLAIMS")}}}
	if _, err := m.RunAgents(context.Background(), OpenOptions{Dir: os.Getenv("SUPERQODE_TEST_DIR")}, exec, team.AgentsOptions{Agents: stressCommands(exe)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}

// TestAgentsKilled kills superqode with SIGKILL half-way, early and late: claims free
// themselves, the session recovers, and what reached a file is in a patch.
func TestAgentsKilled(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{100 * time.Millisecond, 550 * time.Millisecond, 1450 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			killAgents(t, uint64(time.Now().UnixNano()), after)
		})
	}
}

func killAgents(t *testing.T, seed uint64, after time.Duration) {
	t.Logf("seed %d, killed %s after the first edit", seed, after)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, claims := stressRepo(t), t.TempDir()
	const edits = 120 // of 20 ms each: the last kill, too, is half-way
	env := f.Env(append(stressEnv(claims, seed, edits, 20*time.Millisecond), "SUPERQODE_TEST_DO=agents", "SUPERQODE_TEST_DIR="+f.Dir)...)
	cmd := exec.Command(exe)
	cmd.Env = env
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	home := superqode.Getenv(env, "SUPERQODE_HOME")
	waitForEdit(t, home)
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	m := NewManager(Config{Home: home, Env: f.Env()})
	done, err := m.Recover(t.Context(), f.Dir, "")
	for try := 0; err == nil && len(done) == 0 && try < 100; try++ { // a git that it was just starting holds its locks until it has started
		time.Sleep(20 * time.Millisecond)
		done, err = m.Recover(t.Context(), f.Dir, "")
	}
	if err != nil || len(done) != 1 || done[0].Err != nil {
		list, _, _ := registry.List(t.Context(), m.Host, f.Dir, false)
		t.Fatalf("recover: %+v, %v, %+v\n%s", done, err, list, &out)
	}
	leases, waiters, err := coordinator.OpenTable(claims).List(t.Context())
	if err != nil || len(leases)+len(waiters) > 0 {
		t.Errorf("claims of killed agents: %d held, %d waiting, %v", len(leases), len(waiters), err)
	}
	checkKilled(t, f, m, done[0].ID, seed, edits)
}

// waitForEdit waits until some agent has changed a file.
func waitForEdit(t *testing.T, home string) {
	t.Helper()
	for range 2000 {
		files, _ := filepath.Glob(filepath.Join(home, "working", "*", "qe", "*", "src", "*.txt"))
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), "agent ") {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no agent has edited anything in 20 s")
}

// checkKilled compares what the agents' workspaces, which are kept, hold with
// their patches, and with the merged one.
func checkKilled(t *testing.T, f *gittest.Fixture, m *Manager, id superqode.SessionID, seed uint64, edits int) {
	t.Helper()
	s, err := m.Attach(t.Context(), f.Dir, id.String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kids, err := s.Children()
	if err != nil || len(kids) != stressAgents {
		t.Fatalf("%d workspaces of agents are kept, %v", len(kids), err)
	}
	parts, err := s.ReadAgents()
	if err != nil || parts == nil {
		t.Fatalf("what the agents did: %v, %v", parts, err)
	}
	r, found := readStress(t, f, id), 0
	for n, part := range parts.Agents {
		var left []string
		for _, c := range part.Conflicts {
			left = append(left, string(c.Path))
		}
		for i, e := range stressPlan(seed, n, edits) {
			file := stressFile(e.file)
			data, err := os.ReadFile(filepath.Join(string(kids[part.Agent].Workspace), file))
			if err != nil {
				t.Fatal(err)
			}
			if !e.in(string(data)) {
				continue // it was killed before that
			}
			found++
			if !e.in(r.own[n].Read(file)) {
				t.Errorf("agent %d: edit %d of %s reached the file and is not in the agent's patch", n, i, file)
			}
			if !slices.Contains(left, file) && !e.in(r.merged.Read(file)) {
				t.Errorf("agent %d: edit %d of %s is neither merged nor in a conflict", n, i, file)
			}
		}
	}
	if found == 0 {
		t.Error("no edit reached a file: nothing was put to the test")
	}
}

// childTeam is a session of two agents, which conflict in one file. Each leaves a
// note beside the origin when it has written.
func childTeam() int {
	m, dir := childManager(), os.Getenv("SUPERQODE_TEST_DIR")
	var list []team.AgentCommand
	for _, name := range []string{"ALICE", "BOB"} {
		id, _ := superqode.ParseAgentID(name)
		list = append(list, team.AgentCommand{Agent: id, Command: fmt.Sprintf(`echo %s >> README.md && echo %[1]s > %[1]s.txt && : > '%s'`, name, filepath.Join(filepath.Dir(dir), name))})
	}
	exec := program.ExecOptions{KernelOptions: program.KernelOptions{Enforce: kernel.EnforceOff}}
	_, err := m.RunAgents(context.Background(), OpenOptions{Dir: dir, Keep: superqode.KeepNever}, exec, team.AgentsOptions{Agents: list, Parallel: 1})
	if err != nil && !errors.Is(err, superqode.ErrConflict) {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}
