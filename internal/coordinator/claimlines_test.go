package coordinator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func numbered(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("line %d\n", i+1))
	}
	return out
}

func TestLineMap(t *testing.T) {
	t.Parallel()
	base := numbered(30)
	now := slices.Clone(base)
	now = slices.Insert(now, 4, "new a\n", "new b\n") // before line 5
	now = slices.Delete(now, 11, 13)                  // lines 10 and 11
	now[19] = "changed\n"                             // line 20
	m := NewLineMap([]byte(strings.Join(base, "")), []byte(strings.Join(now, "")))
	for _, tt := range []struct{ now, base Lines }{
		{Lines{1, 4}, Lines{1, 4}}, {Lines{5, 6}, Lines{5, 4}}, {Lines{5, 5}, Lines{5, 4}}, {Lines{4, 7}, Lines{4, 5}}, {Lines{7, 11}, Lines{5, 9}},
		{Lines{11, 12}, Lines{9, 12}}, {Lines{12, 11}, Lines{12, 11}}, {Lines{20, 20}, Lines{20, 20}}, {Lines{30, 30}, Lines{30, 30}}, {Lines{31, 30}, Lines{31, 30}},
		{Lines{}, Lines{}}, {Lines{7, 6}, Lines{5, 4}}, {Lines{6, 5}, Lines{5, 4}},
	} {
		if got := m.ToBase(tt.now); got != tt.base {
			t.Errorf("%v now is %v in base, want %v", tt.now, got, tt.base)
		}
	}
	if got := fmt.Sprint(m.Changed()); got != "[{5 4} {10 11} {20 20}]" {
		t.Error(got)
	}
}

// FuzzLineMap holds that unchanged lines map to the lines with the same text.
func FuzzLineMap(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed, uint8(60), uint8(20))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, edits uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var base []string
		for range n {
			base = append(base, fmt.Sprintf("%d\n", r.IntN(40)))
		}
		now := slices.Clone(base)
		for range edits {
			at := r.IntN(len(now) + 1)
			switch {
			case r.IntN(2) == 0:
				now = slices.Insert(now, at, fmt.Sprintf("%d\n", r.IntN(60)))
			case at < len(now):
				now = slices.Delete(now, at, at+1)
			}
		}
		m := NewLineMap([]byte(strings.Join(base, "")), []byte(strings.Join(now, "")))
		same := 0
		for i := range now {
			b := m.ToBase(Lines{i + 1, i + 1})
			if b.Start < 1 || b.End > len(base) {
				t.Fatalf("line %d now is %v of %d", i+1, b, len(base))
			}
			if b.Start == b.End && now[i] == base[b.Start-1] {
				same++
			}
		}
		changed := 0
		for _, c := range m.changes {
			changed += c.nowN
		}
		if same < len(now)-changed {
			t.Fatalf("%d lines are the same, %d of %d changed", same, changed, len(now))
		}
	})
}

func TestToolEdits(t *testing.T) {
	t.Parallel()
	file := strings.Join(numbered(20), "")
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	patch := "*** Begin Patch\n*** Update File: f\n@@\n line 4\n-line 5\n+line five\n line 6\n@@ line 10\n line 11\n+more\n*** End Patch\n"
	for _, tt := range []struct{ name, payload, want string }{
		{"edit", `{"tool_input":{"file_path":"f","old_string":"line 5\nline 6\n","new_string":"x\n"}}`, "[{5 6}]"},
		{"insertion", `{"tool_input":{"file_path":"f","old_string":"line 5\n","new_string":"line 5\nmore\n"}}`, "[{6 5}]"},
		{"not there", `{"tool_input":{"file_path":"f","old_string":"nowhere","new_string":"x"}}`, "[{0 0}]"},
		{"twice there", `{"tool_input":{"file_path":"f","old_string":"line","new_string":"x"}}`, "[{0 0}]"},
		{"all", `{"tool_input":{"file_path":"f","old_string":"line 1","new_string":"x","replace_all":true}}`, "[{1 1} {10 19}]"},
		{"multi", `{"tool_input":{"file_path":"f","edits":[{"old_string":"line 3\n","new_string":"a\n"},{"old_string":"a\nline 4\n","new_string":"b\n"},{"old_string":"line 9","new_string":"c"}]}}`, "[{3 4} {9 9}]"},
		{"write", `{"tool_input":{"file_path":"f","content":` + quote(strings.Replace(file, "line 7\n", "seven\n", 1)) + `}}`, "[{7 7}]"},
		{"write the same", `{"tool_input":{"file_path":"f","content":` + quote(file) + `}}`, "[]"},
		{"str_replace", `{"toolArgs":"{\"path\":\"f\",\"old_str\":\"line 8\\n\",\"new_str\":\"\"}"}`, "[{8 8}]"},
		{"insert", `{"tool_input":{"path":"f","command":"insert","insert_line":3,"new_str":"x"}}`, "[{4 3}]"},
		{"notebook", `{"tool_input":{"notebook_path":"f","new_source":"x"}}`, "[{0 0}]"},
		{"apply_patch", `{"tool_input":{"command":` + quote(patch) + `}}`, "[{5 5} {12 11}]"},
		{"apply_patch as a list", `{"tool_input":{"command":["apply_patch",` + quote(patch) + `]}}`, "[{5 5} {12 11}]"},
		{"apply_patch as text", `{"toolArgs":` + quote(patch) + `}`, "[{5 5} {12 11}]"},
		{"moved", `{"tool_input":{"input":` + quote("*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-line 5\n*** End Patch") + `}}`, "[{0 0}]"},
		{"garbage", `[`, "[{0 0}]"},
	} {
		edits := ToolEdits([]byte(tt.payload), []string{"f"})
		if len(edits) != 1 || edits[0].Path != "f" {
			t.Errorf("%s: %+v", tt.name, edits)
			continue
		}
		if got := fmt.Sprint(edits[0].Lines([]byte(file))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	b := &book{}
	for _, c := range []string{"alice a:10-20", "alice a:21-30", "bob a:50-60", "bob d/", "alice *.md"} {
		play(t, b, c, c)
	}
	for _, tt := range []struct {
		edit               Edit
		advisory, enforced bool // allowed to alice
	}{
		{Edit{"a", Lines{12, 14}}, true, true},
		{Edit{"a", Lines{15, 25}}, true, true},
		{Edit{"a", Lines{31, 30}}, true, true},
		{Edit{"a", Lines{25, 35}}, true, false},
		{Edit{"a", Lines{40, 45}}, true, false},
		{Edit{"a", Lines{45, 50}}, false, false},
		{Edit{"a", Lines{50, 49}}, true, false},
		{Edit{"a", Lines{51, 50}}, false, false},
		{Edit{"a", Lines{}}, false, false},
		{Edit{"d/x", Lines{1, 1}}, false, false},
		{Edit{"x.md", Lines{}}, true, true},
		{Edit{"other", Lines{}}, true, false},
	} {
		v := Check(b.Leases, owner("alice"), []Edit{tt.edit})
		if v.Denied(Advisory) == tt.advisory || v.Denied(Enforced) == tt.enforced {
			t.Errorf("%s: %+v", tt.edit, v)
		}
		if v.Denied(Enforced) && v.Reason(Enforced) == "" {
			t.Errorf("%s: denied for no reason", tt.edit)
		}
	}
}
