package superqode_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func relPath(t *testing.T, s string) superqode.RelPath {
	t.Helper()
	p, err := superqode.ParseRelPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestChangeJSON(t *testing.T) {
	t.Parallel()
	agent, err := superqode.ParseAgentID("claude")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change superqode.Change
		want   string
	}{
		{
			"modified",
			superqode.Change{Path: relPath(t, "a.go"), Type: superqode.ChangeModified, LinesAdded: 3, LinesRemoved: 1, OldMode: 0o100644, NewMode: 0o100755,
				Agent: agent, FirstSeen: time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)},
			`{"path":"a.go","type":"modified","old_path":"","lines_added":3,"lines_removed":1,"agent_id":"claude","old_mode":"100644","new_mode":"100755","binary":false,"first_seen":"2024-01-02T03:04:05.000000006Z"}`,
		},
		{
			"renamed, not UTF-8",
			superqode.Change{Path: relPath(t, "\xff"), OldPath: relPath(t, "caf\xe9"), Type: superqode.ChangeRenamed, Binary: true},
			"{\"path\":\"\ufffd\",\"path_bytes\":\"/w==\",\"type\":\"renamed\",\"old_path\":\"caf\ufffd\",\"old_path_bytes\":\"Y2Fm6Q==\",\"lines_added\":0,\"lines_removed\":0,\"agent_id\":\"\",\"old_mode\":\"\",\"new_mode\":\"\",\"binary\":true,\"first_seen\":\"\"}",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(tt.change)
			if err != nil || string(b) != tt.want {
				t.Errorf("marshalled to\n%s, %v, want\n%s", b, err, tt.want)
			}
			var got superqode.Change
			if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, tt.change) {
				t.Errorf("came back as %+v, %v", got, err)
			}
		})
	}
}

func TestChangeJSONRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"path":"../x","type":"created"}`,
		`{"path":"x","type":"mangled"}`,
		`{"path":"x","path_bytes":"Lw=="}`,
		`{"path":"x","path_bytes":"!"}`,
		`{"path":"x","old_mode":"9"}`,
		`{"path":"x","agent_id":"a b"}`,
		`{"path":"x","first_seen":"yesterday"}`,
		`[]`,
	} {
		if err := json.Unmarshal([]byte(bad), new(superqode.Change)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestUnsetLinesPrintAsZero(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(superqode.Change{Path: relPath(t, "a"), Type: superqode.ChangeCreated, LinesAdded: -1, LinesRemoved: -1})
	if err != nil {
		t.Fatal(err)
	}
	var got superqode.Change
	if err := json.Unmarshal(b, &got); err != nil || got.LinesAdded != 0 || got.LinesRemoved != 0 {
		t.Errorf("%s: %v", b, err)
	}
}

func TestModeAndState(t *testing.T) {
	t.Parallel()
	for _, m := range superqode.Modes() {
		if got, err := superqode.ParseMode(string(m)); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %q, %v", m, got, err)
		}
	}
	for _, bad := range []string{"", "Worktree", "worktree ", "git-snapshot"} {
		if _, err := superqode.ParseMode(bad); err == nil {
			t.Errorf("mode %q was accepted", bad)
		}
	}
	ended := map[superqode.State]bool{superqode.StateDone: true, superqode.StatePreserved: true}
	for _, s := range []superqode.State{superqode.StateCreated, superqode.StateActive, superqode.StateCollecting, superqode.StateReverting, superqode.StateDone, superqode.StatePreserved} {
		var got superqode.State
		if err := got.UnmarshalText([]byte(s)); err != nil || got != s || s.Ended() != ended[s] {
			t.Errorf("state %q: %q, %v, ended %v", s, got, err, s.Ended())
		}
	}
	if err := new(superqode.State).UnmarshalText([]byte("finished")); err == nil {
		t.Error("state finished was accepted")
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	base := superqode.Errorf(superqode.ErrNotFound, "no session %q", "x")
	err := fmt.Errorf("open: %w", superqode.WithHint(base, "superqode workspace list --repo %s", "d"))
	if err.Error() != `open: no session "x"` {
		t.Errorf("text is %q", err)
	}
	if !errors.Is(err, superqode.ErrNotFound) || errors.Is(err, superqode.ErrDenied) {
		t.Error("kind is lost")
	}
	if got := superqode.Hint(err); got != "superqode workspace list --repo d" {
		t.Errorf("hint is %q", got)
	}
	if got := superqode.Hint(superqode.WithHint(err, "outer")); got != "outer" {
		t.Errorf("outermost hint is %q", got)
	}
	if superqode.Hint(nil) != "" || superqode.Hint(fs.ErrExist) != "" {
		t.Error("a hint out of nothing")
	}
	if !errors.Is(superqode.WithHint(fs.ErrPermission, "sudo"), fs.ErrPermission) {
		t.Error("the cause is lost behind the hint")
	}
}

// FuzzChangeJSON holds that a path of any bytes comes back as it was.
func FuzzChangeJSON(f *testing.F) {
	for _, s := range []string{"a", "\xff", "a/\xfe", "\ufffd", "<&>\u2028", "new\nline", `"`} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, path, old string) {
		p, err := superqode.ParseRelPath(path)
		if err != nil {
			return
		}
		o, err := superqode.ParseRelPath(old)
		if err != nil {
			return
		}
		want := superqode.Change{Path: p, OldPath: o, Type: superqode.ChangeRenamed}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got superqode.Change
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v came back as %+v, %v", want, got, err)
		}
	})
}
