package life

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/gittest"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/team"
)

// mergeCase is what two agents do to one base, and what their merged patch makes
// of it. Of want each line is a path with its mode and contents, as tree prints
// it; conflicts are the second agent's.
type mergeCase struct {
	base, alice, bob string
	want             string
	conflicts        string // kinds and paths
}

// tree prints the files below a folder, in order, one a line: path, permission bits
// and contents, or a link's target.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".superqode"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		name := strings.TrimPrefix(path, dir+"/")
		if target, err := os.Readlink(path); err == nil {
			lines = append(lines, name+" -> "+target)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		text := strings.NewReplacer("\n", ",", "\r", "~", "\x00", "0").Replace(string(data))
		lines = append(lines, fmt.Sprintf("%s %o %s", name, info.Mode().Perm(), text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// copyOrigin copies the origin, which no agent has touched.
func copyOrigin(t *testing.T, f *gittest.Fixture) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", f.Dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func mergeCases() map[string]mergeCase {
	const numbers = "seq 1 9 > f"
	return map[string]mergeCase{
		"disjoint":             {numbers, `sed -i s/2/A/ f`, `sed -i s/8/B/ f`, "f 644 1,A,3,4,5,6,7,B,9,", ""},
		"identical":            {numbers, `sed -i s/5/X/ f`, `sed -i s/5/X/ f`, "f 644 1,2,3,4,X,6,7,8,9,", ""},
		"identical and more":   {numbers, `sed -i s/5/X/ f`, `sed -i "s/5/X/;s/9/B/" f`, "f 644 1,2,3,4,X,6,7,8,B,", ""},
		"same line":            {numbers, `sed -i s/5/A/ f`, `sed -i "s/5/B/;s/9/B/" f`, "f 644 1,2,3,4,A,6,7,8,9,", "content f"},
		"next line":            {numbers, `sed -i s/5/A/ f`, `sed -i s/6/B/ f`, "f 644 1,2,3,4,A,6,7,8,9,", "content f"},
		"both at the end":      {numbers, `echo A >> f`, `echo B >> f`, "f 644 1,2,3,4,5,6,7,8,9,A,", "content f"},
		"edit the renamed":     {numbers, `mv f g`, `sed -i s/2/B/ f`, "g 644 1,B,3,4,5,6,7,8,9,", ""},
		"rename the edited":    {numbers, `sed -i s/2/A/ f`, `mv f g`, "g 644 1,A,3,4,5,6,7,8,9,", ""},
		"both rename alike":    {numbers, `mv f g; sed -i s/2/A/ g`, `mv f g; sed -i s/8/B/ g`, "g 644 1,A,3,4,5,6,7,B,9,", ""},
		"two names":            {numbers, `mv f g`, `mv f h`, "g 644 1,2,3,4,5,6,7,8,9,", "rename/rename h"},
		"rename and delete":    {numbers, `mv f g`, `rm f`, "g 644 1,2,3,4,5,6,7,8,9,", "rename/delete f"},
		"delete and rename":    {numbers, `rm f`, `mv f g`, "", "rename/delete g"},
		"rename onto new":      {numbers, `echo a > g`, `mv f g`, "f 644 1,2,3,4,5,6,7,8,9,|g 644 a,", "rename/add g"},
		"modes":                {numbers, `chmod 755 f`, `sed -i s/2/B/ f`, "f 755 1,B,3,4,5,6,7,8,9,", ""},
		"mode after edit":      {numbers, `sed -i s/2/A/ f`, `chmod 755 f`, "f 755 1,A,3,4,5,6,7,8,9,", ""},
		"binary":               {`printf 'a\0b' > f`, `printf 'A\0b' > f`, `printf 'a\0B' > f`, "f 644 A0b", "binary f"},
		"binary and text":      {`printf 'a\0b' > f; echo t > t`, `printf 'A\0b' > f`, `echo B >> t`, "f 644 A0b|t 644 t,B,", ""},
		"binary alike":         {`printf 'a\0b' > f`, `printf 'A\0b' > f`, `printf 'A\0b' > f`, "f 644 A0b", ""},
		"delete and edit":      {numbers, `rm f`, `sed -i s/2/B/ f`, "", "modify/delete f"},
		"edit and delete":      {numbers, `sed -i s/2/A/ f`, `rm f`, "f 644 1,A,3,4,5,6,7,8,9,", "modify/delete f"},
		"both delete":          {numbers, `rm f`, `rm f`, "", ""},
		"add and add":          {numbers, `rm f; echo a > n`, `echo b > n`, "n 644 a,", "add/add n"},
		"add alike":            {`echo x > f`, `echo a > n`, `echo a > n`, "f 644 x,|n 644 a,", ""},
		"empty files":          {`: > f`, `: > a`, `: > b; echo full > f`, "a 644 |b 644 |f 644 full,", ""},
		"empty added alike":    {`echo x > f`, `: > n`, `: > n`, "f 644 x,|n 644 ", ""},
		"no newline at end":    {`printf '1\n2\n3\n4\n5' > f`, `sed -i s/1/A/ f`, `printf '1\n2\n3\n4\nB' > f`, "f 644 A,2,3,4,B", ""},
		"newline at end":       {`printf '1\n2\n3\n4\n5' > f`, `sed -i s/1/A/ f`, `echo >> f`, "f 644 A,2,3,4,5,", ""},
		"no newline, conflict": {`printf '1\n2\n3' > f`, `printf '1\n2\nA' > f`, `printf '1\n2\nB' > f`, "f 644 1,2,A", "content f"},
		"links":                {`ln -s a l; ln -s a m`, `ln -sfn A l`, `ln -sfn B m`, "l -> A|m -> B", ""},
		"links, conflict":      {`ln -s a l`, `ln -sfn A l`, `ln -sfn B l`, "l -> A", "content l"},
		"link for a file":      {numbers, `rm f; ln -s x f`, `sed -i s/2/B/ f`, "f -> x", "distinct types f"},
		"file and folder":      {`echo x > f`, `echo a > n`, `mkdir n; echo b > n/b`, "f 644 x,|n 644 a,", "file/directory n/b"},
		"folder and file":      {`echo x > f`, `mkdir n; echo a > n/a`, `echo b > n`, "f 644 x,|n/a 644 a,", "file/directory n"},
		"folder for a file":    {`echo x > f`, `rm f; mkdir f; echo a > f/a`, `echo b > g`, "f/a 644 a,|g 644 b,", ""},
		"case only":            {`echo x > readme`, `mv readme README`, `echo b >> readme`, "README 644 x,b,", ""},
		"line ends":            {`printf '1\r\n2\r\n3\r\n4\r\n5\r\n' > f`, `sed -i s/1/A/ f`, `sed -i s/5/B/ f`, "f 644 A~,2~,3~,4~,B~,", ""},
		"line ends turned":     {`printf '1\n2\n3\n' > f`, `sed -i 's/$/\r/' f`, `sed -i s/2/B/ f`, "f 644 1~,2~,3~,", "content f"},
		"folder renamed":       {`mkdir d; seq 1 9 > d/f; seq 1 9 | tac > d/g`, `mv d e`, `sed -i s/2/B/ d/f; mkdir d/s; echo n > d/s/new`, "e/f 644 1,B,3,4,5,6,7,8,9,|e/g 644 9,8,7,6,5,4,3,2,1,|e/s/new 644 n,", ""},
		"folder renamed after": {`mkdir d; seq 1 9 > d/f; seq 1 9 | tac > d/g`, `sed -i s/2/A/ d/f; mkdir d/s; echo n > d/s/new`, `mv d e`, "e/f 644 1,A,3,4,5,6,7,8,9,|e/g 644 9,8,7,6,5,4,3,2,1,|e/s/new 644 n,", ""},
		"folder dissolved":     {`mkdir d; seq 1 9 > d/f`, `mv d/f .; rmdir d`, `echo n > d/new`, "f 644 1,2,3,4,5,6,7,8,9,|new 644 n,", ""},
		"folder in a folder":   {`mkdir -p a/d; seq 1 9 > a/d/f`, `mv a b`, `echo n > a/new; echo m > a/d/m`, "b/d/f 644 1,2,3,4,5,6,7,8,9,|b/d/m 644 m,|b/new 644 n,", ""},
		"folder left in part":  {`mkdir d; seq 1 9 > d/f; seq 1 9 | tac > d/g`, `mkdir e; mv d/f e`, `echo n > d/new`, "d/g 644 9,8,7,6,5,4,3,2,1,|d/new 644 n,|e/f 644 1,2,3,4,5,6,7,8,9,", ""},
		"folder split":         {`mkdir d; seq 1 9 > d/f; seq 1 9 | tac > d/g`, `mkdir e i; mv d/f e; mv d/g i; rmdir d`, `echo n > d/new`, "d/new 644 n,|e/f 644 1,2,3,4,5,6,7,8,9,|i/g 644 9,8,7,6,5,4,3,2,1,", ""},
		"folder, place taken":  {`mkdir d; seq 1 9 > d/f`, `mv d e; echo a > e/new`, `echo n > d/new`, "d/new 644 n,|e/f 644 1,2,3,4,5,6,7,8,9,|e/new 644 a,", ""},
		"folder, taken before": {`mkdir d; seq 1 9 > d/f`, `echo n > d/new`, `mv d e; echo a > e/new`, "d/new 644 n,|e/f 644 1,2,3,4,5,6,7,8,9,|e/new 644 a,", ""},
		"two folder names":     {`mkdir d; seq 1 9 > d/f`, `mv d e`, `mv d i; echo n > i/new`, "e/f 644 1,2,3,4,5,6,7,8,9,|i/new 644 n,", "rename/rename i/f"},
		"moved into renamed":   {`mkdir d; seq 1 9 > d/f; seq 20 30 > x`, `mv d e`, `mv x d/x`, "e/f 644 1,2,3,4,5,6,7,8,9,|e/x 644 20,21,22,23,24,25,26,27,28,29,30,", ""},
		"folder deleted":       {`mkdir d; echo 1 > d/f; echo 2 > d/g`, `rm -r d`, `echo n > d/new`, "d/new 644 n,", ""},
		"bytes in names":       {`printf x > "$(printf 'a\377b')"`, `printf A > "$(printf 'n\376')"`, `printf B > "$(printf 'a\377b')"`, "a\xffb 644 B|n\xfe 644 A", ""},
		"odd names":            {`echo 1 > -f`, `echo a > 'a b'; echo a > 'q"q'`, `echo b >> ./-f; printf b > "$(printf 't\tt')"`, "-f 644 1,b,|a b 644 a,|q\"q 644 a,|t\tt 644 b", ""},
		"one did nothing":      {numbers, `true`, `sed -i s/2/B/ f`, "f 644 1,B,3,4,5,6,7,8,9,", ""},
		"renamed and split":    {numbers, `mv f g; echo n > f`, `sed -i s/2/B/ f`, "", "any"},
	}
}

func TestAgentsMerge(t *testing.T) {
	t.Parallel()
	for name, c := range mergeCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := gittest.Repo(t)
			sh(t, f, f.Dir, c.base)
			f.Git("add", "-A")
			f.Git("commit", "-qm", "base", "--allow-empty")
			env := f.Env()
			m := NewManager(Config{Home: superqode.Getenv(env, "SUPERQODE_HOME"), Env: env})
			alice, _ := superqode.ParseAgentID("alice")
			bob, _ := superqode.ParseAgentID("bob")
			res, err := m.RunAgents(t.Context(), OpenOptions{Dir: f.Dir}, program.ExecOptions{}, team.AgentsOptions{Agents: []team.AgentCommand{{Agent: alice, Command: c.alice}, {Agent: bob, Command: c.bob}}})
			if res == nil || err != nil && !errors.Is(err, superqode.ErrConflict) {
				t.Fatal(err)
			}
			conflicts := conflictsOfRun(t, f, m, res)
			if c.conflicts == "any" {
				checkParts(t, f, res, c)
				return
			}
			if conflicts != c.conflicts {
				t.Errorf("conflicts: %q, want %q", conflicts, c.conflicts)
			}
			if (err != nil) != (c.conflicts != "") {
				t.Errorf("error: %v", err)
			}
			got := withPatch(t, f, artifacts.SessionPatch(res.SessionID))
			if want := strings.ReplaceAll(c.want, "|", "\n"); got != want {
				t.Errorf("merged:\n%s\nwant:\n%s", got, want)
			}
			checkParts(t, f, res, c)
		})
	}
}

// checkParts holds that each agent's own patch makes exactly what the agent made.
func checkParts(t *testing.T, f *gittest.Fixture, res *artifacts.Result, c mergeCase) {
	t.Helper()
	for n, script := range []string{c.alice, c.bob} {
		dir := copyOrigin(t, f)
		sh(t, f, dir, script)
		want := tree(t, dir)
		patch := artifacts.AgentPatch(res.SessionID, res.Agents[n].Agent)
		if got := withPatch(t, f, patch); got != want {
			t.Errorf("the patch of %s makes\n%s\nwant\n%s", res.Agents[n].Agent, got, want)
		}
	}
}

// withPatch prints the origin with a patch; one that is not there changes
// nothing.
func withPatch(t *testing.T, f *gittest.Fixture, patch string) string {
	t.Helper()
	dir := copyOrigin(t, f)
	file := filepath.Join(f.Dir, ".superqode", "qe-artifacts", patch)
	if _, err := os.Stat(file); err == nil {
		f.GitIn(dir, "apply", "--whitespace=nowarn", file)
	}
	return tree(t, dir)
}

func sh(t *testing.T, f *gittest.Fixture, dir, script string) string {
	t.Helper()
	return strings.TrimSuffix(runShell(t, f, dir, script), "\n")
}

// conflictsOfRun returns the kinds and paths of a run's conflicts, and checks that
// a text's has a file with marks.
func conflictsOfRun(t *testing.T, f *gittest.Fixture, m *Manager, res *artifacts.Result) string {
	t.Helper()
	s, err := m.Attach(t.Context(), f.Dir, res.SessionID.String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	parts, err := s.ReadAgents()
	if err != nil || parts == nil {
		t.Fatalf("what the agents did: %v, %v", parts, err)
	}
	var list []string
	for _, p := range parts.Agents {
		for _, c := range p.Conflicts {
			list = append(list, string(c.Kind)+" "+string(c.Path))
			if c.Kind != merge.ConflictContent || strings.HasPrefix(string(c.Path), "l") {
				continue
			}
			data, err := os.ReadFile(filepath.Join(f.Dir, ".superqode", "qe-artifacts", c.File))
			if err != nil || !strings.Contains(string(data), "<<<<<<< alice") || !strings.Contains(string(data), ">>>>>>> bob") {
				t.Errorf("marks of %s: %q, %v", c.Path, data, err)
			}
			if len(c.Lines) == 0 {
				t.Errorf("the conflict in %s names no lines", c.Path)
			}
		}
	}
	return strings.Join(list, ", ")
}

func runShell(t *testing.T, f *gittest.Fixture, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = dir, f.Env()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return string(out)
}
