package guard

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Exit codes of the shim, when git does not run.
const (
	exitDenied   = 3
	exitNotFound = 127
)

// ShimCall is one call of the shim: the program that stands in PATH, and in git's
// own folder of commands, under the name git.
type ShimCall struct {
	Exe  string   // the shim's own path, see StateOf
	Argv []string // argv[0] may be git, a path to it, or git-NAME
	Env  []string
	Dir  string // the working directory; "" when it cannot be told
	Err  io.Writer
}

// Shim decides on a git command. An allowed one replaces this process: git sees
// the same arguments, streams, directory and process number. Shim returns only
// when git did not start, with the exit code: 3 for a denial.
//
// Where the session's state cannot be read, what the default policy denies stays
// denied in every repository and everything else runs.
func Shim(ctx context.Context, c ShimCall) int {
	st, err := StateOf(c.Exe)
	if err != nil {
		return c.broken(ctx, err)
	}
	bin, ok := realGit(string(st.Git.Bin), c)
	if !ok {
		return c.noGit()
	}
	if st.Off {
		return c.exec(bin, c.Env)
	}
	c.Env = st.withoutPrivate(c.Env)
	in := Context{Dir: c.Dir, Env: c.Env, Find: func() Resolver { return newSessionResolver(st, bin, c.Env) }, Guarded: st.guarded(), PushElsewhere: len(st.HookEnv) > 0}
	for _, p := range st.UserConfig {
		in.UserConfig = append(in.UserConfig, string(p))
	}
	policy, err := st.Policy()
	if err == nil {
		in.Policy = policy // a list that cannot be read leaves the default, which denies more
	}
	v := Check(ctx, c.command(), in)
	if v.Denied() && !gitsOwn(ctx, st, bin, c, in.Policy, v.Operation) {
		a := Attempt{Operation: v.Operation, Command: c.command(), Layer: LayerShim, Dir: superqode.HostPath(c.Dir), Agent: st.Agent, Process: ownPID()}
		if !st.Consume(c.Env, a) {
			_, _ = io.WriteString(c.Err, v.Block(st)) // perhaps nobody listens
			if err := st.Report(c.Env, a); err != nil {
				fmt.Fprintf(c.Err, "superqode: this attempt could not be written down: %v\n", err)
			}
			return exitDenied
		}
	}
	return c.exec(bin, st.gitEnv(ctx, c, v))
}

// command is the argument list with git as its first word, and the command's name
// as the second where the program was called as git-NAME.
func (c ShimCall) command() []string {
	if len(c.Argv) == 0 {
		return []string{"git"}
	}
	if name, ok := strings.CutPrefix(filepath.Base(c.Argv[0]), "git-"); ok && name != "" {
		return append([]string{"git", name}, c.Argv[1:]...)
	}
	return append([]string{"git"}, c.Argv[1:]...)
}

// broken is a shim without a session's state: it was moved, or the state was
// deleted.
func (c ShimCall) broken(ctx context.Context, why error) int {
	bin, ok := realGit("", c)
	if !ok {
		return c.noGit()
	}
	v := Check(ctx, c.command(), Context{Dir: c.Dir, Env: c.Env, Resolver: newResolver(bin, c.Env)})
	if v.Denied() {
		_, _ = io.WriteString(c.Err, v.Block(nil))
		fmt.Fprintf(c.Err, "superqode: the session's state is not there, so the strictest rules hold: %v\n", why)
		return exitDenied
	}
	return c.exec(bin, c.Env)
}

func (c ShimCall) noGit() int {
	fmt.Fprintln(c.Err, "superqode: the real git is not where it was when the session began, and not in PATH")
	return exitNotFound
}

// Block is a denial for a person or a program at a terminal: what was refused,
// why, and what to do instead. st may be nil.
func (v Verdict) Block(st *SessionState) string {
	var b strings.Builder
	words := make([]string, 0, len(v.Command))
	for _, w := range (Attempt{Command: v.Command}).Tidy().Command {
		words = append(words, oneLine(w))
	}
	fmt.Fprintf(&b, "superqode: refused: %s\n", strings.Join(words, " "))
	fmt.Fprintf(&b, "  why: %s (operation %s)\n", v.Reason, v.Operation)
	if v.Suggestion != "" {
		fmt.Fprintf(&b, "  instead: %s\n", v.Suggestion)
	}
	if st != nil {
		id := st.ID.String()
		fmt.Fprintf(&b, "  the user, outside of the session, can let it through: superqode guard allow --session %s --once %s\n", id[strings.LastIndexByte(id, '-')+1:], v.Operation)
	}
	return b.String()
}

// oneLine shows a word without what would move a terminal's cursor.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
