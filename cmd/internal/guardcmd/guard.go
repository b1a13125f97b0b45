// Package guardcmd has the commands of the guard, and the configurations that make coding agents ask it.
package guardcmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Check decides on text.
type Check struct {
	Format  string   `default:"text" enum:"text,json,claude,codex,gemini,cursor,copilot" placeholder:"FORMAT" help:"text, json, or an agent's hook protocol: claude, codex, gemini, cursor, copilot."`
	Policy  string   `placeholder:"NAME" help:"What to refuse outside of a session (default: guard.policy): qe (all that changes what is the user's), contained (what leaves a session's own git directory) or destructive (what destroys work or leaves the machine)."`
	Explain bool     `help:"Explain on stderr how the line was read."`
	Line    []string `arg:"" optional:"" passthrough:"partial" name:"cmdline" help:"The command line, after --. One word is shell text, several are the words of one command. - or nothing reads stdin."`
}

// Run prints the verdict.
func (c *Check) Run(ctx context.Context, a *app.App) error {
	format, err := guard.ParseFormat(c.Format)
	if err != nil {
		return err
	}
	if a.Flags.JSON && format == guard.Text {
		format = guard.JSON
	}
	in, err := c.context(ctx, a)
	if err != nil {
		return err
	}
	text, err := c.input(a)
	if err != nil {
		return err
	}
	var reply guard.Reply
	request, rerr := guard.Decode(format, text)
	var line guard.Line
	if rerr == nil {
		line, rerr = decide(ctx, request, in)
	}
	if rerr != nil {
		reply, err = guard.Refuse(format, rerr)
	} else {
		c.explain(a, line)
		reply, err = guard.Encode(format, line)
	}
	if err != nil {
		return err
	}
	return a.PrintReply(reply)
}

// decide turns a fault of the guard's own into an answer: an agent takes a hook that
// dies for one that has nothing against it.
func decide(ctx context.Context, r guard.Request, in guard.Context) (line guard.Line, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the guard failed on this line: %v", fault)
		}
	}()
	return shelltext.CheckRequest(ctx, r, in), nil
}

// context is where the line would run and what may answer questions about it.
func (c *Check) context(ctx context.Context, a *app.App) (guard.Context, error) {
	in := guard.Context{Dir: a.Flags.Repo, Env: a.Env}
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return in, err
	}
	name := guard.PolicyName(cmp.Or(c.Policy, cfg.Guard.Policy))
	if id := a.Getenv("SUPERQODE_SESSION_ID"); id != "" { // an agent's hooks are the same there
		name = guard.QE
		st, err := guard.LoadSessionState(filepath.Dir(a.Getenv("SUPERQODE_SOCKET")))
		if err == nil && st.ID.String() == id {
			name, in.Own = guard.PolicyName(st.Base), st.Own
		}
	} else if c.Policy == "" {
		in.Own = func(guard.Found, bool) bool { return false } // the configuration speaks of sessions
	}
	if in.Policy, err = name.Policy(cfg.Guard.Allow, cfg.Guard.Deny); err != nil {
		return in, err
	}
	in.Find = func() guard.Resolver {
		g, err := git.Locate(a.Env, a.Avoid()...)
		if err != nil { // without git the text alone has to do
			return nil
		}
		return guard.NewGitResolver(g.Bin, a.Env)
	}
	return in, nil
}

// input is the line on the command line, or standard input.
func (c *Check) input(a *app.App) (io.Reader, error) {
	words := c.Line
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	switch {
	case len(words) == 0, len(words) == 1 && words[0] == "-":
		return a.In, nil
	case len(words) == 1:
		return strings.NewReader(words[0]), nil
	}
	var line bytes.Buffer
	for i, w := range words {
		if i > 0 {
			line.WriteByte(' ')
		}
		quoted, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "%q cannot be a word of a command line: %v", w, err)
		}
		line.WriteString(quoted)
	}
	return &line, nil
}

// explain shows the steps that led to the verdict.
func (c *Check) explain(a *app.App, line guard.Line) {
	if !c.Explain {
		return
	}
	for _, s := range line.Steps {
		indent := strings.Repeat("  ", s.Depth)
		fmt.Fprintf(a.Err, "%s%s\n%s  %s\n", indent, text.Printable(s.Text), indent, text.Printable(s.Note))
	}
}
