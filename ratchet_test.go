package superqode_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"
)

// The ceilings. Code that is above one today has an entry
// in testdata/ratchet.txt with today's number. An entry never rises; a line of it
// is "kind subject number":
//
//	lines      lines of a package's Go files without its tests
//	life       those of package internal/life, which knows all others and must stay small
//	methods    methods of a named type, those of *T and T together
//	component  files of a package that call one another: the largest strongly
//	           connected component, where a file points to another when a function
//	           or method declared in it uses one declared in the other
//	function   lines of a package's longest function
//	modes      uses of a mode's constant or name in a package that is not
//	           internal/mode, outside the files of modeFiles
//	api        exported names of a public package that show an internal type
//	wide       lines of the module above 120 columns, of 10,000
//	total      lines of the module
var ceilings = map[string]int{"lines": 4000, "life": 2500, "methods": 40, "component": 8, "function": 80, "modes": 0, "api": 0, "wide": 100, "total": 74000}

const (
	ratchetFile = "testdata/ratchet.txt"
	maxColumns  = 120
	tabColumns  = 4
	// slack is the part of an entry, in percent, by which the code may fall below
	// it before the entry must follow.
	slack = 15
)

// modeFiles names the files outside internal/mode that may name a mode: the
// constants, the command line's flag, and the session's record.
var modeFiles = map[string]bool{"mode.go": true, "cmd/internal/runcmd/flags.go": true, "internal/state/record.go": true}

// A finding is one number that has a ceiling.
type finding struct {
	kind, subject string
	value         int
	detail        string // where to look
}

func (f finding) key() string { return f.kind + " " + f.subject }

// A ratchetPackage is one type-checked package and the lines of its files.
type ratchetPackage struct {
	name  string // its path in the module, "superqode" for the root
	fset  *token.FileSet
	files []*ast.File // without tests; those of other platforms have no types
	types *types.Package
	info  *types.Info
	lines map[string][]string // by the file's path in the module
}

// TestRatchet holds the module below its ceilings, and what is above one at the
// number in its entry.
func TestRatchet(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(ratchetFile)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := parseRatchet(string(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range judge(measure(loadRatchet(t)), entries) {
		t.Error(wrong)
	}
}

// loadRatchet reads the module as it is built for Linux.
func loadRatchet(t *testing.T) []ratchetPackage {
	t.Helper()
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	mode := packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	env := os.Environ()
	if runtime.GOOS != "linux" {
		env = append(env, "GOOS=linux", "CGO_ENABLED=0")
	}
	loaded, err := packages.Load(&packages.Config{Mode: mode, Env: env}, "./...") // as go build did, so that nothing is compiled twice
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []ratchetPackage
	for _, l := range loaded {
		for _, err := range l.Errors {
			t.Fatal(err)
		}
		name, _ := ours(l.PkgPath)
		p := ratchetPackage{name: cmp.Or(name, "superqode"), fset: l.Fset, files: l.Syntax, types: l.Types, info: l.TypesInfo, lines: map[string][]string{}}
		for _, path := range slices.Concat(l.GoFiles, l.IgnoredFiles) {
			if strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(l.IgnoredFiles, path) {
				file, err := parser.ParseFile(l.Fset, path, data, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				p.files = append(p.files, file)
			}
			rel, err := filepath.Rel(top, path)
			if err != nil {
				t.Fatal(err)
			}
			p.lines[filepath.ToSlash(rel)] = slices.Collect(strings.Lines(string(data)))
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

// parseRatchet reads the entries by kind and subject.
func parseRatchet(text string) (map[string]int, error) {
	entries := map[string]int{}
	for l := range strings.Lines(text) {
		var kind, subject string
		var n int
		if _, err := fmt.Sscanf(l, "%s %s %d\n", &kind, &subject, &n); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", ratchetFile, l, err)
		}
		if _, ok := ceilings[kind]; !ok {
			return nil, fmt.Errorf("%s: line %q: no ceiling is called %q", ratchetFile, l, kind)
		}
		entries[kind+" "+subject] = n
	}
	return entries, nil
}

// judge compares what was measured with the ceilings and with the entries.
func judge(found []finding, entries map[string]int) []string {
	var wrong []string
	left := map[string]bool{}
	for key := range entries {
		left[key] = true
	}
	for _, f := range found {
		ceiling := ceilings[f.kind]
		entry, listed := entries[f.key()]
		delete(left, f.key())
		paste := fmt.Sprintf("the line in %s is now\n%s %d", ratchetFile, f.key(), f.value)
		switch {
		case !listed && f.value > ceiling:
			wrong = append(wrong, fmt.Sprintf("%s is %d, above the ceiling %d (%s)", f.key(), f.value, ceiling, f.detail))
		case !listed:
		case f.value > entry:
			wrong = append(wrong, fmt.Sprintf("%s rose from %d to %d; the ceiling is %d (%s)", f.key(), entry, f.value, ceiling, f.detail))
		case f.value <= ceiling:
			wrong = append(wrong, fmt.Sprintf("%s fell to %d, within the ceiling %d: remove its line from %s", f.key(), f.value, ceiling, ratchetFile))
		case (entry-f.value)*100 > slack*entry:
			wrong = append(wrong, fmt.Sprintf("%s fell from %d to %d: %s", f.key(), entry, f.value, paste))
		}
	}
	for key := range left {
		wrong = append(wrong, fmt.Sprintf("%s is listed and no longer there: remove its line from %s", key, ratchetFile))
	}
	slices.Sort(wrong)
	return wrong
}

// measure gives every number that has a ceiling.
func measure(pkgs []ratchetPackage) []finding {
	var all []finding
	total, wide := 0, 0
	for _, p := range pkgs {
		n := 0
		for _, lines := range p.lines {
			n += len(lines)
			for _, l := range lines {
				if columns(l) > maxColumns {
					wide++
				}
			}
		}
		total += n
		if p.name == "internal/life" {
			all = append(all, finding{"life", p.name, n, "give what is not the life of a session to a package of its own"})
		}
		all = append(all, finding{"lines", p.name, n, "split it by noun"}, component(p), longestFunction(p), modeUses(p), internalTypes(p))
		all = append(all, methods(p)...)
	}
	return append(all, finding{"total", "module", total, "all Go files that are not tests"}, finding{"wide", "module", wide * 10000 / max(total, 1), fmt.Sprintf("%d of %d lines", wide, total)})
}

func columns(line string) int {
	line = strings.TrimRight(line, "\r\n")
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// methods counts the methods of each named type.
func methods(p ratchetPackage) []finding {
	var found []finding
	for _, name := range p.types.Scope().Names() {
		obj, ok := p.types.Scope().Lookup(name).(*types.TypeName)
		if !ok || obj.IsAlias() {
			continue
		}
		if named, ok := obj.Type().(*types.Named); ok && named.NumMethods() > 0 {
			found = append(found, finding{"methods", p.name + "." + name, named.NumMethods(), "give some of them to smaller types"})
		}
	}
	return found
}

// longestFunction measures a package's longest function.
func longestFunction(p ratchetPackage) finding {
	longest := finding{kind: "function", subject: p.name}
	for _, file := range p.files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				first, last := p.fset.Position(fn.Pos()), p.fset.Position(fn.End())
				if n := last.Line - first.Line + 1; n > longest.value {
					longest.value, longest.detail = n, fmt.Sprintf("%s in %s:%d", fn.Name, filepath.Base(first.Filename), first.Line)
				}
			}
		}
	}
	return longest
}

// component finds the largest set of files of a package that reach one another.
func component(p ratchetPackage) finding {
	edges := map[string]map[string]bool{}
	for _, file := range p.files {
		from := p.fset.Position(file.FileStart).Filename
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if to := declaredIn(p, id); to != "" && to != from {
						if edges[from] == nil {
							edges[from] = map[string]bool{}
						}
						edges[from][to] = true
					}
				}
				return true
			})
		}
	}
	largest := finding{kind: "component", subject: p.name, value: 1}
	for _, files := range components(edges) {
		if len(files) > largest.value {
			largest.value = len(files)
			largest.detail = strings.Join(files, " ")
		}
	}
	return largest
}

// declaredIn gives the file of the function or method of this package that an
// identifier uses, or "".
func declaredIn(p ratchetPackage, id *ast.Ident) string {
	fn, ok := p.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() != p.types {
		return ""
	}
	fn = fn.Origin()
	if recv := fn.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
		return ""
	}
	return p.fset.Position(fn.Pos()).Filename
}

// components is Tarjan's algorithm. The names are those of the files, sorted.
func components(edges map[string]map[string]bool) [][]string {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var found [][]string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, on[v] = append(stack, v), true
		for w := range edges[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		var files []string
		for _, w := range stack[at:] {
			on[w] = false
			files = append(files, filepath.Base(w))
		}
		stack = stack[:at]
		slices.Sort(files)
		found = append(found, files)
	}
	for v := range edges {
		if index[v] == 0 {
			visit(v)
		}
	}
	return found
}

// modeUses counts where a package names a mode: a constant of the root package, a
// string that becomes a Mode, or a mode's name compared with something that is
// called a mode.
func modeUses(p ratchetPackage) finding {
	found := finding{kind: "modes", subject: p.name}
	if p.name == "internal/mode" || strings.HasPrefix(p.name, "internal/mode/") {
		return found
	}
	var where []string
	use := func(n ast.Node) {
		at := p.fset.Position(n.Pos())
		for path := range p.lines {
			if modeFiles[path] && filepath.Base(path) == filepath.Base(at.Filename) {
				return
			}
		}
		found.value++
		where = append(where, fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line))
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if c, ok := p.info.Uses[n].(*types.Const); ok && isMode(c.Type()) {
					use(n)
				}
			case *ast.BasicLit:
				if tv, ok := p.info.Types[n]; ok && isMode(tv.Type) && constant.StringVal(tv.Value) != "" {
					use(n)
				}
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && (calledMode(n.X) && modeName(p, n.Y) || calledMode(n.Y) && modeName(p, n.X)) {
					use(n)
				}
			}
			return true
		})
	}
	slices.Sort(where)
	found.detail = strings.Join(where, " ")
	return found
}

func isMode(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Name() == "Mode" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == module
}

func calledMode(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "mode")
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "mode")
	case *ast.CallExpr:
		return len(e.Args) == 1 && calledMode(e.Args[0])
	}
	return false
}

// modeName reports whether an expression is a mode's name as a plain string.
func modeName(p ratchetPackage, e ast.Expr) bool {
	tv, ok := p.info.Types[e]
	if !ok || tv.Value == nil || tv.Value.Kind() != constant.String || isMode(tv.Type) {
		return false
	}
	return slices.Contains([]string{"auto", "overlay", "worktree", "snapshot", "git_snapshot", "directory", "shared"}, constant.StringVal(tv.Value))
}

// TestRatchetSees measures a made-up package that breaks every ceiling.
func TestRatchetSees(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	for i := range 10 {
		src := fmt.Sprintf("package bad\n\nfunc F%d() { F%d() }\n", i, (i+1)%9)
		switch i {
		case 0:
			src += "\ntype Big struct{}\n\n" + strings.Repeat("//\n", 4000)
			for m := range 41 {
				src += fmt.Sprintf("\nfunc (b *Big) M%d() {}\n", m)
			}
		case 1:
			src += "\nfunc Long() {\n" + strings.Repeat("\n", 79) + "}\n" + strings.Repeat("// "+strings.Repeat("x", 118)+"\n", 60)
		case 2:
			src = strings.Replace(src, "package bad\n", "package bad\n\nimport \""+module+"\"\n", 1) + `
func Ask(m superqode.Mode, s struct{ Mode string }) bool {
	switch m {
	case "snapshot":
		return true
	}
	return m == superqode.ModeShared || s.Mode == "directory" || s.Mode == "other" || m == ""
}
`
		}
		sources[fmt.Sprintf("bad/f%d.go", i)] = src
	}
	root := checkRatchet(t, module, map[string]string{"mode.go": "package superqode\n\ntype Mode string\n\nconst ModeShared Mode = \"shared\"\n"}, nil)
	bad := checkRatchet(t, module+"/bad", sources, root.types)
	good := checkRatchet(t, module+"/good", map[string]string{"good/a.go": "package good\n\nfunc A() { B() }\n", "good/b.go": "package good\n\nfunc B() { A() }\n"}, root.types)
	want := map[string]int{"methods bad.Big": 41, "component bad": 9, "function bad": 81, "modes bad": 3, "component good": 2, "modes superqode": 0, "modes good": 0}
	found := measure([]ratchetPackage{root, bad, good})
	got := map[string]int{}
	for _, f := range found {
		got[f.key()] = f.value
	}
	for key, n := range want {
		if got[key] != n {
			t.Errorf("%s is %d, want %d", key, got[key], n)
		}
	}
	wrong := strings.Join(judge(append(found, finding{kind: "total", subject: "other", value: 74001}), nil), "\n")
	for _, part := range []string{"lines bad is 4", "methods bad.Big is 41, above the ceiling 40", "component bad is 9, above the ceiling 8", "function bad is 81, above", "modes bad is 3, above the ceiling 0", "wide module is 1", "total other is 74001"} {
		if !strings.Contains(wrong, part) {
			t.Errorf("not reported: %q in\n%s", part, wrong)
		}
	}
	if strings.Contains(wrong, "good") {
		t.Errorf("reported although it is within the ceilings:\n%s", wrong)
	}
}

// TestRatchetTurns holds that an entry only goes down.
func TestRatchetTurns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value, entry int
		want         string
	}{
		{60, 0, "methods p.T is 60, above the ceiling 40"},
		{40, 0, ""},
		{60, 60, ""},
		{61, 60, "rose from 60 to 61"},
		{51, 60, ""},
		{50, 60, "the line in testdata/ratchet.txt is now\nmethods p.T 50"},
		{40, 42, "remove its line"},
	} {
		entries := map[string]int{}
		if tt.entry > 0 {
			entries["methods p.T"] = tt.entry
		}
		got := strings.Join(judge([]finding{{"methods", "p.T", tt.value, "there"}}, entries), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%d with entry %d: %q, want %q", tt.value, tt.entry, got, tt.want)
		}
	}
	if got := judge(nil, map[string]int{"lines gone": 5000}); len(got) != 1 || !strings.Contains(got[0], "no longer there") {
		t.Errorf("an entry without a package: %q", got)
	}
	for _, line := range []string{"lines session\n", "heights session 3\n", "lines session many\n"} {
		if _, err := parseRatchet(line); err == nil {
			t.Errorf("%q is an entry", line)
		}
	}
}

// rootImporter knows one package only.
type rootImporter struct{ root *types.Package }

func (r rootImporter) Import(path string) (*types.Package, error) {
	if r.root != nil && path == r.root.Path() {
		return r.root, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// checkRatchet type-checks sources by their path in the module.
func checkRatchet(t *testing.T, path string, sources map[string]string, root *types.Package) ratchetPackage {
	t.Helper()
	name, _ := ours(path)
	p := ratchetPackage{name: cmp.Or(name, "superqode"), fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}, lines: map[string][]string{}}
	for file, src := range sources {
		f, err := parser.ParseFile(p.fset, file, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, f)
		p.lines[file] = slices.Collect(strings.Lines(src))
	}
	var err error
	if p.types, err = (&types.Config{Importer: rootImporter{root}}).Check(path, p.fset, p.files, p.info); err != nil {
		t.Fatal(err)
	}
	return p
}
