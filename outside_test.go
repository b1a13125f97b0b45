package superqode_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOutside builds, vets and runs testdata/outside, a program of another module that
// uses each public package.
func TestOutside(t *testing.T) {
	t.Parallel()
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"testdata/outside/main.go": "main.go", "go.sum": "go.sum"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+module+"\n", "module example.org/outside\n", 1)
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, top)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, args := range [][]string{{"go", "build", "-o", "superqode", module + "/cmd/superqode"}, {"go", "vet", "."}, {"go", "build", "-o", "outside", "."}, {"./outside"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
		if args[0] != "go" {
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "SUPERQODE=" + filepath.Join(dir, "superqode")}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	data, err := os.ReadFile("testdata/outside/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range publicPackages(t) {
		if !strings.Contains(string(data), `"`+strings.TrimSuffix(module+"/"+pkg, "/")+`"`) {
			t.Errorf("testdata/outside does not use package %q", pkg)
		}
	}
}

// TestExamples holds that each public package has an Example whose output is checked.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, pkg := range publicPackages(t) {
		files, err := filepath.Glob(filepath.Join("./"+pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if ok && strings.HasPrefix(fn.Name.Name, "Example") && slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
					return c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() && strings.HasPrefix(c.Text(), "Output:")
				}) {
					checked++
				}
			}
		}
		if checked == 0 {
			t.Errorf("package %q has no Example with an Output", pkg)
		}
	}
}

// publicPackages lists the packages that other modules may import, "" for the root.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, p := range listPackages(t, "linux", "") {
		if pkg, _ := ours(p.ImportPath); isPublic(pkg) {
			list = append(list, pkg)
		}
	}
	return list
}
