package guard

import (
	"context"
	"strings"
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
// to it, or a path that ends in git-NAME.
func Check(ctx context.Context, argv []string, in Context) Verdict {
	c := newChecker(ctx, in)
	st := c.newState()
	if len(argv) > 0 {
		clean := make([]string, len(argv))
		for i, a := range argv {
			clean[i] = plain(a)
		}
		if name, ok := gitProgram(clean[0]); ok {
			c.git(st, append([]string{"git"}, append(name, clean[1:]...)...))
		} else {
			c.git(st, append([]string{"git"}, clean[1:]...))
		}
	}
	return c.verdict()
}

// CheckLine decides on a line (or a whole script) of POSIX shell or bash text.
func CheckLine(ctx context.Context, text string, in Context) Line {
	c := newChecker(ctx, in)
	st := c.newState()
	c.shell(st, plain(text))
	for _, trap := range c.traps { // once more, with the functions that came after it
		c.nested(st, trap, "trap runs it at the end")
	}
	return Line{Verdict: c.verdict(), Steps: c.steps}
}

// plain takes out what stands for unknown parts inside this package; a NUL is in
// no argument, and the shell drops it too.
func plain(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, string(rune(mark)), ""), placeholder, "?")
}

// Limits that keep a check short whatever the text is. Past them the rest is
// let through as unknown; the layers below the text hold.
const (
	maxText  = 1 << 20 // bytes of text, and of any value built from it
	maxDepth = 48      // nested shells, functions, aliases
	maxWork  = 4000    // commands looked at
	maxSteps = 400     // steps kept for explanation
)

// checker is one check under way.
type checker struct {
	ctx     context.Context //nolint:containedctx // lives as long as one call of Check
	in      Context
	depth   int
	work    int
	steps   []Step
	denied  *Verdict
	last    *Verdict // the last git command that was allowed
	unknown bool
	fresh   map[string]bool   // roots of repositories that the text itself makes
	files   map[string]string // contents of files that the text itself writes
	traps   []string          // what trap was told to run
	renamed map[string]string // programs that the text gives another name, by path
}

func newChecker(ctx context.Context, in Context) *checker {
	return &checker{ctx: ctx, in: in, fresh: map[string]bool{}, files: map[string]string{}, renamed: map[string]string{}}
}

// enter counts one level of nesting; the caller must call leave when it is true.
func (c *checker) enter() bool {
	if c.depth >= maxDepth || c.work >= maxWork {
		c.unknown = true
		return false
	}
	c.depth++
	return true
}

func (c *checker) leave() { c.depth-- }

// spend counts one command and reports whether there is work left to spend.
func (c *checker) spend() bool {
	c.work++
	if c.work > maxWork || c.ctx.Err() != nil {
		c.unknown = true
		return false
	}
	return true
}

func (c *checker) step(text, note string) {
	if len(c.steps) < maxSteps {
		if len(text) > 400 {
			text = strings.ToValidUTF8(text[:400], "") + "…"
		}
		c.steps = append(c.steps, Step{c.depth, printable(text), note})
	}
}

func (c *checker) verdict() Verdict {
	if c.denied != nil {
		return *c.denied
	}
	v := Verdict{Decision: Allow, Certainty: Certain, Reason: "no git operation that is denied"}
	if c.last != nil {
		v = *c.last
	}
	if c.unknown {
		v.Certainty = Unknown
	}
	return v
}

// operation records one operation of a command and decides on it.
func (c *checker) operation(op Operation, command []string, excused func() bool) {
	text := strings.Join(command, " ")
	if c.in.Policy.Decide(op) == Allow {
		c.step(text, string(op)+": allowed")
		c.allowed(Verdict{Decision: Allow, Operation: op, Certainty: Certain, Command: shown(command), Reason: string(op) + " is allowed"})
		return
	}
	if excused != nil && excused() {
		c.step(text, string(op)+": acts on another repository, allowed")
		c.allowed(Verdict{Decision: Allow, Operation: op, Certainty: Certain, Command: shown(command), Reason: "it acts on another repository"})
		return
	}
	c.step(text, string(op)+": DENIED")
	if c.denied == nil {
		v := denial(op, command)
		c.denied = &v
	}
}

func (c *checker) allowed(v Verdict) { c.last = &v }

// undecided records that something was let through without being read.
func (c *checker) undecided(text, why string) {
	c.unknown = true
	c.step(text, "unknown: "+why)
}
