package artifacts

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParseFinding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in, field string // field: of the expected error, "" for none
		check     func(Finding) bool
	}{
		{`{"severity":"high","title":"t"}`, "", func(f Finding) bool { return f.Priority == 1 && f.Confidence == nil && f.Lines == nil }},
		{`{"severity":"CRITICAL","title":"t"}`, "", func(f Finding) bool { return f.Severity == SeverityCritical && f.Priority == 0 }},
		{`{"severity":"medium","title":"t"}`, "", func(f Finding) bool { return f.Priority == 2 }},
		{`{"severity":"low","title":"t"}`, "", func(f Finding) bool { return f.Priority == 3 }},
		{`{"severity":"info","title":"t","priority":0}`, "", func(f Finding) bool { return f.Priority == 0 }},
		{`{"severity":"info","title":"t","priority":null,"tags":null,"line_range":null}`, "", func(f Finding) bool { return f.Priority == 3 }},
		{`{"severity":"low","title":"t","location":"a/b.go:3-5"}`, "", func(f Finding) bool { return f.File == "a/b.go" && *f.Lines == LineRange{3, 5} }},
		{`{"severity":"low","title":"t","location":"a:b:7"}`, "", func(f Finding) bool { return f.File == "a:b" && *f.Lines == LineRange{7, 7} }},
		{`{"severity":"low","title":"t","location":"C"}`, "", func(f Finding) bool { return f.File == "C" && f.Lines == nil }},
		{`{"severity":"low","title":"t","file_path":"x","location":"y:1"}`, "", func(f Finding) bool { return f.Location() == "x" }},
		{`{"severity":"low","title":"t","file_path":"x","line_range":{"start":4}}`, "", func(f Finding) bool { return f.Location() == "x:4-4" }},
		{`{"severity":"low","title":"t","cwe":"79","Zebra":1}`, "", func(f Finding) bool { return reflect.DeepEqual(f.Ignored, []string{"Zebra", "cwe"}) }},
		{`{"title":"t"}`, "severity", nil},
		{`{"severity":"bad","title":"t"}`, "severity", nil},
		{`{"severity":3,"title":"t"}`, "severity", nil},
		{`{"severity":"low"}`, "title", nil},
		{`{"severity":"low","title":" \n"}`, "title", nil},
		{`{"severity":"low","title":["t"]}`, "title", nil},
		{`{"severity":"low","title":"t","priority":4}`, "priority", nil},
		{`{"severity":"low","title":"t","priority":-1}`, "priority", nil},
		{`{"severity":"low","title":"t","priority":"P1"}`, "priority", nil},
		{`{"severity":"low","title":"t","priority":1.5}`, "priority", nil},
		{`{"severity":"low","title":"t","confidence_score":1.01}`, "confidence_score", nil},
		{`{"severity":"low","title":"t","confidence_score":-0.1}`, "confidence_score", nil},
		{`{"severity":"low","title":"t","confidence_score":"sure"}`, "confidence_score", nil},
		{`{"severity":"low","title":"t","id":"../x"}`, "id", nil},
		{`{"severity":"low","title":"t","file_path":"/etc/passwd"}`, "file_path", nil},
		{`{"severity":"low","title":"t","file_path":"../x"}`, "file_path", nil},
		{`{"severity":"low","title":"t","file_path_bytes":"*"}`, "file_path_bytes", nil},
		{`{"severity":"low","title":"t","line_range":{"start":1}}`, "line_range", nil},
		{`{"severity":"low","title":"t","file_path":"x","line_range":{"start":0}}`, "line_range", nil},
		{`{"severity":"low","title":"t","file_path":"x","line_range":{"start":5,"end":4}}`, "line_range", nil},
		{`{"severity":"low","title":"t","file_path":"x","line_range":{"end":4}}`, "line_range", nil},
		{`{"severity":"low","title":"t","file_path":"x","line_range":[1,2]}`, "line_range", nil},
		{`{"severity":"low","title":"t","tags":"a,b"}`, "tags", nil},
		{`{"severity":"low","title":"t","evidence":"` + strings.Repeat("x", maxText+1) + `"}`, "evidence", nil},
	} {
		f, err := ParseFinding([]byte(tt.in))
		if tt.field != "" {
			if fe, ok := errors.AsType[*FieldError](err); !ok || fe.Field != tt.field || !strings.HasPrefix(err.Error(), tt.field+": ") {
				t.Errorf("ParseFinding(%.100s) = %v, want an error about %s", tt.in, err, tt.field)
			}
			continue
		}
		if err != nil || !tt.check(f) {
			t.Errorf("ParseFinding(%.100s) = %+v, %v", tt.in, f, err)
		}
	}
	for _, in := range []string{"", "null", "[]", "7", `{"severity":`} {
		if _, err := ParseFinding([]byte(in)); err == nil {
			t.Errorf("ParseFinding(%q) succeeded", in)
		}
	}
}

// FuzzFinding states the law: no panic, and what was accepted is valid and comes
// back the same from its own JSON.
func FuzzFinding(f *testing.F) {
	f.Add([]byte(`{"id":"f-1","severity":"HIGH","priority":0,"confidence_score":0.5,"category":"c","title":"t","description":"d","file_path":"a b","line_range":{"start":1,"end":2},"evidence":"e","suggested_fix":"x","patch_id":"p","found_by":"me","tags":["a"],"x":1}`))
	f.Add([]byte(`{"severity":"low","title":"\u0000","location":"a\n:1-2"}`))
	f.Add([]byte(`{"severity":"low","title":"t","file_path_bytes":"/w=="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseFinding(data)
		if err != nil {
			return
		}
		if err := a.Validate(); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		out, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseFinding(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(b.Ignored) > 0 {
			t.Fatalf("own fields are not known: %v", b.Ignored)
		}
		a.Ignored, a.Tags = nil, notNull(a.Tags)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v became %+v", a, b)
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := Finding{Severity: SeverityLow, Title: "Variable x1 unused at 0x7f", Category: "lint", File: "a.go", Lines: &LineRange{1, 2}}
	same := []func(*Finding){
		func(f *Finding) { f.Lines = &LineRange{90, 91} }, func(f *Finding) { f.Severity = SeverityHigh }, func(f *Finding) { f.Title = "variable  x22 unused at 0x9f" },
		func(f *Finding) { f.Description, f.ID = "more", "other" },
	}
	for i, change := range same {
		f := base
		if change(&f); f.Fingerprint() != base.Fingerprint() {
			t.Errorf("change %d makes another finding of it", i)
		}
	}
	for i, change := range []func(*Finding){
		func(f *Finding) { f.File = "b.go" }, func(f *Finding) { f.Title = "Variable y unused" }, func(f *Finding) { f.Category = "bug" }, func(f *Finding) { f.RuleID = "R" },
	} {
		f := base
		if change(&f); f.Fingerprint() == base.Fingerprint() || !IsFingerprint(f.Fingerprint()) {
			t.Errorf("change %d is not seen: %s", i, f.Fingerprint())
		}
	}
}
