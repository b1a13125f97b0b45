package superqode_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// longFile is the length above which -v notes a file: a file is as long as its
// thought, and the ratchet limits what may be too big.
const longFile = 400

// belowMain names what only main may touch: everything else gets its streams,
// its directory and its end handed in.
var belowMain = map[string]bool{"os.Exit": true, "os.Stdin": true, "os.Stdout": true, "os.Stderr": true, "os.Getwd": true, "os.Chdir": true, "log.Fatal": true, "log.Fatalf": true}

// ownDisk is a file of package workspace, which stands on the standard library and on
// nothing of ours below it.
const ownDisk = "workspace/dir.go"

// TestStyle holds the rules of the house that a program can check.
func TestStyle(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			checkFile(t, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return
	}
	if n := fset.File(file.FileStart).LineCount(); n > longFile {
		t.Logf("%s has %d lines", path, n)
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first := fset.Position(fn.Pos()).Line
		if fn.Recv == nil && fn.Name.Name == "init" {
			t.Errorf("%s:%d: init runs before main has decided anything", path, first)
		}
		if fn.Name.IsExported() && fn.Recv == nil && fn.Doc == nil && file.Name.Name != "main" {
			t.Errorf("%s:%d: exported %s has no comment", path, first, fn.Name)
		}
	}
	if file.Name.Name == "main" || strings.HasPrefix(path, "internal/gittest/") {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 && path != "internal/atomicfile/atomicfile.go" && path != ownDisk {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sync" && fmt.Sprint(sel.X) != "unix" {
				t.Errorf("%s: a wait for the disk that TestWaits of internal/life does not count: use atomicfile.Sync", fset.Position(call.Pos()))
			}
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			switch {
			case !ok || x.Obj != nil:
			case belowMain[x.Name+"."+sel.Sel.Name]:
				t.Errorf("%s: %s.%s belongs into main", fset.Position(sel.Pos()), x.Name, sel.Sel.Name)
			case x.Name == "os" && sel.Sel.Name == "OpenRoot" && path != "internal/atomicfile/root.go" && path != ownDisk:
				t.Errorf("%s: os.OpenRoot waits for ever where a program has put a FIFO: use atomicfile.OpenRoot", fset.Position(sel.Pos()))
			}
		}
		return true
	})
}
