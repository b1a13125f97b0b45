package guard

import (
	"slices"
	"strings"
)

// call is one git command that is being classified.
type call struct {
	*checker
	inv  *invocation
	name string
	args []string
}

// git classifies one git command and returns what it would print, as far as it
// matters to what follows in a line.
func (c *checker) git(st *state, argv []string) string {
	if !c.spend() {
		return unknownValue(kindOpen, "git")
	}
	inv := c.readGlobals(st, argv)
	c.execConfig(inv)
	seen := map[string]bool{}
	for {
		name := inv.command
		switch {
		case name == "":
			c.step(strings.Join(argv, " "), "git alone prints its usage")
			return ""
		case !isKnown(name):
			c.undecided(strings.Join(argv, " "), "which git command this is")
			return unknownValue(kindOpen, "git")
		case isGitCommand(name) || knownExternal(name):
			return c.command(inv)
		case seen[name] || len(seen) > 20:
			c.step(strings.Join(argv, " "), "an alias that calls itself fails")
			return ""
		}
		seen[name] = true
		next, out, done := c.unlisted(inv)
		if done {
			return out
		}
		inv = next
	}
}

// command classifies a command that git or a known companion brings along.
func (c *checker) command(inv *invocation) string {
	k := &call{checker: c, inv: inv, name: inv.command, args: inv.args}
	if len(k.args) > 0 && (k.args[0] == "-h" && k.name != "grep" || k.args[0] == "--help") {
		k.read("help")
		return unknownValue(kindOpen, "git")
	}
	if len(k.args) > 1 && !strings.HasPrefix(k.args[0], "-") && (k.args[1] == "-h" || k.args[1] == "--help") && withSubcommands.has(k.name) {
		k.read("help")
		return unknownValue(kindOpen, "git")
	}
	c.execOptions(k)
	k.classify()
	inv.st.asked = k.name == "status" || k.name == "rev-parse" && k.hasArg("--git-dir", "--is-inside-work-tree", "--show-toplevel")
	return k.output()
}

// withSubcommands are commands whose first word is a command of its own.
var withSubcommands = words{text: "stash remote worktree notes reflog submodule bisect sparse-checkout maintenance lfs subtree config bundle svn p4"}

// unlisted follows a name that is no command of git's: a program git-NAME, an
// alias, or a misspelling that help.autocorrect would put right.
func (c *checker) unlisted(inv *invocation) (next *invocation, out string, done bool) {
	name, text := inv.command, strings.Join(inv.argv, " ")
	if r, at, ok := c.resolver(inv); ok && r.External(c.ctx, at, name) == Yes {
		c.undecided(text, "git-"+name+" is a program of its own, it runs guarded")
		return nil, unknownValue(kindOpen, name), true
	}
	if value, ok := c.configured(inv, "alias."+name); ok {
		return c.alias(inv, value)
	}
	if to := c.autocorrect(inv); to != "" {
		c.step(text, "help.autocorrect runs it as "+to)
		n := *inv
		n.command = to
		return &n, "", false
	}
	if _, _, ok := c.resolver(inv); ok {
		c.step(text, "no such git command, git fails by itself")
	} else {
		c.undecided(text, "no command of git's; an alias or a program of its own")
	}
	return nil, unknownValue(kindOpen, name), true
}

// alias expands one alias: "!text" goes to a shell, anything else is words
// before the arguments, global options included.
func (c *checker) alias(inv *invocation, value string) (next *invocation, out string, done bool) {
	if !isKnown(value) {
		c.undecided(strings.Join(inv.argv, " "), "an alias with an unknown value")
		return nil, unknownValue(kindOpen, "alias"), true
	}
	c.step(strings.Join(inv.argv, " "), "alias: "+value)
	if line, ok := strings.CutPrefix(value, "!"); ok {
		if len(inv.args) > 0 {
			line += ` "$@"`
		}
		st := inv.st.clone()
		st.params, st.dir = inv.args, inv.dir
		inv.export(st)
		return nil, c.shell(st, line), true
	}
	words := splitCommand(value)
	argv := slices.Concat([]string{"git"}, inv.globals, words, inv.args)
	// -C was applied once; reading the globals again applies it again to the
	// same starting directory, so the result is the same.
	n := c.readGlobals(inv.st, argv)
	c.execConfig(n)
	return n, "", false
}

// export hands configuration given with -c down to what an alias starts, as git
// does through GIT_CONFIG_PARAMETERS.
func (inv *invocation) export(st *state) {
	if len(inv.config) == 0 {
		return
	}
	var b strings.Builder
	for _, e := range inv.config {
		b.WriteString("'" + strings.ReplaceAll(e.key+"="+e.value, "'", `'\''`) + "' ")
	}
	st.setExported("GIT_CONFIG_PARAMETERS", b.String())
	delete(st.vars, "GIT_CONFIG_COUNT")
}

// op records an operation of this command.
func (k *call) op(op Operation) {
	excused := func() bool { return k.elsewhere(k.inv) }
	if leaves(op) && (k.name != "push" || !k.in.PushElsewhere) {
		excused = nil
	}
	k.operation(op, k.inv.argv, excused)
}

// global records an operation that reaches beyond the repository it names.
func (k *call) global(op Operation) { k.operation(op, k.inv.argv, nil) }

// leaves reports whether an operation sends something away: then it does not
// help that it starts in another repository, a clone pushes to its origin.
func leaves(op Operation) bool {
	return op == "push" || op == "lfs.push" || op == "send-email" || op == "svn.write"
}

// read records a command that changes nothing of the user's. It has the name of
// its subcommand, so that a deny list can name it.
func (k *call) read(name string) { k.operation(Operation(name), k.inv.argv, nil) }

// dryRun records the dry run of an operation.
func (k *call) dryRun(op Operation) {
	k.step(strings.Join(k.inv.argv, " "), "a dry run of "+string(op)+": allowed")
	k.allowed(Verdict{Decision: Allow, Operation: op, Certainty: Certain, Command: shown(k.inv.argv), Reason: "a dry run changes nothing"})
}

// maybe records an allowed operation that could be another one.
func (k *call) maybe(op Operation, why string) {
	k.op(op)
	k.undecided(strings.Join(k.inv.argv, " "), why)
}

// parse reads the arguments with the command's option table; done is true when
// the command only prints its usage.
func (k *call) parse(spec string) (p *parsed, done bool) {
	p = newSpec(spec).parse(k.args, false)
	if p.help {
		k.read("help")
	}
	return p, p.help
}

func (k *call) ask(f func(r Resolver, at At) Answer) Answer {
	if r, at, ok := k.resolver(k.inv); ok {
		return f(r, at)
	}
	return NotKnown
}

func (k *call) branch(name string) Answer {
	return k.known(name, func(r Resolver, at At) Answer { return r.Branch(k.ctx, at, name) })
}

func (k *call) revision(name string) Answer {
	return k.known(name, func(r Resolver, at At) Answer { return r.Revision(k.ctx, at, name) })
}

func (k *call) path(name string) Answer {
	return k.known(name, func(r Resolver, at At) Answer { return r.Path(k.ctx, at, name) })
}

func (k *call) known(name string, f func(r Resolver, at At) Answer) Answer {
	if !isKnown(name) {
		return NotKnown
	}
	return k.ask(f)
}
