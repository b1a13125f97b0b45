package guard

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/cmdline"
	"github.com/seed-2d964004/superqode/internal/git"
)

// Context is what is known about the place where a command would run. The zero
// value is useful: nothing is known, the default policy holds.
type Context struct {
	// Dir is the absolute working directory; "" when it is not known, and then
	// the Resolver is not asked.
	Dir string
	// Env is the environment (KEY=VALUE) of the command.
	Env []string
	// Resolver answers what only the repository knows; nil is allowed.
	Resolver Resolver
	// Find makes the Resolver when the first question comes up, and returns nil when
	// there is none: most commands need no answer. It is used where Resolver is nil.
	Find func() Resolver
	// Guarded is the common git directory of the guarded repository, absolute
	// and free of symbolic links. When it is set and the Resolver finds that a
	// command acts on another repository, the command is let through (except
	// for what leaves the machine). "" guards every repository.
	Guarded string
	// UserConfig are the user's own configuration files. When they are known, a
	// write to the global configuration that goes to another file (HOME or
	// GIT_CONFIG_GLOBAL was changed, as test suites do) is let through.
	UserConfig []string
	// PushElsewhere lets "git push" from another repository through: what stands
	// behind the addresses decides then, since it sees where the push goes.
	PushElsewhere bool
	// Policy decides on operations; the zero value is the default policy.
	Policy Policy
	// Own reports whether a command acts on the session's own git directory: what it
	// found, and whether the command names a git directory itself. Elsewhere
	// Policy.Elsewhere holds. nil where a policy is the same everywhere.
	Own func(at Found, named bool) bool
}

// Step is one step of reading a line, for people who ask why.
type Step struct {
	Depth int    `json:"depth"`
	Text  string `json:"text"` // the command as it was understood
	Note  string `json:"note"` // what was made of it
}

// Line is the answer to one line of shell text: the verdict on the whole and
// the steps that led there. The first denied command gives the verdict.
type Line struct {
	Verdict
	Steps []Step `json:"steps,omitempty"`
}

// Check decides on the argument list of one git command. argv[0] is git, a path
// to it, or a path that ends in git-NAME. What the command itself hands to a shell
// (an alias that begins with "!", "bisect run") is let through with Certainty
// Unknown; shelltext.CheckArgs reads that, too.
func Check(ctx context.Context, argv []string, in Context) Verdict {
	j := NewJudge(ctx, in)
	clean := make([]string, len(argv))
	for i, a := range argv {
		clean[i] = cmdline.Plain(a)
	}
	j.Git(Command{Argv: clean, Place: Place{Dir: j.Start()}})
	return j.Line().Verdict
}

// Place is where a command of a text runs, and with which variables.
type Place struct {
	Dir string   // absolute; may hold open parts
	Set []string // what the text sets for its commands, KEY=VALUE, or KEY alone for what it unsets
	// NoRepo marks a command that runs only where there is no repository.
	NoRepo bool
}

// Command is one git command of a text.
type Command struct {
	Place
	Argv  []string // git, a path to it, or git-NAME, and its arguments
	Input string   // its standard input; "" is none or unknown
	// Follow reads what the command hands on, and returns what that prints. nil lets
	// it through as unknown.
	Follow func(Start) string
}

// Start is what a git command starts: an alias that begins with "!", a command that
// a configuration value names, the words after "bisect run".
type Start struct {
	Place
	Line   string   // text for a shell; "" when Argv is given
	Argv   []string // a program and its arguments
	Params []string // $1 and so on, for Line
	Files  []string // variables that hold names of files that git tracks
	Note   string   // why git starts it
}

// Ran is what a git command turned out to be, its alias expanded.
type Ran struct {
	Name   string // "" when no command of git's runs
	Args   []string
	Dir    string // where it works, -C applied
	GitDir string // as given by --git-dir or GIT_DIR, or ""
	Output string // what an alias's own shell prints
}

// Judge decides on the commands of one text, one after the other, and gathers the
// verdict. It remembers what the text itself makes: repositories and files.
type Judge struct {
	ctx     context.Context //nolint:containedctx // lives as long as one check
	in      Context
	depth   int
	steps   []Step
	denied  *Verdict
	last    *Verdict // the last git command that was allowed
	unknown bool
	fresh   map[string]bool // roots of repositories that the text makes
	// Files holds what the text writes: contents, perhaps with open parts, by path.
	Files map[string]string
}

// NewJudge begins a check.
func NewJudge(ctx context.Context, in Context) *Judge {
	return &Judge{ctx: ctx, in: in, fresh: map[string]bool{}, Files: map[string]string{}}
}

// Nested counts the levels of text within text, for Steps; undo takes it back.
func (j *Judge) Nested() (depth int, undo func()) {
	j.depth++
	return j.depth, func() { j.depth-- }
}

// Env returns the environment of the check.
func (j *Judge) Env() []string { return j.in.Env }

// Start returns the directory in which the text begins. One that is not known is an
// open path, deep enough for some "..".
func (j *Judge) Start() string {
	if j.in.Dir != "" {
		return j.in.Dir
	}
	var b strings.Builder
	for _, n := range []string{"r", "s", "t", "u", "v", "cwd"} {
		b.WriteString("/" + cmdline.Open(cmdline.Place, n))
	}
	return b.String()
}

// maxSteps is how many steps are kept for an explanation.
const maxSteps = 400

// Step keeps one step for an explanation.
func (j *Judge) Step(text, note string) {
	if len(j.steps) < maxSteps {
		if len(text) > 400 {
			text = strings.ToValidUTF8(text[:400], "") + "…"
		}
		j.steps = append(j.steps, Step{j.depth, cmdline.Printable(text), note})
	}
}

// Undecided records that something is let through without having been read.
func (j *Judge) Undecided(text, why string) {
	j.unknown = true
	j.Step(text, "unknown: "+why)
}

// Line returns the verdict on what was read so far.
func (j *Judge) Line() Line {
	v := Verdict{Decision: Allow, Certainty: Certain, Reason: "no git operation that is denied"}
	switch {
	case j.denied != nil:
		return Line{*j.denied, j.steps}
	case j.last != nil:
		v = *j.last
	}
	if j.unknown {
		v.Certainty = Unknown
	}
	return Line{v, j.steps}
}

// Operation records one operation of a command and decides on it. excused, if
// given, tells whether the command acts on a repository that is not guarded.
func (j *Judge) Operation(op Operation, command []string, excused func() bool) {
	j.decide(j.in.Policy, op, command, excused)
}

func (j *Judge) decide(p Policy, op Operation, command []string, excused func() bool) {
	text := strings.Join(command, " ")
	switch {
	case p.Decide(op) == Allow:
		j.Step(text, string(op)+": allowed")
		j.allow(op, command, string(op)+" is allowed")
	case excused != nil && excused():
		j.Step(text, string(op)+": acts on another repository, allowed")
		j.allow(op, command, "it acts on another repository")
	default:
		j.Step(text, string(op)+": DENIED")
		if j.denied == nil {
			v := p.Refusal(op, command)
			j.denied = &v
		}
	}
}

func (j *Judge) allow(op Operation, command []string, why string) {
	j.last = &Verdict{Decision: Allow, Operation: op, Certainty: Certain, Command: cmdline.Shown(command), Reason: why}
}

// asks returns the Resolver, or nil.
func (j *Judge) asks() Resolver {
	if j.in.Resolver == nil && j.in.Find != nil {
		j.in.Resolver, j.in.Find = j.in.Find(), nil
	}
	return j.in.Resolver
}

// Fresh reports whether a path lies in a repository that the text itself makes.
func (j *Judge) Fresh(p string) bool {
	for root := range j.fresh {
		if superqode.Within(p, root) {
			return true
		}
	}
	return false
}

// Protects reports whether a path lies in a .git that is, or may be, the guarded
// repository's.
func (j *Judge) Protects(at Place, full string) bool {
	if g := j.in.Guarded; g != "" && superqode.Within(full, g) {
		return true
	}
	rest, root := strings.TrimPrefix(full, "/"), "/"
	for rest != "" {
		comp, after, _ := strings.Cut(rest, "/")
		if NamesGitDir(comp) {
			if j.Elsewhere(at, root) {
				return false
			}
			for kind := range cmdline.Parts(strings.TrimPrefix(root, at.Dir)) {
				if kind != cmdline.Place {
					j.Undecided(full, "which repository this belongs to")
					return false
				}
			}
			return true
		}
		root, rest = path.Join(root, comp), after
	}
	return false
}

// NamesGitDir reports whether one component of a path, perhaps a glob, is .git.
func NamesGitDir(comp string) bool {
	if strings.EqualFold(comp, ".git") {
		return true
	}
	if !strings.HasPrefix(comp, ".") || !strings.ContainsAny(comp, "*?[") {
		return false // "*" does not match a leading dot
	}
	ok, err := path.Match(strings.ReplaceAll(comp, "[!", "[^"), ".git")
	return ok && err == nil
}

// Elsewhere reports whether the repository at root is clearly another one than the
// guarded.
func (j *Judge) Elsewhere(at Place, root string) bool {
	if j.Fresh(root) {
		return true
	}
	if j.in.Guarded != "" && cmdline.Known(root) && j.asks() != nil {
		common, ok := j.in.Resolver.Repository(j.ctx, At{Dir: root, Env: j.gitEnv(at)})
		return ok && common != j.in.Guarded
	}
	// A scratch repository under /tmp, while the work is not there.
	start := j.Start()
	return !strings.ContainsAny(root, "*?[") && strings.HasPrefix(root, "/tmp/") && !superqode.Within(start, root) &&
		!superqode.Within(root, start)
}

// LinkedWorktree reports whether a path is the root of a linked worktree of the
// guarded repository.
func (j *Judge) LinkedWorktree(full string) bool {
	r, ok := j.asks().(worktreeResolver)
	if !ok || !cmdline.Known(full) || r.LinkedWorktree(j.ctx, full) != Yes {
		return false
	}
	there, ok := j.in.Resolver.Repository(j.ctx, At{Dir: full})
	here := j.in.Guarded
	if here == "" && ok {
		here, ok = j.in.Resolver.Repository(j.ctx, At{Dir: j.Start()})
	}
	return ok && here == there
}

// lookup returns a variable of a command: the text's own, else the environment's.
func (j *Judge) lookup(at Place, name string) (value string, ok bool) {
	for _, kv := range slices.Backward(at.Set) {
		if k, v, set := strings.Cut(kv, "="); k == name {
			return v, set
		}
	}
	return superqode.LookupEnv(j.in.Env, name)
}

// gitEnv is what the real git must see beside the environment when it is asked: what
// the text sets and git reads, and the variables that internal/git takes out of its
// own environment.
func (j *Judge) gitEnv(at Place) []string {
	var out []string
	for _, kv := range j.in.Env {
		k, _, _ := strings.Cut(kv, "=")
		if git.IsRedirect(k) && !slices.ContainsFunc(at.Set,
			func(s string) bool { n, _, _ := strings.Cut(s, "="); return n == k }) {
			out = append(out, kv)
		}
	}
	for _, kv := range at.Set {
		if k, v, set := strings.Cut(kv, "="); set && cmdline.Known(v) &&
			(strings.HasPrefix(k, "GIT_") || k == "HOME" || k == "XDG_CONFIG_HOME") {
			out = append(out, kv)
		}
	}
	return out
}

// tilde expands a leading ~ as a program would.
func (j *Judge) tilde(at Place, p string) string {
	if p != "~" && !strings.HasPrefix(p, "~/") {
		return p
	}
	home, ok := j.lookup(at, "HOME")
	if !ok {
		home = "/" + cmdline.Open(cmdline.Any, "HOME")
	}
	return home + p[1:]
}
