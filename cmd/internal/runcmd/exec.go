package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/text"
)

// programFlags say what is run, where that is no plain command line, and what it
// reads.
type programFlags struct {
	Stdin      string `type:"stdin" placeholder:"FILE" sep:"none" help:"Let the program read FILE as its stdin."`
	TTY        bool   `name:"tty" help:"Give the program a terminal even if superqode has none."`
	Lang       string `placeholder:"LANG" help:"Language of --code-file: python or bash (default: by file extension)."`
	CodeFile   string `type:"somepath" placeholder:"FILE" sep:"none" xor:"code" help:"Run the code in FILE (- for stdin) with CMD as its arguments."`
	CodeBlocks string `type:"somepath" placeholder:"FILE" sep:"none" xor:"code" help:"Run the fenced python and bash blocks of a Markdown file (- for stdin) in order."`

	usage  string                // how a line that names a program looks; "" is that of run
	blocks []program.BlockResult // of --code-blocks, as they ended
	notRun []program.Block       // those of other languages
}

// set fills in what opt runs; args are what stands after the flags. close what is
// returned.
func (f *programFlags) set(
	ctx context.Context, a *app.App, opt *program.ExecOptions, args []string,
) (io.Closer, error) {
	nothing := io.NopCloser(nil)
	opt.TTY = f.TTY
	code, err := f.code(ctx, a, opt)
	if err != nil {
		return nothing, err
	}
	if code {
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		opt.Args = args
	} else if opt.Args, err = programArgs(args, cmp.Or(f.usage, runUsage)); err != nil {
		return nothing, err
	}
	switch {
	case f.Stdin == "-" && f.fromStdin():
		return nothing, superqode.Errorf(superqode.ErrUsage, "--stdin -: stdin already provides the code")
	case f.Stdin == "", f.Stdin == "-":
		return nothing, nil
	}
	file, err := openInput(ctx, a, "--stdin", f.Stdin)
	if err != nil {
		return nothing, err
	}
	opt.Stdin = file
	return file, nil
}

func (f *programFlags) fromStdin() bool { return f.CodeFile == "-" || f.CodeBlocks == "-" }

// code reads the code that is to be run, if there is any.
func (f *programFlags) code(ctx context.Context, a *app.App, opt *program.ExecOptions) (bool, error) {
	if f.fromStdin() {
		opt.Stdin = nil
	}
	switch {
	case f.CodeBlocks != "":
		if f.Lang != "" {
			return false, superqode.Errorf(superqode.ErrUsage,
				"--lang %s: the blocks of --code-blocks name their own language", f.Lang)
		}
		data, err := readInput(ctx, a, "--code-blocks", f.CodeBlocks)
		if err != nil {
			return false, err
		}
		if opt.Blocks, f.notRun, err = program.ParseBlocks(data); err != nil {
			return false, superqode.Errorf(superqode.ErrUsage, "--code-blocks %s: %v", f.CodeBlocks, err)
		}
		for _, b := range f.notRun {
			if !a.Flags.Quiet {
				fmt.Fprintf(a.Err, "superqode: block in line %d (%s) is not run: only python and bash are\n", b.Line, text.Printable(b.Lang))
			}
		}
		opt.BlockEnded = func(b program.BlockResult) {
			f.blocks = append(f.blocks, b)
			tellBlock(a, b)
		}
		return true, nil
	case f.CodeFile != "":
		word := cmp.Or(f.Lang, strings.TrimPrefix(filepath.Ext(f.CodeFile), "."))
		if word == "" {
			return false, superqode.Errorf(superqode.ErrUsage,
				"--code-file %s: unknown extension; add --lang python or --lang bash", f.CodeFile)
		}
		lang, err := program.ParseLang(word)
		if err != nil {
			return false, err
		}
		data, err := readInput(ctx, a, "--code-file", f.CodeFile)
		opt.Code = &program.Code{Lang: lang, Text: data}
		return true, err
	case f.Lang != "":
		err := superqode.Errorf(superqode.ErrUsage, "--lang %s requires --code-file", f.Lang)
		return false, superqode.WithHint(err, "superqode workspace exec --lang %s --code-file FILE", f.Lang)
	}
	return false, nil
}

// maxCode is how much code is read: it is held in memory.
const maxCode = 16 << 20

func readInput(ctx context.Context, a *app.App, flag, name string) ([]byte, error) {
	var in io.Reader = a.In
	if name != "-" {
		f, err := openInput(ctx, a, flag, name)
		if err != nil {
			return nil, err
		}
		defer f.Close() // read only
		in = f
	}
	data, err := untilSignal(ctx, a, func() ([]byte, error) { return io.ReadAll(io.LimitReader(in, maxCode+1)) })
	if _, interrupted := errors.AsType[*program.InterruptError](err); interrupted {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, name, err)
	}
	if len(data) > maxCode {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s %s: more than %s", flag, name, text.Size(maxCode))
	}
	return data, nil
}

// untilSignal returns what wait returns, or the signal that ends this process
// meanwhile. The program that would be handed the signals is not there yet.
func untilSignal[T any](ctx context.Context, a *app.App, wait func() (T, error)) (T, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := wait()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// openInput opens a file that a flag names. Opening a named pipe waits for who
// writes to it.
func openInput(ctx context.Context, a *app.App, flag, name string) (*os.File, error) {
	open := func() (*os.File, error) { return os.Open(a.Abs(name)) }
	if st, err := os.Stat(a.Abs(name)); err == nil && st.Mode()&os.ModeNamedPipe != 0 {
		direct := open
		open = func() (*os.File, error) { return untilSignal(ctx, a, direct) }
	}
	f, err := open()
	if _, interrupted := errors.AsType[*program.InterruptError](err); interrupted {
		return nil, err
	}
	if os.IsNotExist(err) {
		return nil, superqode.Errorf(superqode.ErrNotFound, "%s: %s does not exist", flag, text.Printable(name))
	}
	if err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s: %v", flag, err)
	}
	if st, err := f.Stat(); err != nil || st.IsDir() {
		_ = f.Close()
		return nil, superqode.Errorf(superqode.ErrUsage, "%s: %s is a folder", flag, text.Printable(name))
	}
	return f, nil
}

// tellBlock reports how one block of --code-blocks ended.
func tellBlock(a *app.App, b program.BlockResult) {
	if a.Flags.Quiet {
		return
	}
	how := fmt.Sprintf("exit code %d", b.ExitCode)
	switch {
	case b.Error != "":
		how = text.Printable(b.Error)
	case b.Limit != "":
		how += ", limit " + b.Limit
	case b.TimedOut:
		how += ", timed out"
	}
	took := text.Took(b.DurationSeconds)
	fmt.Fprintf(a.Err, "superqode: block %d (%s, line %d): %s after %s\n", b.Index, b.Lang, b.Line, how, took)
}

// Exec runs one more program in a session.
type Exec struct {
	app.SessionFlag
	execFlags
	programFlags
	Detach bool     `short:"d" help:"Run in the background and print the run's number; see workspace logs, ps, send and kill. With --stdin and no FILE, workspace send writes to the program."`
	Cmd    []string `arg:"" optional:"" passthrough:"partial" name:"cmd" placeholder:"CMD" help:"The program and its arguments, after --."`
}

// Run passes the program's exit code through.
func (c *Exec) Run(ctx context.Context, a *app.App) error {
	opt, err := c.execFlags.options(a, nil)
	if err != nil {
		return err
	}
	c.usage = "superqode workspace exec --session ID -- CMD [ARG…]"
	in, err := c.set(ctx, a, &opt, c.Cmd)
	if err != nil {
		return err
	}
	defer in.Close()
	if opt.KernelOptions, err = c.kernelFlags.options(a, nil); err != nil {
		return err
	}
	if _, err := program.CheckLimits(opt.Defaults()); err != nil {
		return err
	}
	s, err := c.Attach(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	if c.Detach {
		return c.detach(ctx, a, s, opt)
	}
	run := 0
	opt.Started = func(n int) { run = n }
	res, err := s.ExecAll(ctx, opt)
	if a.Flags.JSON && !res.Started.IsZero() {
		perr := printRuns(a, s, run, &c.programFlags, app.ProgramError(res.ExitCode, err))
		err = errors.Join(err, perr)
	}
	return app.ProgramError(res.ExitCode, err)
}

// Shell starts the user's shell in a session, as Exec does any program.
type Shell struct {
	app.SessionFlag
	execFlags
}

// Run passes the shell's exit code through.
func (c *Shell) Run(ctx context.Context, a *app.App) error {
	shell := cmp.Or(a.Getenv("SHELL"), "/bin/sh")
	if a.ErrTTY {
		l, err := c.Find(ctx, a)
		if err != nil {
			return err
		}
		a.Note("superqode: %s in session %s; exit leaves it open", text.Printable(filepath.Base(shell)), cmp.Or(l.Name, l.ID.String()))
	}
	exec := Exec{SessionFlag: c.SessionFlag, execFlags: c.execFlags, Cmd: []string{"--", shell}}
	return exec.Run(ctx, a)
}

// detach starts the program under a supervisor of its own.
func (c *Exec) detach(ctx context.Context, a *app.App, s *life.Session, opt program.ExecOptions) error {
	stdin := ""
	switch {
	case c.Stdin == "-" && len(opt.Blocks) > 0:
		return superqode.Errorf(superqode.ErrUsage, "--detach --code-blocks: --stdin must name a file")
	case c.Stdin == "-":
		stdin = attach.SendStdin
	case c.Stdin != "":
		stdin = a.Abs(c.Stdin)
	}
	run, err := s.Detach(ctx, opt, stdin)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintFields("session_id", s.Record().ID, "run", run)
	}
	return a.Line("%d", run)
}

// Supervise supervises a detached run; superqode starts itself with it.
type Supervise struct{}

// Run answers on stdout; who started it reads that.
func (*Supervise) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	out, ok := a.Out.(io.WriteCloser)
	if !ok {
		return superqode.Errorf(superqode.ErrUsage, "%s is for superqode's own use", attach.DetachCommand)
	}
	return attach.Supervise(ctx, m.Host, a.In, out, a.Signals)
}
