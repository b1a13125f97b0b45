// Package shelltext decides whether a line of shell text may run: what a coding
// agent's pre-tool hook sees.
//
// The text is read with a real shell parser and followed through pipes, wrappers
// (env, sudo, xargs, find -exec), nested shells, functions, variables with known
// values and one-line programs to the git commands that it would run; package guard
// decides on those. Words that are not executed (commit messages, search patterns,
// prose in a here-document) are not commands.
//
// What the text leaves open (a script on disk, a variable from outside, what a
// program prints) is let through with Certainty Unknown. This is no defense against
// text that hides what it does: the shim, the hooks and the kernel layer stand
// behind it and see the command when it runs.
package shelltext

import (
	"context"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// Check decides on a line (or a whole script) of POSIX shell or bash text.
func Check(ctx context.Context, text string, in guard.Context) guard.Line {
	r := newReader(ctx, in)
	r.shell(r.newState(), cmdline.Plain(strings.ReplaceAll(text, "\x00", "")))
	return r.Line()
}

// CheckArgs decides on the argument list of one git command as guard.Check does, and
// reads what that command hands to a shell.
func CheckArgs(ctx context.Context, argv []string, in guard.Context) guard.Verdict {
	r := newReader(ctx, in)
	words := append([]string{"git"}, argv[min(1, len(argv)):]...)
	if len(argv) > 0 {
		if sub, ok := guard.Program(argv[0]); ok {
			words = append(append(words[:1:1], sub...), words[1:]...)
		}
	}
	for i, w := range words {
		words[i] = cmdline.Plain(w)
	}
	r.git(r.newState(), words)
	return r.Line().Verdict
}

// CheckRequest decides on what an agent is about to do: its command line, or the
// files that its tool writes.
func CheckRequest(ctx context.Context, req guard.Request, in guard.Context) guard.Line {
	if req.Dir != "" {
		if in.Dir = cmdline.Under(in.Dir, req.Dir); !strings.HasPrefix(in.Dir, "/") {
			in.Dir = ""
		}
	}
	switch {
	case req.After:
		return guard.Line{Verdict: guard.Verdict{Decision: guard.Allow, Certainty: guard.Certain,
			Reason: "the event asks for no decision"}}
	case req.Command != "":
		return Check(ctx, req.Command, in)
	}
	r := newReader(ctx, in)
	st := r.newState()
	for _, w := range req.Writes {
		r.protect(st, req.Tool, cmdline.Plain(w))
	}
	line := r.Line()
	if !line.Denied() {
		line.Reason = "the tool runs no shell command"
	}
	return line
}
