package guard

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func savedState(t testing.TB, change func(st *SessionState)) []byte {
	t.Helper()
	st := &SessionState{
		SchemaVersion: 1, ID: superqode.NewSessionID(time.Unix(1700000000, 0)), WorkTree: true, OpenedAt: time.Unix(1700000000, 5).UTC(),
		Origin: "/o é", Workspace: "/h/ws", GitDirs: []superqode.HostPath{"/o/.git"}, Allow: []string{"commit", "push"}, Deny: []string{},
		Git: RealGit{Bin: "/usr/bin/git", ExecPath: "/usr/lib/git-core", Version: "2.39.5"}, HookEnv: []string{"A='b'='c'"}, Kernel: true,
		Private: &PrivateGit{Dir: "/h/git", Repository: "/o/.git"}, UserConfig: []superqode.HostPath{}, Supervisors: []string{"12-345"},
	}
	change(st)
	data, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPlainSessionState holds that what superqode writes is read plainly, but for
// what only encoding/json knows.
func TestPlainSessionState(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(st *SessionState)
		plain  bool
	}{
		"usual":      {func(*SessionState) {}, true},
		"no private": {func(st *SessionState) { st.Private = nil }, true},
		"off":        {func(st *SessionState) { st.Off, st.Kernel = true, false }, true},
		"not UTF-8":  {func(st *SessionState) { st.HooksPath = "a\xff" }, false},
		"quotes":     {func(st *SessionState) { st.Origin = `a"b\` }, false},
		"ampersand":  {func(st *SessionState) { st.Trees = []superqode.HostPath{"a&b"} }, false},
	} {
		data := savedState(t, tt.change)
		if got := plainSessionState(data) != nil; got != tt.plain {
			t.Errorf("%s: read plainly %v, want %v", name, got, tt.plain)
		}
		holdPlain(t, data)
	}
}

// holdPlain: the plain way gives what encoding/json gives, or nothing.
func holdPlain(t *testing.T, data []byte) {
	t.Helper()
	got := plainSessionState(data)
	if got == nil {
		return
	}
	var want SessionState
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("read plainly, though encoding/json refuses it (%v): %q", err, data)
	}
	if !reflect.DeepEqual(&want, got) {
		t.Errorf("%q\nencoding/json: %+v\nplainly:       %+v", data, want, got)
	}
}

func FuzzPlainSessionState(f *testing.F) {
	f.Add(savedState(f, func(*SessionState) {}))
	f.Add([]byte(`{"schema_version":01,"allow":null,"deny":["a",]}`))
	f.Add([]byte(`{"private":{"dir":"x"},"git":{},"kernel":true}`))
	f.Fuzz(func(t *testing.T, data []byte) { holdPlain(t, data) })
}
