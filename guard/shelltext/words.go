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
func (st *state) fields(words ...*syntax.Word) (out []string) {
	for _, w := range words {
		if lit := w.Lit(); lit != "" && !strings.ContainsAny(lit, `\~{`) {
			out = append(out, lit)
			continue
		}
		split := *w // SplitBraces changes the word that it is given, and a loop comes here again
		if !syntax.SplitBraces(&split) {
			out = append(out, st.expand(w, expand.Fields)...)
			continue
		}
		n := 0
		for one, err := range expand.BracesSeq(nil, &split) {
			if n++; err != nil || n > 256 {
				st.r.Undecided("{…}", "a list that is too long")
				break
			}
			out = append(out, st.expand(one, expand.Fields)...)
		}
	}
	if len(out) > 8192 {
		out = append(out[:8192], open("more"))
	}
	return out
}

// word expands a word to one string, without splitting. expand.Literal (v3.14.1)
// keeps the backslashes of unquoted text, which a shell takes away.
func (st *state) word(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	plain := &syntax.Word{Parts: slices.Clone(w.Parts)}
	for i, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok && strings.Contains(lit.Value, `\`) {
			plain.Parts[i] = &syntax.SglQuoted{Value: unquoted(lit.Value)}
		}
	}
	return st.single(plain, expand.Literal)
}

// unquoted takes the backslashes out of unquoted text.
func unquoted(s string) string {
	before, after, ok := strings.Cut(s, `\`)
	if !ok || after == "" {
		return s
	}
	return before + after[:1] + unquoted(after[1:])
}

// document expands the body of a here-document.
func (st *state) document(w *syntax.Word) string { return st.single(w, expand.Document) }

func (st *state) single(w *syntax.Word, how func(*expand.Config, *syntax.Word) (string, error)) string {
	if w == nil {
		return ""
	}
	return st.expand(w, func(cfg *expand.Config, words ...*syntax.Word) ([]string, error) {
		s, err := how(cfg, words[0])
		return []string{s}, err
	})[0]
}

// expand expands one word. What the library cannot expand (some of zsh's forms) is
// open, and the substitutions in it run.
func (st *state) expand(w *syntax.Word, how func(*expand.Config, ...*syntax.Word) ([]string, error)) (out []string) {
	defer func() {
		if recover() != nil { // the text comes from outside
			out = []string{open("word")}
		}
	}()
	cfg := &expand.Config{
		Env: st, ExtGlob: true, ProcSubst: st.processFile,
		CmdSubst: func(out io.Writer, x *syntax.CmdSubst) error {
			_, err := io.WriteString(out, st.substitute(x.Stmts))
			return err
		},
	}
	out, err := how(cfg, &syntax.Word{Parts: st.soften(w.Parts)})
	if err != nil {
		st.substitutions(w)
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
func (st *state) soften(parts []syntax.WordPart) []syntax.WordPart {
	out := slices.Clone(parts)
	for i, part := range parts {
		switch x := part.(type) {
		case *syntax.DblQuoted:
			out[i] = &syntax.DblQuoted{Dollar: x.Dollar, Parts: st.soften(x.Parts)}
		case *syntax.ArithmExp:
			st.substitutions(x)
			out[i] = &syntax.Lit{Value: open("number")}
		case *syntax.ParamExp:
			if x.Param != nil {
				out[i] = st.softenParam(x)
			}
		}
	}
	return out
}

func (st *state) softenParam(x *syntax.ParamExp) syntax.WordPart {
	name := x.Param.Value
	v := st.Get(name)
	_, told := st.vars[name] // a variable that the text unset
	told = told || v.Set || name[0] >= '0' && name[0] <= '9'
	if (x.Length || x.IsSet) && (!told || !cmdline.Known(v.String())) {
		return &syntax.Lit{Value: open("number")}
	}
	n := *x
	if x.Exp != nil && x.Exp.Word != nil {
		n.Exp = &syntax.Expansion{Op: x.Exp.Op, Word: &syntax.Word{Parts: st.soften(x.Exp.Word.Parts)}}
	}
	if told || x.Names != 0 {
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
		st.substitutions(x.Index)
	}
	n.Param, n.Index, n.Excl = &syntax.Lit{Value: "?" + name}, nil, false
	return &n
}

// substitute runs $(…) and returns what it prints; $(< file) reads.
func (st *state) substitute(stmts []*syntax.Stmt) string {
	sub := st.clone()
	if len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 {
		sub.stdin = nil
		st.r.redirect(sub, stmts[0].Redirs)
		return sub.input()
	}
	return noZeros(st.r.stmts(sub, stmts))
}

// processFile is the name of <(…), whose contents are what the statements print.
func (st *state) processFile(x *syntax.ProcSubst) (string, error) {
	out := st.substitute(x.Stmts)
	name := "/dev/fd/" + strconv.Itoa(63+len(st.r.Files))
	if x.Op == syntax.CmdIn {
		st.r.Files[name] = out
	}
	return name, nil
}

// substitutions runs the command substitutions inside a node.
func (st *state) substitutions(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			st.substitute(x.Stmts)
			return false
		case *syntax.ProcSubst:
			st.substitute(x.Stmts)
			return false
		}
		return true
	})
}

// assign sets a variable, an array, or one element of one.
func (st *state) assign(a *syntax.Assign) {
	name, old := a.Name.Value, st.Get(a.Name.Value)
	v := text(st.word(a.Value))
	switch key, _ := a.Index.(*syntax.Word); {
	case a.Array != nil:
		v = expand.Variable{Set: true, Kind: expand.Indexed}
		if a.Append {
			v.List = slices.Clone(old.List)
		}
		for _, e := range a.Array.Elems {
			if w, ok := e.Index.(*syntax.Word); ok && e.Value != nil {
				v = element(v, st.word(w), st.word(e.Value))
			} else if e.Value != nil {
				v.List = append(v.List, st.fields(e.Value)...)
			}
		}
	case a.Index != nil:
		v = element(old, st.word(key), v.Str)
	case a.Append:
		v.Str = old.String() + v.Str
	}
	v.Exported = old.Exported
	_ = st.Set(name, v)
}

// element is an array with one element set: a list, or where the key is no number
// of a list, a map.
func element(v expand.Variable, key, value string) expand.Variable {
	const most = 512 // each time the array is copied
	if n, err := strconv.Atoi(key); err == nil && n >= 0 && n < most && v.Kind != expand.Associative {
		list := slices.Clone(v.List)
		for len(list) <= n {
			list = append(list, "")
		}
		list[n] = value
		return expand.Variable{Set: true, Kind: expand.Indexed, List: list}
	}
	m := map[string]string{key: value}
	for i, s := range v.List {
		m[strconv.Itoa(i)] = s
	}
	for k, s := range v.Map {
		if k != key {
			m[k] = s
		}
	}
	if len(m) > most {
		return text(open("array"))
	}
	return expand.Variable{Set: true, Kind: expand.Associative, Map: m}
}

// declare is export, declare, local, readonly and typeset.
func (st *state) declare(x *syntax.DeclClause) {
	exported, remove := x.Variant != nil && x.Variant.Value == "export", false
	for _, a := range x.Args {
		switch {
		case a.Name != nil:
			if !a.Naked {
				st.assign(a)
			}
			if exported && !remove {
				st.export(a.Name.Value)
			}
		case a.Value != nil:
			flag := st.word(a.Value)
			option := strings.HasPrefix(flag, "-")
			exported, remove = exported || option && strings.Contains(flag, "x"), remove || option &&
				strings.Contains(flag, "n")
			if k, v, ok := strings.Cut(flag, "="); ok && cmdline.Known(k) { // export "A=b"
				st.setExported(k, v)
			}
		}
	}
}
