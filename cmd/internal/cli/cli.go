// Package cli is superqode's command line: Main, the kong grammar (grammar.go has every command), and
// the few commands that are about superqode itself. The others stand in packages beside it, one for
// each group. A command turns its flags into one options value, makes one call to the library and
// prints the result.
//
// Rules of the output: stdout carries results only, everything else goes to stderr; with --json stdout
// holds one document (or one object a line) and nothing else; names and messages that a session's
// program chose are printed with control characters escaped. An error is one sentence on stderr, then
// a line "hint: …" where there is something to do about it; package app has the table of exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/completion"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/text"
)

// errHelp ends the parse after help was printed.
var errHelp = errors.New("help was printed")

// IO is what the command line takes from its process.
type IO = app.IO

// Main runs one command line and returns the exit code of docs/formats.md.
func Main(ctx context.Context, streams IO, args ...string) int {
	a := app.New(streams)
	args = asCommand(a, args)
	if flags, check, ok := quickCheck(args); ok && !completion.Completes(a.Env) {
		a.Flags = flags
		if err := a.Setup("guard check", args); err != nil {
			return a.Fail(err, "guard check")
		}
		return run(ctx, a, "guard check", func(ctx context.Context) error { return check.Run(ctx, a) })
	}
	word, sub := commandWords(args)
	if completion.Completes(a.Env) {
		word = ""
	}
	parser, err := newParser(a, word, sub)
	if err != nil {
		return a.Fail(err, "")
	}
	if completion.Completes(a.Env) {
		completion.Complete(ctx, a, parser)
		return 0
	}
	if len(args) == 0 {
		return noCommand(a, parser)
	}
	kctx, err := parser.Parse(args)
	if errors.Is(err, errHelp) {
		return 0
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // help could not be printed
		return a.Fail(err, "")
	}
	if err != nil {
		a.Flags.JSON = a.Flags.JSON || wantsJSON(args)
		return a.Fail(usageError(err, args), commandOf(err))
	}
	if err := a.Setup(kctx.Command(), args); err != nil {
		return a.Fail(err, kctx.Command())
	}
	return run(ctx, a, kctx.Command(), func(ctx context.Context) error {
		kctx.BindTo(ctx, (*context.Context)(nil))
		return kctx.Run()
	})
}

// asCommand takes the ways of asking for help and version that other programs have.
func asCommand(a *app.App, args []string) []string {
	if i := slices.Index(args, "--help-all"); i >= 0 && !slices.Contains(args[:i], "--") {
		a.HelpAll = true
		return append(slices.Clone(args[:i]), "--help")
	}
	switch {
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// run does what the command line asks for, prints its error and tidies up.
func run(ctx context.Context, a *app.App, command string, do func(context.Context) error) int {
	if !app.RunsProgram(command) {
		var stop func()
		ctx, stop = a.CancelOnSignal(ctx)
		defer stop()
	}
	began := time.Now()
	err := call(ctx, a, func(ctx context.Context) error {
		if notices(command) {
			if err := a.Notice(ctx); err != nil {
				return err
			}
		}
		return do(ctx)
	})
	a.Done()
	cause, interrupted := errors.AsType[*program.InterruptError](context.Cause(ctx))
	if interrupted && err != nil && !errors.Is(err, superqode.ErrVerification) {
		err = cause
	}
	code := a.Fail(err, command)
	if a.Manager != nil {
		if command == "run" || strings.HasPrefix(command, "run ") || command == "workspace end" {
			cleanStale(ctx, a, began)
		}
		if err := a.Manager.Tidy(context.WithoutCancel(ctx)); err != nil {
			a.Log.Warn().Err(err).Msg("sweep the trash")
		}
	}
	return code
}

// staleTime is how long the command that ended a session goes on to clean up others.
const staleTime = 50 * time.Millisecond

// cleanStale removes sessions that ended long ago, for who never runs workspace cleanup.
// It comes after the command's own work and says nothing of what it could not do.
func cleanStale(ctx context.Context, a *app.App, began time.Time) {
	if ctx.Err() != nil || a.Getenv("SUPERQODE_SOCKET") != "" { // a session's program sees to no other session
		return
	}
	cfg := a.Loaded
	if cfg == nil {
		var err error
		if cfg, err = a.Configuration(ctx); err != nil {
			return
		}
	}
	opt := gc.CleanupOptions{Dir: a.Flags.Repo, OlderThan: max(cfg.Workspace.CleanupAfter, time.Since(began))}
	n, err := a.Manager.Collector().Stale(ctx, opt, staleTime)
	if err != nil {
		a.Log.Debug().Err(err).Msg("clean up stale sessions")
	}
	if n > 0 {
		a.Note("cleaned up %s that nobody used for %s (workspace.cleanup_after_hours)", text.Plural(n, "session"), text.Age(opt.OlderThan))
	}
}

// notices reports whether a command looks for sessions that died before it does its own
// work: the others that work on sessions do it themselves, and docs/recovery.md names
// those that never do.
func notices(command string) bool {
	for _, name := range []string{
		"artifacts ", "claim acquire", "claim list", "claim release", "config show", "finding ", "guard allow",
		"guard install", "guard status", "guard uninstall", "trust", "watch", "workspace blame", "workspace changes",
		"workspace conflicts", "workspace diff", "workspace info", "workspace logs", "workspace path", "workspace ps",
		"workspace restore", "workspace verify",
	} {
		if strings.HasPrefix(command, name) {
			return true
		}
	}
	return false
}

// call runs the command. A panic is a failure of ours like any other: without
// this its exit code would be taken for the program's.
func call(ctx context.Context, a *app.App, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = a.Err.Write(debug.Stack())
			err = fmt.Errorf("internal error: %v", p)
			err = superqode.WithHint(err, "report it with the lines above; superqode workspace recover")
		}
	}()
	return do(ctx)
}

// noCommand prints help as advice: a line without a command is a usage error.
func noCommand(a *app.App, parser *kong.Kong) int {
	parser.Stdout = a.Err
	if _, err := parser.Parse([]string{"--help"}); !errors.Is(err, errHelp) {
		return a.Fail(err, "")
	}
	return app.ExitCode(superqode.ErrUsage, "")
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
