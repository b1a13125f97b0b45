package shelltext

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// fields expands words to a command's arguments.
func (r *reader) fields(st *state, words ...*syntax.Word) []string {
	var out []string
	for _, w := range words {
		if lit := w.Lit(); lit != "" && !strings.ContainsAny(lit, `\~{`) {
			out = append(out, lit)
			continue
		}
		for one := range r.braces(w) {
			out = append(out, r.expand(st, one, expand.Fields)...)
			if len(out) > 8192 {
				return append(out[:8192], open("more"))
			}
		}
	}
	return out
}

// braces expands {a,b}; too large an expansion is cut short.
func (r *reader) braces(w *syntax.Word) func(yield func(*syntax.Word) bool) {
	return func(yield func(*syntax.Word) bool) {
		split := *w // SplitBraces changes the word that it is given, and a loop comes here again
		if !syntax.SplitBraces(&split) {
			yield(w)
			return
		}
		n := 0
		for one, err := range expand.BracesSeq(nil, &split) {
			if n++; err != nil || n > 256 {
				r.Undecided("{…}", "a list that is too long")
				return
			}
			if !yield(one) {
				return
			}
		}
	}
}

// word expands a word to one string, without splitting; document expands the body
// of a here-document.
func (r *reader) word(st *state, w *syntax.Word) string { return r.single(st, w, expand.Literal) }

func (r *reader) document(st *state, w *syntax.Word) string {
	return r.single(st, w, expand.Document)
}

func (r *reader) single(st *state, w *syntax.Word, how func(*expand.Config, *syntax.Word) (string, error)) string {
	if w == nil {
		return ""
	}
	return strings.Join(r.expand(st, w, func(cfg *expand.Config, words ...*syntax.Word) ([]string, error) {
		s, err := how(cfg, words[0])
		return []string{s}, err
	}), "")
}

// expand expands one word. What the library cannot expand (some of zsh's forms) is
// open, and the substitutions in it run.
func (r *reader) expand(st *state, w *syntax.Word, how func(*expand.Config, ...*syntax.Word) ([]string, error)) (out []string) {
	defer func() {
		if recover() != nil { // the text comes from outside
			out = []string{open("word")}
		}
	}()
	cfg := &expand.Config{
		Env: st, ExtGlob: true,
		CmdSubst: func(out io.Writer, x *syntax.CmdSubst) error {
			_, err := io.WriteString(out, r.substitute(st, x.Stmts))
			return err
		},
		ProcSubst: func(x *syntax.ProcSubst) (string, error) { return r.processFile(st, x), nil },
	}
	out, err := how(cfg, &syntax.Word{Parts: r.soften(st, w.Parts)})
	if err != nil {
		r.substitutions(st, w)
		return []string{open("word")}
	}
	for i, s := range out {
		if len(s) > maxValue {
			out[i] = open("long")
		}
	}
	return out
}

// soften returns the parts of a word as they are to be expanded: a variable of which
// nothing is known is an open text and not an empty one, unless the word says what
// it is otherwise; a number that is computed is open.
func (r *reader) soften(st *state, parts []syntax.WordPart) []syntax.WordPart {
	out := slices.Clone(parts)
	for i, part := range parts {
		switch x := part.(type) {
		case *syntax.DblQuoted:
			out[i] = &syntax.DblQuoted{Dollar: x.Dollar, Parts: r.soften(st, x.Parts)}
		case *syntax.ArithmExp:
			r.substitutions(st, x)
			out[i] = &syntax.Lit{Value: open("number")}
		case *syntax.ParamExp:
			out[i] = r.softenParam(st, x)
		}
	}
	return out
}

func (r *reader) softenParam(st *state, x *syntax.ParamExp) syntax.WordPart {
	if x.Param == nil {
		return x
	}
	v, own := st.Get(x.Param.Value), false
	if !v.Set { // by the text's own doing
		_, own = st.vars[x.Param.Value]
		own = own || x.Param.Value[0] >= '0' && x.Param.Value[0] <= '9'
	}
	if (x.Length || x.IsSet) && (!v.Set && !own || !cmdline.Known(v.String())) {
		return &syntax.Lit{Value: open("number")}
	}
	n := *x
	if x.Exp != nil && x.Exp.Word != nil {
		n.Exp = &syntax.Expansion{Op: x.Exp.Op, Word: &syntax.Word{Parts: r.soften(st, x.Exp.Word.Parts)}}
	}
	if v.Set || own || x.Names != 0 {
		return &n
	}
	if x.Exp != nil {
		switch x.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			return &n
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			n.Exp = nil
		}
	}
	if x.Index != nil {
		r.substitutions(st, x.Index)
	}
	n.Param, n.Index, n.Excl = &syntax.Lit{Value: "?" + x.Param.Value}, nil, false
	return &n
}

// substitute runs $(…) and returns what it prints; $(< file) reads.
func (r *reader) substitute(st *state, stmts []*syntax.Stmt) string {
	sub := st.clone()
	if len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 {
		sub.stdin = nil
		r.redirect(sub, stmts[0].Redirs)
		return sub.input()
	}
	return r.stmts(sub, stmts)
}

// processFile is the name of <(…), whose contents are what the statements print.
func (r *reader) processFile(st *state, x *syntax.ProcSubst) string {
	out := r.stmts(st.clone(), x.Stmts)
	name := "/dev/fd/" + strconv.Itoa(63+len(r.Files))
	if x.Op == syntax.CmdIn {
		r.Files[name] = out
	}
	return name
}

// substitutions runs the command substitutions inside a node.
func (r *reader) substitutions(st *state, node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			r.stmts(st.clone(), x.Stmts)
			return false
		case *syntax.ProcSubst:
			r.stmts(st.clone(), x.Stmts)
			return false
		}
		return true
	})
}

// assign sets a variable, an array, or one element of one.
func (r *reader) assign(st *state, a *syntax.Assign) {
	name, old := a.Name.Value, st.Get(a.Name.Value)
	var v expand.Variable
	switch key, _ := a.Index.(*syntax.Word); {
	case a.Array != nil:
		v = r.array(st, a.Array)
		if a.Append {
			v.List = slices.Concat(old.List, v.List)
		}
	case a.Index != nil:
		value := r.word(st, a.Value)
		v = element(old, r.word(st, key), value)
	default:
		v = text(r.word(st, a.Value))
		if a.Append {
			v.Str = old.String() + v.Str
		}
	}
	v.Exported = old.Exported
	_ = st.Set(name, v)
}

func (r *reader) array(st *state, x *syntax.ArrayExpr) expand.Variable {
	v := expand.Variable{Set: true, Kind: expand.Indexed}
	for _, e := range x.Elems {
		if e.Value == nil {
			continue
		}
		values := r.fields(st, e.Value)
		if w, ok := e.Index.(*syntax.Word); ok {
			v = element(v, r.word(st, w), strings.Join(values, " "))
		} else {
			v.List = append(v.List, values...)
		}
	}
	return v
}

// element is an array with one element set: a list, or where the key is no number
// of a list, a map.
func element(v expand.Variable, key, value string) expand.Variable {
	n, err := strconv.Atoi(key)
	if err == nil && n >= 0 && n <= 512 && v.Kind != expand.Associative {
		list := slices.Clone(v.List)
		for len(list) <= n {
			list = append(list, "")
		}
		list[n] = value
		return expand.Variable{Set: true, Kind: expand.Indexed, List: list}
	}
	m := map[string]string{}
	for i, s := range v.List {
		m[strconv.Itoa(i)] = s
	}
	for k, s := range v.Map {
		m[k] = s
	}
	m[key] = value
	if len(m) > 512 {
		return text(open("array"))
	}
	return expand.Variable{Set: true, Kind: expand.Associative, Map: m}
}

// declare is export, declare, local, readonly and typeset.
func (r *reader) declare(st *state, x *syntax.DeclClause) {
	exported, remove := x.Variant != nil && x.Variant.Value == "export", false
	for _, a := range x.Args {
		switch {
		case a.Name != nil:
			if !a.Naked {
				r.assign(st, a)
			}
			if exported && !remove {
				st.export(a.Name.Value)
			}
		case a.Value != nil:
			flag := r.word(st, a.Value)
			exported = exported || strings.HasPrefix(flag, "-") && strings.Contains(flag, "x")
			remove = remove || exported && strings.HasPrefix(flag, "-") && strings.Contains(flag, "n")
			if k, v, ok := strings.Cut(flag, "="); ok && cmdline.Known(k) { // export "A=b"
				st.set(k, v)
				st.export(k)
			}
		}
	}
}
