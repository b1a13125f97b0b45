package shelltext

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// Limits that keep a check short whatever the text is. Past them the rest is
// let through as unknown; the layers below the text hold.
const (
	maxText   = 1 << 20 // bytes of text
	maxValue  = 1 << 18 // bytes of a value that expansion builds, so that doubling stops
	maxDepth  = 48      // nested shells, functions, aliases
	maxWork   = 4000    // commands looked at
	maxRounds = 24      // rounds of a loop over known words
)

// reader reads one text.
type reader struct {
	*guard.Judge
	ctx  context.Context //nolint:containedctx // lives as long as one check
	work int
}

func newReader(ctx context.Context, in guard.Context) *reader {
	return &reader{Judge: guard.NewJudge(ctx, in), ctx: ctx}
}

// enter counts one level of nesting; the caller must call leave when ok.
func (r *reader) enter() (leave func(), ok bool) {
	depth, leave := r.Nested()
	if depth > maxDepth || r.work >= maxWork {
		leave()
		r.Undecided("…", "the text is too deeply nested, or too long, to be read")
		return nil, false
	}
	return leave, true
}

// spend counts one command and reports whether there is work left to spend.
func (r *reader) spend() bool {
	r.work++
	if r.work == maxWork+1 || r.ctx.Err() != nil {
		r.Undecided("…", "the text runs too many commands to be read")
	}
	return r.work <= maxWork && r.ctx.Err() == nil
}

// open is a text of which nothing is known; the name tells where it comes from.
func open(name string) string { return cmdline.Open(cmdline.Any, name) }

// state is what a shell knows at one point of the text.
type state struct {
	r       *reader
	env     []string                   // the environment that the text starts with
	vars    map[string]expand.Variable // what the text itself sets, and unsets
	funcs   map[string]*syntax.Stmt
	aliases map[string]string
	params  []string // $1…
	arg0    string
	dir     string
	oldDir  string
	stdin   *string // nil: unknown
	ended   bool    // exit, exec or return was reached
	leaving bool    // it was return
	returns int     // functions and sourced files that return may leave
	status  status  // of the last command
	asked   bool    // the last command asked whether this is a repository
	noRepo  bool    // this branch runs only when the answer was no
}

// status is a command's exit status as far as the text tells.
type status int

const (
	statusOpen status = iota
	statusTrue
	statusFalse
)

// not is the status of "! command".
func (s status) not() status {
	return map[status]status{statusTrue: statusFalse, statusFalse: statusTrue}[s]
}

func statusOf(yes bool) status {
	if yes {
		return statusTrue
	}
	return statusFalse
}

func (r *reader) newState() *state {
	return &state{r: r, env: r.Env(), vars: map[string]expand.Variable{}, funcs: map[string]*syntax.Stmt{},
		aliases: map[string]string{}, dir: r.Start(), oldDir: r.Start(), arg0: "sh"}
}

// clone is a subshell: what it changes stays in it.
func (st *state) clone() *state {
	n := *st
	n.vars, n.funcs, n.aliases = maps.Clone(st.vars), maps.Clone(st.funcs), maps.Clone(st.aliases)
	n.status = statusOpen
	return &n
}

// program is the state as a program sees it: no functions, no aliases.
func (st *state) program() *state {
	n := st.clone()
	n.returns = 0
	clear(n.funcs)
	clear(n.aliases)
	return n
}

// returning runs what "return" may leave, a function or a sourced file, with its
// parameters.
func (st *state) returning(params []string, run func() string) string {
	saved := st.params
	st.params = params
	st.returns++
	out := run()
	st.returns--
	st.params = saved
	if st.leaving {
		st.ended, st.leaving = false, false
	}
	return out
}

// withInput is a clone with a standard input.
func (st *state) withInput(text string) *state {
	n := st.clone()
	n.stdin = &text
	return n
}

// input is what a command can read. Only xargs -0 makes something of zero bytes.
func (st *state) input() string {
	if st.stdin == nil {
		return open("stdin")
	}
	return noZeros(*st.stdin)
}

// noZeros takes the zero bytes away, as a shell does.
func noZeros(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// merge takes over what branches of an if or case may have set.
func (st *state) merge(branches ...*state) {
	sameDir, ended := len(branches) > 0, len(branches) > 0
	for _, b := range branches {
		for k, v := range b.vars {
			old, had := st.vars[k]
			if !had || old.Str != v.Str || old.Exported != v.Exported || len(old.List) != len(v.List) ||
				len(old.Map) != len(v.Map) {
				st.vars[k] = v
			}
		}
		maps.Copy(st.funcs, b.funcs)
		maps.Copy(st.aliases, b.aliases)
		sameDir = sameDir && b.dir == branches[0].dir
		ended = ended && b.ended
	}
	if sameDir {
		st.dir, st.oldDir = branches[0].dir, branches[0].oldDir
	}
	st.ended = ended
	st.status = statusOpen
}

func text(s string) expand.Variable { return expand.Variable{Set: true, Kind: expand.String, Str: s} }

// Get returns a parameter or a variable: the text's own, else the environment's. A
// name that begins with "?" is one of which nothing is known, see soften.
func (st *state) Get(name string) expand.Variable {
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		if n > len(st.params) {
			return expand.Variable{}
		}
		return text(st.params[n-1])
	}
	if v, ok := st.vars[name]; ok {
		return v
	}
	switch name {
	case "0":
		return text(st.arg0)
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: st.params}
	case "#":
		return text(strconv.Itoa(len(st.params)))
	case "?", "$", "!", "-", "RANDOM", "SECONDS", "LINENO", "PPID":
		return text(open("number"))
	case "PWD":
		return text(st.dir)
	case "OLDPWD":
		return text(st.oldDir)
	case "BASH": // set by bash itself
		return text("/bin/bash")
	}
	if from, ok := strings.CutPrefix(name, "?"); ok {
		return text(open(from))
	}
	if user, ok := strings.CutPrefix(name, "HOME "); ok { // ~user
		return text("/" + open("home "+user))
	}
	if v, ok := superqode.LookupEnv(st.env, name); ok {
		return expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: cmdline.Plain(v)}
	}
	switch name {
	case "SHELL": // some shell, whichever it is
		return text("/bin/sh")
	case "HOME":
		return text("/" + open("HOME"))
	}
	return expand.Variable{}
}

// Each lists the text's own variables.
func (st *state) Each(f func(string, expand.Variable) bool) {
	for name, v := range st.vars {
		if v.Set && !f(name, v) {
			return
		}
	}
}

// Set is what ${x:=value} does.
func (st *state) Set(name string, v expand.Variable) error {
	v.Exported = v.Exported || st.Get(name).Exported
	if len(v.Str) > maxValue || len(v.List) > 4096 {
		v = text(open(name))
	}
	st.vars[name] = v
	return nil
}

// set gives a variable a text, setExported one that programs see too.
func (st *state) set(name, value string) { _ = st.Set(name, text(value)) }

func (st *state) setExported(name, value string) {
	v := text(value)
	v.Exported = true
	_ = st.Set(name, v)
}

func (st *state) export(name string) {
	if v := st.Get(name); v.Set {
		v.Exported = true
		st.vars[name] = v
	}
}

func (st *state) unset(name string) {
	st.vars[name] = expand.Variable{}
	delete(st.funcs, name)
}

// place is where a git command of this state runs.
func (st *state) place() guard.Place {
	p := guard.Place{Dir: st.dir, NoRepo: st.noRepo}
	for _, name := range slices.Sorted(maps.Keys(st.vars)) {
		switch v := st.vars[name]; {
		case !v.Set:
			p.Set = append(p.Set, name)
		case v.Exported:
			p.Set = append(p.Set, name+"="+v.String())
		}
	}
	return p
}

// at is a program's state at a place.
func (st *state) at(p guard.Place) *state {
	n := st.program()
	n.dir = p.Dir
	for _, kv := range p.Set {
		if k, v, ok := strings.Cut(kv, "="); ok {
			n.setExported(k, v)
		} else {
			n.unset(k)
		}
	}
	return n
}

// tilde expands a leading ~ as a program would.
func (st *state) tilde(p string) string {
	if p != "~" && !strings.HasPrefix(p, "~/") {
		return p
	}
	return st.Get("HOME").String() + p[1:]
}

// path is a file's absolute path.
func (st *state) path(name string) string { return cmdline.Under(st.dir, st.tilde(name)) }

// cd changes the directory.
func (st *state) cd(to string) {
	switch to {
	case "":
		to = "~"
	case "-":
		to = st.oldDir
	}
	st.oldDir, st.dir = st.dir, st.path(to)
}
