package artifacts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

// childEnv makes the test binary do one thing and exit instead of testing: real
// processes for what processes do to one another.
const childEnv = "SUPERQODE_ARTIFACTS_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childEnv); task != "" {
		if err := child(strings.Split(task, "\t")); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(args []string) error {
	s, err := Open(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	switch args[0] {
	case "add": // origin, name, count
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		for i := range n {
			name := args[2] + "-" + strconv.Itoa(i)
			if _, err := s.Add(ctx, New{Type: TypeTrace, Name: name, Data: []byte(name)}); err != nil {
				return err
			}
		}
	case "replace": // origin, session, content
		id, err := superqode.ParseSessionID(args[2])
		if err != nil {
			return err
		}
		_, err = s.AddAll(ctx, []New{
			{Type: TypeLog, Path: SessionLog(id, "command"), Session: id, Data: []byte(args[3])},
			{Type: TypeTrace, Name: "extra", Session: id, Data: []byte(args[3])},
		})
		return err
	case "remove": // origin, session
		id, err := superqode.ParseSessionID(args[2])
		if err != nil {
			return err
		}
		_, _, err = s.Remove(ctx, id)
		return err
	case "readonly":
		return readOnlyChild(ctx, s)
	}
	return nil
}

func childCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(args, "\t"))
	return cmd
}

// sessionAt returns a session id that is the same in every run of a test.
func sessionAt(t testing.TB, n int) superqode.SessionID {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour)
	id, err := superqode.ParseSessionID("qe-" + at.Format("20060102-150405") + "-abcde" + string(rune('a'+n%26)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func openStore(t testing.TB) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustAdd(t testing.TB, s *Store, n New) Artifact {
	t.Helper()
	a, err := s.Add(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustVerify(t testing.TB, s *Store) Check {
	t.Helper()
	c, err := s.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantOK(t testing.TB, s *Store, checked int) {
	t.Helper()
	if c := mustVerify(t, s); !c.OK() || c.Checked != checked {
		t.Errorf("Verify = %+v, want %d good entries and nothing else", c, checked)
	}
	if temps := leftovers(t, s); len(temps) > 0 {
		t.Errorf("temporary files stayed: %v", temps)
	}
}

func leftovers(t testing.TB, s *Store) (list []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.origin, dotName), func(p string, d os.DirEntry, err error) error {
		if err == nil && isTemp(d.Name()) {
			list = append(list, p)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return list
}

func mustRead(t testing.TB, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustWrite(t testing.TB, content string, elem ...string) {
	t.Helper()
	name := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
