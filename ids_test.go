package superqode_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func TestParseSessionID(t *testing.T) {
	t.Parallel()
	valid := "qe-20240102-030405-abcd27"
	for _, tt := range []struct {
		in string
		ok bool
	}{
		{valid, true},
		{"", false},
		{valid + "\n", false},
		{" " + valid, false},
		{strings.ToUpper(valid), false},
		{"qe-20240102-030405-abcd21", false}, // 1 is not base32
		{"qe-20240102-030405-abcd2", false},
		{"qe-2024010-0304055-abcd27", false},
		{"../" + valid, false},
	} {
		id, err := superqode.ParseSessionID(tt.in)
		if (err == nil) != tt.ok {
			t.Errorf("ParseSessionID(%q): %v", tt.in, err)
		}
		if tt.ok && id.String() != tt.in || !tt.ok && !id.IsZero() {
			t.Errorf("ParseSessionID(%q) = %q", tt.in, id)
		}
	}
}

func TestNewSessionID(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 3600)
	now := time.Date(2024, 1, 2, 0, 30, 0, 0, zone)
	seen := map[string]bool{}
	for range 1000 {
		id := superqode.NewSessionID(now)
		if _, err := superqode.ParseSessionID(id.String()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(id.String(), "qe-20240101-233000-") {
			t.Fatalf("%s is not in UTC", id)
		}
		seen[id.String()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 ids differ", len(seen))
	}
}

func TestParseAgentID(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		"claude": true, "a": true, "A.b_c-1": true, strings.Repeat("x", 64): true,
		"": false, "-a": false, ".a": false, "a b": false, "a/b": false, "a\n": false, "é": false, strings.Repeat("x", 65): false,
	} {
		if id, err := superqode.ParseAgentID(in); (err == nil) != ok || ok && id.String() != in {
			t.Errorf("ParseAgentID(%q) = %q, %v", in, id, err)
		}
	}
}

func TestParseRelPath(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		"a": true, "a/b": true, "..a": true, "a..": true, "...": true, "-x": true, " ": true, "a\nb": true, "\xff": true, "a\\..\\b": true, ".git": true,
		"": false, ".": false, "..": false, "../a": false, "a/..": false, "a/../b": false, "./a": false, "/": false, "/a": false,
		"a/": false, "a//b": false, "a/./b": false, "a\x00b": false,
	} {
		if p, err := superqode.ParseRelPath(in); (err == nil) != ok || ok && p.String() != in || !ok && !p.IsZero() {
			t.Errorf("ParseRelPath(%q) = %q, %v", in, p, err)
		}
	}
}

func TestParseDigest(t *testing.T) {
	t.Parallel()
	valid := "sha256:" + strings.Repeat("0a", 32)
	for in, ok := range map[string]bool{
		valid: true, "sha256:" + strings.Repeat("0", 64): true,
		"": false, "sha256:": false, strings.Repeat("0a", 32): false, "sha1:" + strings.Repeat("0a", 32): false,
		valid + "0": false, valid[:70]: false, strings.Replace(valid, "a", "A", 1): false, strings.Replace(valid, "a", "g", 1): false,
	} {
		d, err := superqode.ParseDigest(in)
		if (err == nil) != ok || d.IsZero() == ok || ok && d.String() != in {
			t.Errorf("ParseDigest(%q) = %q, %v", in, d, err)
		}
	}
	if superqode.NewDigest([32]byte{}).IsZero() {
		t.Error("a digest of zeros counts as unset")
	}
}

// TestTextRoundTrip holds that each word survives JSON and that its zero value
// is the empty text.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	type words struct {
		S superqode.SessionID
		A superqode.AgentID
		D superqode.Digest
	}
	agent, err := superqode.ParseAgentID("codex")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []words{{}, {superqode.NewSessionID(time.Unix(0, 0)), agent, superqode.NewDigest([32]byte{1})}} {
		b, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		var got words
		if err := json.Unmarshal(b, &got); err != nil || got != w {
			t.Errorf("%s came back as %+v, %v", b, got, err)
		}
	}
	for _, bad := range []string{`{"S":"x"}`, `{"A":"a b"}`, `{"D":"sha256:1"}`} {
		if err := json.Unmarshal([]byte(bad), new(words)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// FuzzParseRelPath holds that an accepted path is kept byte for byte and stays
// below any root it is joined to.
func FuzzParseRelPath(f *testing.F) {
	for _, s := range []string{"a", "a/b", "../a", "a/../../b", "/a", "..", "a\x00", "\xff/\xfe", "a//b", "..."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := superqode.ParseRelPath(s)
		if err != nil {
			return
		}
		if p.String() != s {
			t.Errorf("%q became %q", s, p)
		}
		if joined := path.Join("/root", s); joined != "/root/"+s {
			t.Errorf("%q leads to %q", s, joined)
		}
	})
}

// FuzzParseIDs holds that every parser prints what it accepted and nothing else.
func FuzzParseIDs(f *testing.F) {
	for _, s := range []string{"qe-20240102-030405-abcd27", "claude", "sha256:" + strings.Repeat("0", 64), "worktree", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := superqode.ParseSessionID(s); err == nil && v.String() != s {
			t.Errorf("session id %q became %q", s, v)
		}
		if v, err := superqode.ParseAgentID(s); err == nil && v.String() != s {
			t.Errorf("agent %q became %q", s, v)
		}
		if v, err := superqode.ParseDigest(s); err == nil && v.String() != s {
			t.Errorf("digest %q became %q", s, v)
		}
		if v, err := superqode.ParseMode(s); err == nil && string(v) != s {
			t.Errorf("mode %q became %q", s, v)
		}
	})
}

// A path's parts, and its one form in JSON.
func TestRelPath(t *testing.T) {
	for _, c := range []struct {
		path, parent superqode.RelPath
		name, json   string
	}{
		{"a", "", "a", `"a"`},
		{"a/b/c", "a/b", "c", `"a/b/c"`},
		{"d/\xff", "d", "\xff", `{"bytes":"ZC//"}`},
	} {
		if c.path.Parent() != c.parent || c.path.Name() != c.name || c.parent.Join(c.name) != c.path {
			t.Errorf("%q is %q in %q", c.path, c.path.Name(), c.path.Parent())
		}
		if in := c.path.In("/w"); in != "/w/"+string(string(c.path)) {
			t.Errorf("%q in /w is %q", c.path, in)
		}
		b, err := json.Marshal(c.path)
		var back superqode.RelPath
		if err != nil || string(b) != c.json || json.Unmarshal(b, &back) != nil || back != c.path {
			t.Errorf("%q is %s, %v, and then %q", c.path, b, err, back)
		}
	}
	for _, in := range []string{`"../x"`, `"/etc/passwd"`, `"a/../../b"`, `"a\u0000"`, `{"bytes":"Li4veA=="}`} {
		var p superqode.RelPath
		if err := json.Unmarshal([]byte(in), &p); err == nil {
			t.Errorf("%s is read as %q", in, p)
		}
	}
}
