package superqode_test

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// isPublic reports whether programs of other modules may import a package of this one.
func isPublic(pkg string) bool {
	return !slices.Contains(strings.Split(pkg, "/"), "internal") && !strings.HasPrefix(pkg, "cmd/")
}

// internalTypes counts the exported names of a public package in whose signatures,
// fields or methods a type of an internal package stands: who imports the module cannot
// write such a type down.
func internalTypes(p ratchetPackage) finding {
	found := finding{kind: "api", subject: p.name}
	if !isPublic(p.name) {
		return found
	}
	var where []string
	for _, name := range p.types.Scope().Names() {
		obj := p.types.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		for member, t := range signatures(obj) {
			if bad := internalIn(t, map[types.Type]bool{}); bad != "" {
				where = append(where, fmt.Sprintf("%s (%s)", strings.TrimSuffix(name+"."+member, "."), bad))
			}
		}
	}
	slices.Sort(where)
	found.value, found.detail = len(where), strings.Join(where, ", ")
	return found
}

// signatures returns the types that a user of an exported name meets, by exported
// field or method; "" is the name itself.
func signatures(obj types.Object) map[string]types.Type {
	all := map[string]types.Type{}
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if _, isType := obj.(*types.TypeName); !isType || !ok || named.Obj() != obj {
		all[""] = obj.Type() // a function, a variable, a constant, an alias
		return all
	}
	for m := range named.Methods() {
		if m.Exported() {
			all[m.Name()] = m.Type()
		}
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				all[f.Name()] = f.Type()
			}
		}
	default:
		all[""] = u
	}
	return all
}

// internalIn returns the first type of an internal package that a type is made of, or
// "". What a named type of a public package is made of is that type's own business.
func internalIn(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	first := func(list ...types.Type) string {
		for _, t := range list {
			if bad := internalIn(t, seen); bad != "" {
				return bad
			}
		}
		return ""
	}
	ofTuple := func(tuple *types.Tuple) (list []types.Type) {
		for v := range tuple.Variables() {
			list = append(list, v.Type())
		}
		return list
	}
	switch t := t.(type) {
	case *types.Alias:
		return first(t.Rhs())
	case *types.Named:
		if pkg := t.Obj().Pkg(); pkg != nil {
			if name, ok := ours(pkg.Path()); ok && !isPublic(name) {
				return name + "." + t.Obj().Name()
			}
		}
		return first(slices.Collect(t.TypeArgs().Types())...)
	case *types.Pointer:
		return first(t.Elem())
	case *types.Slice:
		return first(t.Elem())
	case *types.Array:
		return first(t.Elem())
	case *types.Chan:
		return first(t.Elem())
	case *types.Map:
		return first(t.Key(), t.Elem())
	case *types.Signature:
		return first(append(ofTuple(t.Params()), ofTuple(t.Results())...)...)
	case *types.Struct:
		for f := range t.Fields() {
			if bad := first(f.Type()); f.Exported() && bad != "" {
				return bad
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if bad := first(m.Type()); m.Exported() && bad != "" {
				return bad
			}
		}
	}
	return ""
}

// TestInternalTypes looks for internal types in made-up packages.
func TestInternalTypes(t *testing.T) {
	t.Parallel()
	inner := checkRatchet(t, module+"/internal/inner", map[string]string{"internal/inner/a.go": "package inner\n\ntype T struct{}\n"}, nil)
	door := checkRatchet(t, module+"/door", map[string]string{"door/a.go": `package door

import "` + module + `/internal/inner"

type Fine struct{ hidden inner.T }

func (Fine) hide(inner.T) {}

type Again = inner.T

type Bad struct{ Field map[string][]*inner.T }

func (*Bad) Method(func() (int, inner.T)) {}

type Maker interface{ Make() inner.T }

func Open(...inner.T) (f Fine, err error) { return f, nil }

func Close(Fine, *Bad, error) {}

var Last chan inner.T
`}, inner.types)
	got := internalTypes(door)
	want := "Again (internal/inner.T), Bad.Field (internal/inner.T), Bad.Method (internal/inner.T), Last (internal/inner.T), Maker (internal/inner.T), Open (internal/inner.T)"
	if got.value != 6 || got.detail != want {
		t.Errorf("found %d: %s", got.value, got.detail)
	}
	if got := internalTypes(inner); got.value != 0 {
		t.Errorf("an internal package has %d", got.value)
	}
}
