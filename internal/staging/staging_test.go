package staging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/artifacts"
)

func TestTestKind(t *testing.T) {
	t.Parallel()
	for rel, tt := range map[string]struct {
		head, language string
		want           artifacts.Type
	}{
		"calc_test.go":                   {"func TestX(t *testing.T)", "go", artifacts.TypeTestUnit},
		"parse_test.go":                  {"func FuzzParse(f *testing.F) {", "go", artifacts.TypeTestFuzz},
		"tests/integration/test_db.py":   {"", "python", artifacts.TypeTestIntegration},
		"test_api_users.py":              {"", "python", artifacts.TypeTestAPI},
		"test_props.py":                  {"from hypothesis import given", "python", artifacts.TypeTestFuzz},
		"locustfile.py":                  {"from locust import HttpUser", "python", artifacts.TypeTestLoad},
		"login.spec.ts":                  {"import { test } from '@playwright/test'", "typescript", artifacts.TypeTestE2E},
		"checkout.cy.js":                 {"", "javascript", artifacts.TypeTestE2E},
		"users.test.js":                  {"const request = require('supertest')", "javascript", artifacts.TypeTestAPI},
		"src/test/java/OrderIT.java":     {"", "java", artifacts.TypeTestIntegration},
		"OrderSecurityTest.java":         {"", "java", artifacts.TypeTestSecurity},
		"tests/cli.rs":                   {"", "rust", artifacts.TypeTestIntegration},
		"fuzz_targets/parse.rs":          {"fuzz_target!(|d|", "rust", artifacts.TypeTestFuzz},
		"spec/model_spec.rb":             {"", "ruby", artifacts.TypeTestUnit},
		"UserTest.php":                   {"", "php", artifacts.TypeTestUnit},
		"OrderTests.cs":                  {"", "csharp", artifacts.TypeTestUnit},
		"regression/issue_12_test.exs":   {"", "elixir", artifacts.TypeTestRegression},
		"pay.feature":                    {"Feature: pay", "gherkin", artifacts.TypeTestE2E},
		"plan.jmx":                       {"", "jmeter", artifacts.TypeTestLoad},
		"pact/consumer.test.ts":          {"", "typescript", artifacts.TypeTestContract},
		"generated-tests/odd/helpers.py": {"", "python", artifacts.TypeTestUnit},
	} {
		language, ok := testFile(rel)
		if kind := testKind(rel, []byte(tt.head)); !ok || language != tt.language || kind != tt.want {
			t.Errorf("%s: %s %s %v, want %s %s", rel, language, kind, ok, tt.language, tt.want)
		}
	}
	for _, rel := range []string{"main.go", "notes.txt", "contest.py", "latest.js", "shot.png", "src/Test.md", "attestation.java"} {
		if language, ok := testFile(rel); ok {
			t.Errorf("%s is a test in %s", rel, language)
		}
	}
	for base, want := range map[string]string{"foo_test.go": "foo.go", "test_bar.py": "bar.py", "a.spec.ts": "a.ts", "OrderTest.java": "Order.java", "main.go": ""} {
		if got := testTarget(base); got != want {
			t.Errorf("%s tests %q, want %q", base, got, want)
		}
	}
}

func TestFixes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, data := range map[string]string{"fixes/f1.patch": "patch", "fixes/no patch.patch": "x", "fixes/readme.txt": "x", "fixes/sub/f2.patch": "x", "fixes/big.patch": strings.Repeat("x", maxFix+1)} {
		mustWrite(t, data, dir, name)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "fixes", "link.patch")); err != nil {
		t.Fatal(err)
	}
	list, problems, err := Fixes(dir)
	if err != nil || len(list) != 1 || list[0].Finding != "f1" || string(list[0].Patch) != "patch" || len(problems) != 2 {
		t.Errorf("%+v %v %v", list, problems, err)
	}
}
