package superqode_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-2d964004/superqode"

// floors is the picture of docs/architecture.md in tens: 21 is on floor 2. Imports
// only point down, and packages with one number do not import one another; what
// stands on a landing (15, 25) may use the rest of its floor. Floor 0 is the
// foundation, whose packages may import one another.
var floors = map[string]int{
	"":                           0,
	"internal/atomicfile":        0,
	"internal/dirfd":             0,
	"internal/failpoint":         0,
	"internal/cmdline":           0,
	"internal/git":               0,
	"internal/gittest":           0,
	"internal/glob":              0,
	"internal/ignore":            5,
	"internal/ledger":            0,
	"internal/lockfile":          0,
	"internal/plainjson":         0,
	"internal/proctable":         0,
	"internal/redact":            0,
	"internal/rooted":            0,
	"internal/swap":              0,
	"internal/text":              0,
	"artifacts":                  10,
	"guard":                      10,
	"guard/shelltext":            12,
	"internal/config":            10,
	"internal/kernel":            10,
	"internal/outputs":           5,
	"internal/overlay":           11,
	"internal/runner":            10,
	"internal/snapshot":          10,
	"internal/frozen":            20,
	"internal/watch":             10,
	"internal/snapshot/snaptest": 11,
	"internal/snapshot/store":    11,
	"internal/snapshot/treecopy": 12,
	"internal/installation":      15,
	"internal/state":             15,
	"workspace":                  15,
	"internal/bench":             16,
	"hooks":                      20,
	"internal/merge":             20,
	"internal/report":            20,
	"internal/salvage":           20,
	"internal/setup":             20,
	"internal/staging":           20,
	"internal/supervisor":        20,
	"internal/revert":            20,
	"revert":                     21,
	"worktree":                   25,
	"internal/linked":            20,
	"internal/trash":             0,
	"hooks/install":              25,
	"internal/coordinator":       25,
	"internal/site":              25,
	"internal/custody":           28,
	"internal/trust":             28,
	"internal/gitdir":            29,
	"internal/apply":             39,
	"internal/findings":          30,
	"internal/layers":            30,
	"internal/shim":              30,
	"internal/gitfiles":          24,
	"internal/aside":             26,
	"internal/mode":              27,
	"internal/attribution":       35,
	"internal/attach":            38,
	"internal/prepare":           40,
	"internal/gc":                40,
	"internal/team":              40,
	"internal/program":           37,
	"internal/radar":             37,
	"internal/registry":          34,
	"internal/life":              50,
	"session":                    55,
	"codeexec":                   57,
	"cmd/internal/term":          60,
	"cmd/internal/app":           61,
	"cmd/internal/runcmd":        63,
	"cmd/internal/workspacecmd":  63,
	"cmd/internal/artifactcmd":   63,
	"cmd/internal/guardcmd":      63,
	"cmd/internal/agentcmd":      63,
	"cmd/internal/doctor":        63,
	"cmd/internal/demo":          63,
	"cmd/internal/completion":    63,
	"cmd/internal/cli":           64,
	"cmd/superqode":              65,
	"cmd/superqode-shim":         65,
}

// maxMainLines keeps main a main: streams, signals, exit code.
const maxMainLines = 40

type listedPackage struct {
	ImportPath, Dir, Name              string
	GoFiles, IgnoredGoFiles            []string
	Imports, TestImports, XTestImports []string
}

// listPackages asks the go command for every package as it is built for one
// platform with the given tags.
func listPackages(t *testing.T, goos, tags string) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,GoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports", "-tags", tags, "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []listedPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// ours cuts the module's path off an import path.
func ours(importPath string) (pkg string, ok bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// arrow says what is wrong with an import, or "".
func arrow(from, to string) string {
	a, known := floors[from]
	if !known {
		return "is a package that the table of floors does not know"
	}
	b, known := floors[to]
	switch {
	case !known:
		return "imports " + to + ", which the table of floors does not know"
	case b > a:
		return "imports " + to + ", which stands above it"
	case a == b && a > 0:
		return "imports " + to + ", which stands on the same floor"
	}
	return ""
}

func TestFloors(t *testing.T) {
	t.Parallel()
	for _, build := range []struct{ goos, tags string }{{"linux", ""}, {"linux", "failpoint"}, {"darwin", ""}} {
		pkgs := listPackages(t, build.goos, build.tags)
		if len(pkgs) < 5 {
			t.Fatalf("go list found %d packages only", len(pkgs))
		}
		for _, p := range pkgs {
			from, _ := ours(p.ImportPath)
			if _, known := floors[from]; !known {
				t.Errorf("%s %s", p.ImportPath, arrow(from, from))
			}
			for _, imp := range p.Imports {
				if to, ok := ours(imp); ok {
					if wrong := arrow(from, to); wrong != "" {
						t.Errorf("%s (%s) %s", p.ImportPath, build.goos, wrong)
					}
					if to == "internal/gittest" || to == "internal/snapshot/snaptest" {
						t.Errorf("%s imports the test fixtures outside its tests", p.ImportPath)
					}
				} else if from == "" && strings.Contains(strings.Split(imp, "/")[0], ".") {
					t.Errorf("the module root imports %s; it has the standard library only", imp)
				}
			}
			for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
				if to, ok := ours(imp); ok && to != from && to != "internal/snapshot/snaptest" {
					if wrong := arrow(from, to); wrong != "" {
						t.Errorf("a test of %s %s", p.ImportPath, wrong)
					}
				}
			}
		}
	}
}

// TestArrow holds that the table refuses what it should.
func TestArrow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"session", "worktree", true},
		{"cmd/internal/cli", "internal/runner", true},
		{"worktree", "internal/snapshot", true},
		{"worktree", "internal/linked", true},
		{"internal/git", "", true},
		{"internal/atomicfile", "internal/failpoint", true},
		{"internal/snapshot", "internal/git", true},
		{"internal/snapshot/store", "internal/snapshot", true},
		{"internal/snapshot", "internal/snapshot/store", false},
		{"revert", "worktree", false},
		{"internal/snapshot", "internal/config", false},
		{"internal/snapshot", "worktree", false},
		{"internal/git", "internal/snapshot", false},
		{"", "session", false},
		{"session", "util", false},
		{"util", "session", false},
	} {
		if wrong := arrow(tt.from, tt.to); (wrong == "") != tt.ok {
			t.Errorf("%s → %s: %q", tt.from, tt.to, wrong)
		}
	}
}

// TestWorkspaceStandsAlone holds that the file API imports the standard library, the root
// and the matcher of patterns; only the runner and git go to packages below.
func TestWorkspaceStandsAlone(t *testing.T) {
	t.Parallel()
	below := map[string]string{"runner.go": "internal/runner", "git.go": "internal/git"}
	files, err := filepath.Glob("workspace/*.go")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imp := strings.Trim(spec.Path.Value, `"`)
			pkg, mine := ours(imp)
			switch {
			case strings.HasSuffix(path, "_test.go"), !strings.Contains(strings.Split(imp, "/")[0], "."):
			case mine && (pkg == "" || pkg == "internal/glob" || pkg == below[filepath.Base(path)]):
			default:
				t.Errorf("%s imports %s", path, imp)
			}
		}
	}
}

func TestMainIsShort(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t, "linux", "") {
		if p.Name != "main" {
			continue
		}
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(data), "\n"); n > maxMainLines {
				t.Errorf("%s/%s has %d lines, more than %d", p.ImportPath, name, n, maxMainLines)
			}
		}
	}
}
