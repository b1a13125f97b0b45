package staging

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode/artifacts"
)

// Generated tests are sorted by what they are: the language by the file's name,
// the kind by the folders and words in its path, else by what its first lines use,
// else it is a unit test. Only what a program did not sort itself is sorted.

// testLanguage tells the test files of one language by their base names.
type testLanguage struct {
	name  string
	files string // a regular expression over the base name
}

var testLanguages = sync.OnceValue(func() []struct {
	name  string
	files *regexp.Regexp
} {
	table := []testLanguage{
		{"go", `_test\.go$`},
		{"python", `^(test_.*|.*_tests?)\.py$|^locustfile\.py$`},
		{"typescript", `\.(test|spec|e2e|cy)\.[cm]?tsx?$`},
		{"javascript", `\.(test|spec|e2e|cy|k6)\.[cm]?jsx?$`},
		{"java", `(Test|Tests|TestCase|IT)\.java$|^Test[A-Z].*\.java$`},
		{"kotlin", `(Test|Tests|Spec|IT)\.kts?$`},
		{"scala", `(Test|Spec|Suite|Simulation)\.scala$`},
		{"rust", `(_test|_tests|^test_.*|^tests?)\.rs$`},
		{"ruby", `(_spec|_test)\.rb$|^test_.*\.rb$`},
		{"php", `(Test|Cest|Cept)\.php$|^test-.*\.php$|\.phpt$`},
		{"csharp", `(Test|Tests|Spec|Specs)\.cs$`},
		{"swift", `(Test|Tests)\.swift$`},
		{"c", `(_test|_tests|^test_.*)\.c$`},
		{"cpp", `(_test|_tests|Test|Tests|^test_.*|_fuzzer)\.(cc|cpp|cxx)$`},
		{"elixir", `_test\.exs$`},
		{"dart", `_test\.dart$`},
		{"lua", `_spec\.lua$`},
		{"perl", `\.t$`},
		{"shell", `\.bats$|^test[_-].*\.sh$|_test\.sh$`},
		{"gherkin", `\.feature$`},
		{"jmeter", `\.jmx$`},
	}
	out := make([]struct {
		name  string
		files *regexp.Regexp
	}, len(table))
	for i, l := range table {
		out[i].name, out[i].files = l.name, regexp.MustCompile(l.files)
	}
	return out
})

// sourceLanguage maps extensions to languages, for files in folders of tests
// whose own names do not say that they are tests.
func sourceLanguage(ext string) string {
	return map[string]string{
		".go": "go", ".py": "python", ".ts": "typescript", ".tsx": "typescript", ".js": "javascript",
		".jsx": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".java": "java", ".kt": "kotlin",
		".scala": "scala", ".rs": "rust", ".rb": "ruby", ".php": "php", ".cs": "csharp", ".swift": "swift",
		".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".ex": "elixir", ".exs": "elixir",
		".dart": "dart", ".lua": "lua", ".pl": "perl", ".sh": "shell",
	}[strings.ToLower(ext)]
}

// testFile returns the language of a test file, told by its path below the
// artifact folder.
func testFile(rel string) (language string, ok bool) {
	base := path.Base(rel)
	for _, l := range testLanguages() {
		if l.files.MatchString(base) {
			return l.name, true
		}
	}
	language = sourceLanguage(path.Ext(base))
	folders := strings.Split(strings.ToLower(path.Dir(rel)), "/")
	inTests := slices.ContainsFunc(folders, func(f string) bool {
		return f == "tests" || f == "test" || f == "__tests__" || f == "spec" || f == "fuzz_targets" || f == folderTests
	})
	return language, inTests && language != ""
}

// kindWords maps words of a path to kinds.
func kindWords() map[string]artifacts.Type {
	kinds := map[string]artifacts.Type{}
	for kind, words := range map[artifacts.Type]string{
		artifacts.TypeTestUnit:        "unit",
		artifacts.TypeTestIntegration: "integration it",
		artifacts.TypeTestAPI:         "api rest",
		artifacts.TypeTestContract:    "contract contracts pact",
		artifacts.TypeTestFuzz:        "fuzz fuzzing fuzzer",
		artifacts.TypeTestLoad:        "load perf performance stress k6 locustfile simulation",
		artifacts.TypeTestRegression:  "regression regressions",
		artifacts.TypeTestE2E:         "e2e cy cypress playwright acceptance browser",
		artifacts.TypeTestSecurity:    "security sec pentest exploit",
	} {
		for word := range strings.FieldsSeq(words) {
			kinds[word] = kind
		}
	}
	return kinds
}

// kindSigns are what the beginnings of test files of a kind use; the first that is
// found counts.
var kindSigns = sync.OnceValue(func() []struct {
	kind artifacts.Type
	sign *regexp.Regexp
} {
	type row = struct {
		kind artifacts.Type
		sign *regexp.Regexp
	}
	compile := regexp.MustCompile
	return []row{
		{artifacts.TypeTestFuzz, compile(`\bfunc Fuzz\w*\(\w+ \*testing\.F\)|LLVMFuzzerTestOneInput|fuzz_target!|\bfrom hypothesis\b|\bimport atheris\b|fast-check|@FuzzTest|proptest!|jqwik`)},
		{artifacts.TypeTestLoad, compile(`\bfrom locust\b|from ['"]k6|io\.gatling|<jmeterTestPlan|autocannon`)},
		{artifacts.TypeTestContract, compile(`(?i)\bpact(-?go|-python|foundation|flow|js)?[/."']|@pact-foundation|spring\.cloud\.contract|\bau\.com\.dius\.pact`)},
		{artifacts.TypeTestE2E, compile(`(?i)@playwright/|\bplaywright\b|\bcypress\b|\bcy\.visit\(|selenium|puppeteer|webdriver|capybara|chromedp|testcafe`)},
		{artifacts.TypeTestAPI, compile(`(?i)\bsupertest\b|rest-?assured|\bimport (requests|httpx)\b|\bfrom (httpx|fastapi\.testclient|starlette\.testclient) |\bMockMvc\b|\bhttptest\.NewServer\(|\brest_client\b|tavern`)},
		{artifacts.TypeTestIntegration,
			compile(`(?i)testcontainers|//go:build integration|@SpringBootTest|@pytest\.mark\.integration|dockertest`)},
		{artifacts.TypeTestSecurity, compile(`(?i)\b(sql injection|xss|csrf|path traversal|ssrf)\b`)},
	}
})

// testKind tells the kind of a test from its path and the beginning of its
// content.
func testKind(rel string, head []byte) artifacts.Type {
	known := kindWords()
	words := func(s string) []string {
		return strings.FieldsFunc(splitCamel(s),
			func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	}
	parts := strings.Split(rel, "/")
	for _, p := range slices.Backward(parts) { // the nearest word says most
		for _, w := range words(p) {
			if t, ok := known[w]; ok {
				return t
			}
		}
	}
	if parts[0] == "tests" && path.Ext(rel) == ".rs" { // cargo's folder of integration tests
		return artifacts.TypeTestIntegration
	}
	if path.Ext(rel) == ".feature" {
		return artifacts.TypeTestE2E
	}
	if path.Ext(rel) == ".jmx" {
		return artifacts.TypeTestLoad
	}
	for _, s := range kindSigns() {
		if s.sign.Match(head) {
			return s.kind
		}
	}
	return artifacts.TypeTestUnit
}

// splitCamel puts a blank before each capital that begins a word, and returns it
// all in lower case.
func splitCamel(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 && r >= 'A' && r <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// testTarget guesses what a test is about: foo_test.go tests foo.go.
func testTarget(base string) string {
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	short := stem
	for _, end := range []string{".test", ".spec", ".e2e", ".cy", "_test", "_tests", "_spec", "Tests", "Test",
		"IT", "Spec"} {
		short = strings.TrimSuffix(short, end)
		if short != stem {
			break
		}
	}
	if short == stem {
		short = strings.TrimPrefix(stem, "test_")
	}
	if short == stem || short == "" {
		return ""
	}
	return short + ext
}

// isCoverage reports whether a file's name is one that coverage tools give.
func isCoverage(base string) bool {
	base = strings.ToLower(base)
	switch base {
	case "cover.out", "coverprofile", "lcov.info", "jacoco.xml", "cobertura.xml", "clover.xml", ".coverage", "coverage":
		return true
	}
	stem, ext := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
	switch ext {
	case ".lcov", ".coverprofile", ".gcov", ".profdata":
		return true
	case ".out", ".txt", ".xml", ".json", ".info", ".html":
		return stem == "coverage" || strings.HasPrefix(stem, "coverage-") || strings.HasSuffix(stem, "-coverage") ||
			strings.HasSuffix(stem, "_coverage")
	}
	return false
}
