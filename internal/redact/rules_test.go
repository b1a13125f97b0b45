package redact

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

var update = flag.Bool("update", false, "write rules.txt anew from gitleaks.toml")

// leftOut are the rules of gitleaks that are not used; doc.go has the reasons.
func leftOut() []string { return []string{"generic-api-key", "kubernetes-secret-yaml", "private-key"} }

// behind is what gitleaks demands after most tokens.
const behind = `(?:[\x60'"\s;]|\\[nr]|$)`

// near begins the rules that look for a product's name beside a value: only those
// need a look at how random the value is. It matches what stands before the name
// and is not needed to find the value, but costs most of the time.
const near = `[\w.-]{0,50}?`

// begins reports whether an expression's matches begin with the rule's keywords:
// then it need not be tried anywhere else.
func begins(expr string, keywords []string) bool {
	expr = strings.TrimPrefix(strings.TrimPrefix(expr, "(?i)"), "(?i:")
	if !strings.HasPrefix(expr, "(?:") {
		return false
	}
	depth, end := 0, 0
	for i, c := range expr {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			end = i + 1
			break
		}
	}
	first, err := regexp.Compile("^(?i:" + expr[:end] + ")")
	return err == nil && !slices.ContainsFunc(keywords, func(k string) bool { return !first.MatchString(k) })
}

// TestRules holds that rules.txt is what gitleaks.toml says, and that every rule
// compiles.
func TestRules(t *testing.T) {
	var doc struct {
		Rules []struct {
			ID       string
			Regex    string
			Path     string
			Entropy  float64
			Keywords []string
		}
	}
	if _, err := toml.DecodeFile("gitleaks/gitleaks.toml", &doc); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range doc.Rules {
		if slices.Contains(leftOut(), r.ID) || r.Regex == "" || r.Path != "" || len(r.Keywords) == 0 {
			continue
		}
		if r.ID == "jwt" {
			r.Keywords = []string{"eyj"} // {" in base64; "ey" is in every third line of English
		}
		if !strings.Contains(r.Regex, near) {
			r.Entropy = 0
		}
		where := "around"
		expr := strings.ReplaceAll(strings.ReplaceAll(r.Regex, behind, ""), near, "")
		if expr != strings.ReplaceAll(r.Regex, behind, "") && begins(expr, r.Keywords) {
			where = "at"
		}
		fmt.Fprintf(&b, "%s\t%g\t%s\t%s\t%s\n", r.ID, r.Entropy, where, strings.Join(r.Keywords, " "), expr)
	}
	if *update {
		if err := os.WriteFile("rules.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != rulesText {
		t.Fatal("rules.txt is stale: go test ./internal/redact -run TestRules -update")
	}
	for _, r := range parseRules() {
		if _, err := regexp.Compile(r.expr); err != nil {
			t.Errorf("%s: %v", r.id, err)
		}
		for _, k := range r.keywords {
			if k != strings.ToLower(k) || k == "" {
				t.Errorf("%s: keyword %q is not lower case", r.id, k)
			}
		}
	}
}
