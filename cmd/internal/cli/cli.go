// Package cli is superqode's command line: the kong grammar, one file per
// command group, and the output. It holds no domain logic: a command turns its
// flags into one options value, makes one call and prints the result.
//
// Rules of the output: stdout carries results only, everything else goes to
// stderr; with --json stdout holds one document (or one object a line) and
// nothing else; names and messages that a session's program chose are printed
// with control characters escaped. An error is one sentence on stderr, then a
// line "hint: …" where there is something to do about it; exit.go has the table
// of exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/session"
)

// IO is all that the command line takes from its process. Streams that are
// *os.File are asked whether they are terminals; others are not.
type IO struct {
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Env     []string         // KEY=VALUE
	Dir     string           // the current directory, absolute; "" when it was deleted
	Signals <-chan os.Signal // INT, TERM, HUP, QUIT, USR1 and USR2 as they arrive; may be nil
	Version string           // stamped by the build, or ""
	Shim    string           // the helper binary of sessions; "" finds it beside this program
}

// errHelp ends the parse after help was printed.
var errHelp = errors.New("help was printed")

// Main runs one command line and returns the exit code of docs/formats.md.
func Main(ctx context.Context, streams IO, args ...string) int {
	a := newApp(streams)
	if flags, check, ok := quickCheck(args); ok && !completes(a.Env) {
		a.flags = flags
		if err := a.setup("guard check", args); err != nil {
			return a.fail(err, "guard check")
		}
		return a.run(ctx, "guard check", func(ctx context.Context) error { return check.Run(ctx, a) })
	}
	word := commandWord(args)
	if completes(a.Env) {
		word = ""
	}
	parser, err := newParser(a, word)
	if err != nil {
		return a.fail(err, "")
	}
	if completes(a.Env) {
		a.complete(ctx, parser)
		return 0
	}
	if len(args) == 0 {
		return a.noCommand(parser)
	}
	kctx, err := parser.Parse(args)
	if errors.Is(err, errHelp) {
		return 0
	}
	if err != nil {
		a.flags.JSON = a.flags.JSON || wantsJSON(args)
		return a.fail(usageError(err), commandOf(err))
	}
	if err := a.setup(kctx.Command(), args); err != nil {
		return a.fail(err, kctx.Command())
	}
	return a.run(ctx, kctx.Command(), func(ctx context.Context) error {
		kctx.BindTo(ctx, (*context.Context)(nil))
		return kctx.Run()
	})
}

// run does what the command line asks for, prints its error and tidies up.
func (a *app) run(ctx context.Context, command string, do func(context.Context) error) int {
	if !runsProgram(command) {
		var stop func()
		ctx, stop = a.cancelOnSignal(ctx)
		defer stop()
	}
	err := a.call(ctx, do)
	if cause, ok := errors.AsType[*session.InterruptError](context.Cause(ctx)); ok && err != nil && !errors.Is(err, superqode.ErrVerification) {
		err = cause
	}
	code := a.fail(err, command)
	if a.manager != nil {
		if err := a.manager.Tidy(context.WithoutCancel(ctx)); err != nil {
			a.log.Warn().Err(err).Msg("sweep the trash")
		}
	}
	return code
}

// call runs the command. A panic is a failure of ours like any other: without
// this its exit code would be taken for the program's.
func (a *app) call(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = a.Err.Write(debug.Stack())
			err = superqode.WithHint(fmt.Errorf("internal error: %v", p), "report it with the lines above; superqode workspace recover")
		}
	}()
	return do(ctx)
}

// printHelp prints to stdout and ends the parse, so that nothing after --help
// is looked at.
func printHelp(options kong.HelpOptions, kctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, kctx); err != nil {
		return err
	}
	return errHelp
}

// noCommand prints help as advice: a line without a command is a usage error.
func (a *app) noCommand(parser *kong.Kong) int {
	parser.Stdout = a.Err
	if _, err := parser.Parse([]string{"--help"}); !errors.Is(err, errHelp) {
		return a.fail(err, "")
	}
	return exitCode(superqode.ErrUsage, "")
}

// wantsJSON looks for --json in a command line that could not be parsed.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json":
			return true
		}
	}
	return false
}

// usageError turns kong's complaint into a sentence with a hint.
func usageError(err error) error {
	help := strings.TrimSpace("superqode " + commandOf(err))
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s", err), "%s --help", help)
}

// commandOf returns the words of the command that a parse error belongs to.
func commandOf(err error) string {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return ""
	}
	var words []string
	for _, p := range parse.Context.Path {
		if p.Command != nil {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(words, " ")
}
