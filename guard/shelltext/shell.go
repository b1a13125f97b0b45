package shelltext

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// shell reads text as a shell would and returns what it prints. Definitions and
// directory changes stay in st: callers that start a new shell pass a clone.
func (r *reader) shell(st *state, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	leave, ok := r.enter()
	if !ok {
		return open("shell")
	}
	defer leave()
	if len(text) > maxText || tooNested(text) {
		r.Undecided(text[:min(len(text), 80)], "the text is too large or too deeply nested to be read")
		return open("shell")
	}
	if !cmdline.Known(text) {
		r.Undecided(text[:min(len(text), 80)], "a script with unknown parts")
	}
	stmts, err := parse(text)
	out := r.stmts(st, stmts)
	if err != nil {
		r.unparsable(st, text, err)
		return open("shell")
	}
	return out
}

// nested runs text in a shell of its own.
func (r *reader) nested(st *state, text, note string) string {
	r.Step(text, note)
	return r.shell(st.clone(), text)
}

// parse reads bash, or else zsh. With an error come the statements before it, which
// a shell that reads line by line would have run.
func parse(text string) ([]*syntax.Stmt, error) {
	stmts, err := parseAs(syntax.LangBash, text)
	if err == nil {
		return stmts, nil
	}
	if z, zerr := parseAs(syntax.LangZsh, text); zerr == nil {
		return z, nil
	}
	return stmts, err
}

// parseAs parses in one dialect. The loop does not stop at an error: the
// parser's sequence (v3.14.1) goes on after one that is not valid UTF-8, and
// panics when the loop has ended. Any other panic of the parser is an error too,
// since this text comes from outside.
func parseAs(lang syntax.LangVariant, text string) (stmts []*syntax.Stmt, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the shell parser failed: %v", r)
		}
	}()
	for s, serr := range syntax.NewParser(syntax.Variant(lang)).StmtsSeq(strings.NewReader(text)) {
		if serr != nil && err == nil {
			err = serr
		}
		if s != nil && err == nil {
			stmts = append(stmts, s)
		}
	}
	return stmts, err
}

// tooNested keeps the parser, which recurses, from deep texts. It counts what
// opens without closing; text in quotes may count too, so the limit is high.
func tooNested(text string) bool {
	const limit = 3000
	if len(text) <= limit {
		return false
	}
	parens, braces, words, quotes := 0, 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(':
			parens++
		case ')':
			parens = max(parens-1, 0)
		case '{', '[':
			braces++
		case '}', ']':
			braces = max(braces-1, 0)
		case '!':
			words++
		case '`', '"':
			quotes++
		case ' ':
			before := text[max(0, i-8):i]
			if cmdline.In("if while until for time case coproc", before[strings.LastIndexAny(before, " ;\n")+1:]) {
				words++
			}
		case '\n', ';':
			words = max(words-1, 0)
		}
		if parens > limit || braces > limit || words > limit {
			return true
		}
	}
	return quotes > 200_000
}

// unparsable looks at text that is no shell: a shell would refuse it too, in
// whole or from that point on, but the text may be meant for another one (fish,
// PowerShell). Each piece between separators that begins with git is decided on.
func (r *reader) unparsable(st *state, text string, err error) {
	r.Undecided(text, "not readable as a shell line: "+err.Error())
	for _, piece := range pieces(text) {
		words := cmdline.Split(piece)
		for len(words) > 0 && (assignment(words[0]) || cmdline.In("and or not then do else begin !", words[0])) {
			words = words[1:]
		}
		if len(words) > 0 {
			if _, ok := guard.Program(words[0]); ok {
				r.run(st.clone(), words)
			}
		}
	}
}

// pieces splits text at separators outside of quotes. What stands in a quote that
// does not end is left out.
func pieces(text string) (out []string) {
	quote, from, begin := rune(0), 0, 0
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote, begin = c, i
		case strings.ContainsRune("\n;&|{}()", c) && len(out) < 500:
			out, from = append(out, text[from:i]), i+1
		}
	}
	if quote != 0 {
		text = text[:begin]
	}
	return append(out, text[min(from, len(text)):])
}

func (r *reader) stmts(st *state, list []*syntax.Stmt) string {
	var out strings.Builder
	for _, s := range list {
		if st.ended || r.work > maxWork {
			break
		}
		if got := r.stmt(st, s); out.Len()+len(got) <= maxValue {
			out.WriteString(got)
		} else {
			out.Reset()
			out.WriteString(open("output"))
		}
	}
	return out.String()
}

// stmt runs one statement with its redirections and returns what it prints.
func (r *reader) stmt(st *state, s *syntax.Stmt) string {
	if !r.spend() {
		return open("limit")
	}
	saved := st.stdin
	targets := r.redirect(st, s.Redirs)
	out := ""
	st.status = statusOpen
	if s.Cmd != nil {
		out = r.cmd(st, s.Cmd)
	}
	st.stdin = saved
	if s.Negated {
		st.status = st.status.not()
	}
	for _, t := range targets {
		r.writeFile(st, t.path, out, t.add)
	}
	if len(targets) > 0 {
		return ""
	}
	return out
}

func (r *reader) cmd(st *state, cmd syntax.Command) string {
	switch x := cmd.(type) {
	case *syntax.CallExpr:
		return r.call(st, x)
	case *syntax.Block:
		return r.stmts(st, x.Stmts)
	case *syntax.Subshell:
		n := st.clone()
		out := r.stmts(n, x.Stmts)
		st.status = n.status
		return out
	case *syntax.BinaryCmd:
		if x.Op == syntax.AndStmt || x.Op == syntax.OrStmt {
			return r.either(st, x)
		}
		right := st.withInput(r.stmt(st.clone(), x.X))
		out := r.stmt(right, x.Y)
		st.status = right.status
		return out
	case *syntax.IfClause:
		return r.ifClause(st, x)
	case *syntax.WhileClause:
		return r.while(st, x)
	case *syntax.ForClause:
		return r.forClause(st, x)
	case *syntax.CaseClause:
		return r.caseClause(st, x)
	case *syntax.FuncDecl:
		if x.Name == nil && len(x.Names) == 0 { // zsh's anonymous function runs at once
			return r.stmt(st, x.Body)
		}
		for _, name := range append(x.Names, x.Name) {
			if name != nil {
				st.funcs[name.Value] = x.Body
			}
		}
	case *syntax.DeclClause:
		st.declare(x)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			return r.stmt(st, x.Stmt)
		}
	case *syntax.CoprocClause:
		return r.stmt(st.clone(), x.Stmt)
	default: // [[ ]], (( )), let: only substitutions in them run
		st.substitutions(cmd)
	}
	st.status = statusOpen
	return ""
}

// either is "a && b" or "a || b".
func (r *reader) either(st *state, x *syntax.BinaryCmd) string {
	out := r.stmt(st, x.X)
	if st.ended {
		return out
	}
	was, before := st.status, st.noRepo
	st.noRepo = st.noRepo || st.asked
	defer func() { st.noRepo = before }()
	and := x.Op == syntax.AndStmt
	if and && was == statusFalse || !and && was == statusTrue {
		return out // never reached
	}
	if and {
		out += r.stmt(st, x.Y)
		st.ended = st.ended && was == statusTrue
		if was != statusTrue && st.status == statusTrue {
			st.status = statusOpen
		}
		return out
	}
	other := st.clone()
	out += r.stmt(other, x.Y)
	dir, old := st.dir, st.oldDir
	st.merge(other)
	st.dir, st.oldDir, st.ended = dir, old, other.ended && was == statusFalse
	if other.status == statusTrue {
		st.status = statusTrue
	}
	return out
}

func (r *reader) ifClause(st *state, x *syntax.IfClause) string {
	out := r.stmts(st, x.Cond)
	if st.ended {
		return out
	}
	cond, before := st.status, st.noRepo
	st.noRepo = st.noRepo || st.asked
	defer func() { st.noRepo = before }()
	if len(x.Cond) == 0 { // else
		return out + r.stmts(st, x.Then)
	}
	var branches []*state
	if cond != statusFalse {
		b := st.clone()
		out += r.stmts(b, x.Then)
		branches = append(branches, b)
	}
	if cond != statusTrue {
		b := st.clone()
		if x.Else != nil {
			out += r.ifClause(b, x.Else)
		}
		branches = append(branches, b)
	}
	st.merge(branches...)
	return out
}

func (r *reader) while(st *state, x *syntax.WhileClause) string {
	out := ""
	for range maxRounds {
		out += r.stmts(st, x.Cond)
		if st.ended || st.status == statusOf(x.Until) {
			break
		}
		before := st.ended
		out += r.stmts(st, x.Do)
		st.ended = before
		// Another round makes a difference only while there is input to read.
		if in := st.input(); in == "" || !cmdline.Known(in) || len(out) > maxValue {
			break
		}
	}
	st.status = statusOpen
	return out
}

func (r *reader) forClause(st *state, x *syntax.ForClause) string {
	iter, ok := x.Loop.(*syntax.WordIter)
	if !ok {
		st.substitutions(x.Loop)
		return r.stmts(st, x.Do)
	}
	items := st.params
	if iter.InPos.IsValid() || len(iter.Items) > 0 {
		items = st.fields(iter.Items...)
	}
	out := ""
	for i, item := range items {
		if i == maxRounds {
			item = open(iter.Name.Value)
		}
		st.set(iter.Name.Value, item)
		out += r.stmts(st, x.Do)
		st.ended = false
		if i == maxRounds || len(out) > maxValue {
			break
		}
	}
	st.status = statusOpen
	return out
}

func (r *reader) caseClause(st *state, x *syntax.CaseClause) string {
	word := st.word(x.Word)
	var branches []*state
	out, sure := "", false
	for _, item := range x.Items {
		hit := statusFalse
		for _, p := range item.Patterns {
			pattern := st.word(p)
			if !cmdline.Known(word + pattern) {
				hit = statusOpen
				break
			}
			if ok, err := path.Match(strings.ReplaceAll(pattern, "/", "_"), strings.ReplaceAll(word, "/", "_")); ok &&
				err == nil {
				hit = statusTrue
				break
			}
		}
		if hit == statusFalse {
			continue
		}
		b := st.clone()
		out += r.stmts(b, item.Stmts)
		branches = append(branches, b)
		if sure = hit == statusTrue && item.Op == syntax.Break; sure {
			break
		}
	}
	if !sure {
		branches = append(branches, st.clone())
	}
	st.merge(branches...)
	return out
}

// target is a file that a redirection writes what a command prints to.
type target struct {
	path string
	add  bool
}

// redirect applies redirections: input becomes st.stdin, the files for output
// are returned.
func (r *reader) redirect(st *state, redirs []*syntax.Redirect) []target {
	var out []target
	for _, x := range redirs {
		input := x.N == nil || x.N.Value == "0"
		switch x.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			text := ""
			switch {
			case x.Hdoc == nil: // the line ends before it
			case quoted(x.Word):
				text = x.Hdoc.Lit()
			default:
				text = st.document(x.Hdoc)
			}
			if x.Op == syntax.DashHdoc {
				text = strings.ReplaceAll("\n"+text, "\n\t", "\n")[1:]
			}
			if input {
				st.stdin = &text
			}
		case syntax.WordHdoc:
			text := st.word(x.Word) + "\n"
			st.stdin = &text
		case syntax.RdrIn:
			if text := r.readFile(st, st.word(x.Word)); input {
				st.stdin = &text
			}
		case syntax.DplIn:
			st.stdin = nil
		case syntax.DplOut:
			if w := st.word(x.Word); x.N == nil && strings.Trim(w, "0123456789-") != "" { // >&file
				out = append(out, target{w, false})
			}
		default:
			w := st.word(x.Word)
			if x.N != nil && x.N.Value != "1" {
				r.writeFile(st, w, open("stderr"), false)
				continue
			}
			out = append(out, target{w, slices.Contains([]syntax.RedirOperator{syntax.AppOut, syntax.AppAll,
				syntax.AppClob}, x.Op)})
		}
	}
	return out
}

// quoted reports whether a here-document's delimiter is, so that its body is taken as
// it stands.
func quoted(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, `\`)
	})
}
