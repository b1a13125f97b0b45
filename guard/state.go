package guard

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// state is what a shell knows at one point of the text.
type state struct {
	c       *checker
	vars    map[string]variable
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

type variable struct {
	value    string
	array    []string
	keyed    map[string]string // what stands under keys that are no numbers
	exported bool
	unset    bool
}

// status is a command's exit status as far as the text tells.
type status int

const (
	statusOpen status = iota
	statusTrue
	statusFalse
)

// virtualDir stands for a starting directory that is not known. It is deep
// enough for some "..".
func virtualDir() string {
	var b strings.Builder
	for _, n := range []string{"r", "s", "t", "u", "v", "cwd"} {
		b.WriteString("/" + unknownValue(kindPlace, n))
	}
	return b.String()
}

func (c *checker) startDir() string {
	if c.in.Dir == "" {
		return virtualDir()
	}
	return c.in.Dir
}

func (c *checker) newState() *state {
	return &state{c: c, vars: map[string]variable{}, funcs: map[string]*syntax.Stmt{}, aliases: map[string]string{}, dir: c.startDir(), oldDir: c.startDir(), params: []string{}, arg0: "sh"}
}

// clone is a subshell: what it changes stays in it.
func (st *state) clone() *state {
	n := *st
	n.vars, n.funcs, n.aliases = maps.Clone(st.vars), maps.Clone(st.funcs), maps.Clone(st.aliases)
	n.status = statusOpen
	return &n
}

// merge takes over what branches of an if or case may have set.
func (st *state) merge(branches ...*state) {
	sameDir := len(branches) > 0
	ended := len(branches) > 0
	for _, b := range branches {
		for k, v := range b.vars {
			old, had := st.vars[k]
			if !had || old.value != v.value || old.exported != v.exported || len(old.array) != len(v.array) || len(old.keyed) != len(v.keyed) {
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

// lookup returns a variable's value: the text's own, else the environment's.
func (st *state) lookup(name string) (variable, bool) {
	if v, ok := st.vars[name]; ok {
		return v, !v.unset
	}
	if name == "PWD" {
		return variable{value: st.dir}, true
	}
	if name == "OLDPWD" {
		return variable{value: st.oldDir}, true
	}
	if name == "BASH" { // set by bash itself
		return variable{value: "/bin/bash"}, true
	}
	v, ok := superqode.LookupEnv(st.c.in.Env, name)
	if !ok && name == "SHELL" { // some shell, whichever it is
		return variable{value: "/bin/sh"}, true
	}
	if !ok {
		return variable{}, false
	}
	return variable{value: strings.ReplaceAll(v, string(rune(mark)), ""), exported: true}, true
}

const defaultIFS = " \t\n"

// ifs returns the characters that separate fields.
func (st *state) ifs() string {
	if v, ok := st.vars["IFS"]; ok && !v.unset && v.value != "" && isKnown(v.value) {
		return v.value
	}
	return defaultIFS
}

func (st *state) set(name, value string) {
	if len(value) > maxValue {
		value = unknownValue(kindOpen, name)
	}
	v := st.vars[name]
	old, _ := st.lookup(name)
	st.vars[name] = variable{value: value, exported: v.exported || old.exported}
}

func (st *state) setExported(name, value string) {
	st.set(name, value)
	v := st.vars[name]
	v.exported = true
	st.vars[name] = v
}

func (st *state) export(name string) {
	v, ok := st.lookup(name)
	if ok {
		v.exported = true
		st.vars[name] = v
	}
}

func (st *state) unset(name string) {
	st.vars[name] = variable{unset: true}
	delete(st.funcs, name)
}

// exported returns a variable that a child process sees.
func (st *state) exported(name string) (string, bool) {
	v, ok := st.lookup(name)
	return v.value, ok && v.exported
}

// setHere returns an exported variable if the text itself set it.
func (st *state) setHere(name string) (string, bool) {
	v, ok := st.vars[name]
	return v.value, ok && v.exported && !v.unset
}

func (st *state) envOr(name string) string {
	if v, ok := st.exported(name); ok {
		return v
	}
	return unknownValue(kindOpen, name)
}

// gitEnv is what the real git must see beside the environment: what the text
// sets and git reads, and the variables that internal/git takes out of its own
// environment.
func (st *state) gitEnv() []string {
	var out []string
	for _, kv := range st.c.in.Env {
		k, _, _ := strings.Cut(kv, "=")
		if _, changed := st.vars[k]; !changed && git.IsRedirect(k) {
			out = append(out, kv)
		}
	}
	for k, v := range st.vars {
		if v.exported && !v.unset && isKnown(v.value) && (strings.HasPrefix(k, "GIT_") || k == "HOME" || k == "XDG_CONFIG_HOME") {
			out = append(out, k+"="+v.value)
		}
	}
	return out
}

// tilde expands a leading ~ as the shell or a program would.
func (st *state) tilde(p string) string {
	if p != "~" && !strings.HasPrefix(p, "~/") {
		return p
	}
	home := unknownValue(kindOpen, "HOME")
	if v, ok := st.lookup("HOME"); ok {
		home = v.value
	}
	if !strings.HasPrefix(home, "/") {
		home = "/" + home
	}
	return home + p[1:]
}

// cd changes the directory.
func (st *state) cd(to string) {
	switch to {
	case "":
		to = st.tilde("~")
	case "-":
		to = st.oldDir
	}
	st.oldDir, st.dir = st.dir, under(st.dir, to)
}
