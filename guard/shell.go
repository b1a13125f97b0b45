package guard

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxValue bounds a value that expansion builds, so that doubling stops.
const maxValue = 1 << 18

// shell reads text as a shell would and returns what it prints. Definitions and
// directory changes stay in st: callers that start a new shell pass a clone.
func (c *checker) shell(st *state, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	if !isKnown(text) {
		c.embedded(st, text)
		return unknownValue(kindOpen, "shell")
	}
	if !c.enter() {
		return unknownValue(kindOpen, "shell")
	}
	defer c.leave()
	if len(text) > maxText || tooNested(text) {
		c.undecided(text[:min(len(text), 80)], "the text is too large or too deeply nested to be read")
		return unknownValue(kindOpen, "shell")
	}
	stmts, err := parseShell(text)
	out := c.stmts(st, stmts)
	if err != nil {
		c.unparsable(st, text, err)
		return unknownValue(kindOpen, "shell")
	}
	return out
}

// nested runs text in a shell of its own. Names are variables that hold files
// which git lists.
func (c *checker) nested(st *state, text, note string, files ...string) string {
	c.step(text, note)
	n := st.clone()
	for _, f := range files {
		n.set(f, unknownValue(kindTracked, f))
	}
	return c.shell(n, text)
}

// embedded reads a script of which parts are unknown: an unknown part stays
// unknown inside the words it stands in.
func (c *checker) embedded(st *state, text string) {
	stmts, err := parseShell(strings.ReplaceAll(text, string(rune(mark)), placeholder))
	if err != nil || !c.enter() {
		c.undecided(text[:min(len(text), 80)], "a script with unknown parts")
		return
	}
	defer c.leave()
	c.unknown = true
	c.stmts(st, stmts)
}

// placeholder stands for mark where a parser or program text must see plain
// letters; it comes from the private use area.
const placeholder = "\uE0D7"

// parseShell reads bash, or else zsh. With an error come the statements before
// it, which a shell that reads line by line would have run.
func parseShell(text string) ([]*syntax.Stmt, error) {
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
		case 'i', 'w', 'u', 'f', 't', 'c':
			rest := text[i:]
			if strings.HasPrefix(rest, "if ") || strings.HasPrefix(rest, "while ") || strings.HasPrefix(rest, "until ") || strings.HasPrefix(rest, "for ") ||
				strings.HasPrefix(rest, "time ") || strings.HasPrefix(rest, "case ") || strings.HasPrefix(rest, "coproc ") {
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

func (c *checker) stmts(st *state, list []*syntax.Stmt) string {
	var out strings.Builder
	for _, s := range list {
		if st.ended || c.work > maxWork {
			break
		}
		if got := c.stmt(st, s); out.Len()+len(got) <= maxValue {
			out.WriteString(got)
		} else {
			out.Reset()
			out.WriteString(unknownValue(kindOpen, "output"))
		}
	}
	return out.String()
}

// stmt runs one statement with its redirections and returns what it prints.
func (c *checker) stmt(st *state, s *syntax.Stmt) string {
	if !c.spend() {
		return unknownValue(kindOpen, "limit")
	}
	saved := st.stdin
	targets := c.redirect(st, s.Redirs)
	out := ""
	if s.Cmd != nil {
		out = c.cmd(st, s.Cmd)
	} else {
		st.status = statusOpen
	}
	st.stdin = saved
	if s.Negated {
		switch st.status {
		case statusTrue:
			st.status = statusFalse
		case statusFalse:
			st.status = statusTrue
		}
	}
	if len(targets) == 0 {
		return out
	}
	for _, t := range targets {
		c.writeFile(st, t.path, out, t.add)
	}
	return ""
}

func (c *checker) cmd(st *state, cmd syntax.Command) string {
	switch x := cmd.(type) {
	case *syntax.CallExpr:
		return c.callExpr(st, x)
	case *syntax.Block:
		return c.stmts(st, x.Stmts)
	case *syntax.Subshell:
		n := st.clone()
		out := c.stmts(n, x.Stmts)
		st.status = n.status
		return out
	case *syntax.BinaryCmd:
		return c.binary(st, x)
	case *syntax.IfClause:
		return c.ifClause(st, x)
	case *syntax.WhileClause:
		return c.while(st, x)
	case *syntax.ForClause:
		return c.forClause(st, x)
	case *syntax.CaseClause:
		return c.caseClause(st, x)
	case *syntax.FuncDecl:
		if x.Name != nil {
			st.funcs[x.Name.Value] = x.Body
		}
		for _, n := range x.Names {
			st.funcs[n.Value] = x.Body
		}
		if x.Name == nil && len(x.Names) == 0 { // zsh's anonymous function runs at once
			return c.stmt(st, x.Body)
		}
	case *syntax.DeclClause:
		c.declare(st, x)
	case *syntax.TimeClause:
		if x.Stmt != nil {
			return c.stmt(st, x.Stmt)
		}
	case *syntax.CoprocClause:
		return c.stmt(st.clone(), x.Stmt)
	default: // [[ ]], (( )), let: only substitutions in them run
		c.substitutions(st, cmd)
	}
	st.status = statusOpen
	return ""
}

// substitutions runs the command substitutions inside a node.
func (c *checker) substitutions(st *state, node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			c.stmts(st.clone(), x.Stmts)
			return false
		case *syntax.ProcSubst:
			c.stmts(st.clone(), x.Stmts)
			return false
		}
		return true
	})
}

func (c *checker) binary(st *state, x *syntax.BinaryCmd) string {
	switch x.Op {
	case syntax.AndStmt, syntax.OrStmt:
		out := c.stmt(st, x.X)
		if st.ended {
			return out
		}
		was, asked, before := st.status, st.asked, st.noRepo
		st.noRepo = st.noRepo || asked
		defer func() { st.noRepo = before }()
		if x.Op == syntax.AndStmt && was == statusFalse || x.Op == syntax.OrStmt && was == statusTrue {
			return out // never reached
		}
		if x.Op == syntax.AndStmt {
			out += c.stmt(st, x.Y)
			st.ended = st.ended && was == statusTrue
			if was != statusTrue && st.status == statusTrue {
				st.status = statusOpen
			}
			return out
		}
		other := st.clone()
		out += c.stmt(other, x.Y)
		dir, old := st.dir, st.oldDir
		ended := other.ended && was == statusFalse
		st.merge(other)
		st.dir, st.oldDir, st.ended = dir, old, ended
		if other.status == statusTrue {
			st.status = statusTrue
		}
		return out
	default: // the pipes
		out := c.stmt(st.clone(), x.X)
		right := st.clone()
		right.stdin = &out
		res := c.stmt(right, x.Y)
		st.status = right.status
		return res
	}
}

func (c *checker) ifClause(st *state, x *syntax.IfClause) string {
	out := c.stmts(st, x.Cond)
	if st.ended {
		return out
	}
	cond, before := st.status, st.noRepo
	st.noRepo = st.noRepo || st.asked
	defer func() { st.noRepo = before }()
	if len(x.Cond) == 0 { // else
		return out + c.stmts(st, x.Then)
	}
	var branches []*state
	if cond != statusFalse {
		b := st.clone()
		out += c.stmts(b, x.Then)
		branches = append(branches, b)
	}
	if cond != statusTrue {
		b := st.clone()
		if x.Else != nil {
			out += c.ifClause(b, x.Else)
		}
		branches = append(branches, b)
	}
	st.merge(branches...)
	return out
}
