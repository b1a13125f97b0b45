package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/session"
)

// Globals are the flags that every command takes, before or after its name.
type Globals struct {
	Repo    string `short:"C" placeholder:"DIR" help:"Work on the repository that holds DIR (default: the current directory)." sep:"none"`
	Home    string `placeholder:"DIR" help:"Where sessions are kept (default: $$SUPERQODE_HOME, else ~/.superqode)." sep:"none"`
	JSON    bool   `name:"json" help:"Print the result as JSON."`
	Quiet   bool   `short:"q" help:"Print results and errors only."`
	Verbose int    `short:"v" type:"counter" help:"Tell more on stderr; twice: everything."`
	Color   string `enum:"auto,always,never" default:"auto" placeholder:"WHEN" help:"Colour the output: auto, always or never."`
	Config  string `placeholder:"FILE" help:"Read this configuration file instead of the origin's superqode.yaml." sep:"none"`
	NoInput bool   `name:"no-input" help:"Never ask."`
}

// app is what every command works with: the streams, the global flags and what
// follows from them.
type app struct {
	terminal
	In      io.Reader
	Env     []string         // KEY=VALUE
	Dir     string           // the current directory, absolute; "" when it was deleted
	Signals <-chan os.Signal // as they arrive; may be nil
	Version string           // stamped by the build, or ""
	Shim    string           // the helper binary of sessions; "" finds it beside this program

	flags   Globals
	log     zerolog.Logger
	printed bool // the command's one JSON document is on stdout
	manager *session.Manager
}

func newApp(streams IO) *app {
	if streams.In == nil {
		streams.In = strings.NewReader("")
	}
	return &app{
		terminal: terminal{Out: streams.Out, Err: streams.Err}, In: streams.In, Env: streams.Env, Dir: streams.Dir,
		Signals: streams.Signals, Version: streams.Version, Shim: streams.Shim, log: zerolog.Nop(),
	}
}

// setup draws the conclusions from the global flags and the environment.
// Without a directory to work in only the version can be told.
func (a *app) setup(command string, args []string) error {
	a.outTTY, a.errTTY = isTerminal(a.Out), isTerminal(a.Err)
	a.outColor, a.errColor, a.quiet = a.wantsColor(a.outTTY), a.wantsColor(a.errTTY), a.flags.Quiet
	level := zerolog.WarnLevel
	switch {
	case a.flags.Quiet:
		level = zerolog.ErrorLevel
	case a.flags.Verbose == 1:
		level = zerolog.InfoLevel
	case a.flags.Verbose > 1:
		level = zerolog.DebugLevel
	}
	a.log = zerolog.New(a.logWriter()).Level(level).With().Timestamp().Logger()
	for _, flag := range []*string{&a.flags.Repo, &a.flags.Home, &a.flags.Config} {
		*flag = a.abs(*flag)
	}
	if a.flags.Repo == "" {
		a.flags.Repo = a.Dir
	}
	if a.flags.Repo == "" && command != "version" {
		return superqode.WithHint(errors.New("the current directory was deleted"), "superqode -C DIR %s", commandText(args))
	}
	return nil
}

// logWriter gives people lines and programs JSON.
func (a *app) logWriter() io.Writer {
	if !a.errTTY {
		return a.Err
	}
	return zerolog.ConsoleWriter{Out: a.Err, NoColor: !a.errColor, TimeFormat: "15:04:05"}
}

// wantsColor obeys --color first, then NO_COLOR and TERM.
func (a *app) wantsColor(tty bool) bool {
	switch a.flags.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return tty && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// getenv returns a variable of the given environment.
func (a *app) getenv(key string) string { return superqode.Getenv(a.Env, key) }

// sessions makes the session manager on first use.
func (a *app) sessions() (*session.Manager, error) {
	if a.manager != nil {
		return a.manager, nil
	}
	home, err := session.HomeDir(a.flags.Home, a.Env)
	if err != nil {
		return nil, err
	}
	a.manager = session.NewManager(session.Config{Home: home, Env: a.Env, Log: a.log, Warn: a.warn, Version: a.version(), Shim: a.Shim, Progress: a.steps()})
	return a.manager, nil
}

// steps is what a session manager tells of its long steps, or nil.
func (a *app) steps() site.Progress {
	if !a.showsProgress() {
		return nil
	}
	a.progress = &progress{w: a.Err}
	return a.progress.begin
}

// showsProgress reports whether there is somebody to look: never with --json or
// -q, and never where stderr is no terminal.
func (a *app) showsProgress() bool {
	return a.errTTY && !a.flags.JSON && !a.flags.Quiet && a.getenv("TERM") != "dumb"
}

// configuration reads superqode.yaml and the layers around it.
func (a *app) configuration(ctx context.Context) (*config.Config, error) {
	return a.configurationFor(ctx, false)
}

// configurationFor is configuration for a command that may change nothing.
func (a *app) configurationFor(ctx context.Context, dryRun bool) (*config.Config, error) {
	if st, err := os.Stat(a.flags.Repo); err == nil && !st.IsDir() {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a directory", a.flags.Repo)
	}
	if m, err := a.sessions(); err == nil && !dryRun { // what a dead session's program planted is no configuration
		if _, err := m.RecoverInPlace(a.flags.Repo); err != nil {
			return nil, err
		}
	}
	cfg, err := config.Load(ctx, a.configSources())
	if a.flags.Config != "" && errors.Is(err, fs.ErrNotExist) {
		err = superqode.Errorf(superqode.ErrNotFound, "--config: %s does not exist", a.flags.Config)
	}
	return cfg, err
}

func (a *app) configSources() config.Sources {
	return config.Sources{OriginDir: originDir(a.flags.Repo), File: a.flags.Config, Env: a.Env}
}

// originDir returns the root of the work tree around dir, or dir itself. It asks
// the file system only: the answer says where superqode.yaml and .superqode lie,
// and a session asks git again.
func originDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// cancelOnSignal ends ctx when the process is told to stop. Commands that run a
// program hand the signals to it instead.
func (a *app) cancelOnSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if a.Signals == nil {
		return ctx, func() { cancel(nil) }
	}
	go func() {
		for {
			select {
			case sig := <-a.Signals:
				if s, ok := sig.(syscall.Signal); ok && s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
					cancel(&session.InterruptError{Signal: s})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// fail prints an error, if there is one, and returns the exit code.
func (a *app) fail(err error, command string) int {
	code, name := classify(err, command)
	if code == 0 || name == "status" || name == "pipe" {
		return code
	}
	sentence := strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "; ")
	hint := hintOf(err)
	fmt.Fprintf(a.Err, "%s %s\n", a.paintErr("superqode:", red), text.Printable(sentence))
	if hint != "" {
		fmt.Fprintf(a.Err, "hint: %s\n", text.Printable(hint))
	}
	if a.flags.JSON && !a.printed {
		werr := a.printJSON(jsonError{Error: errorBody{Code: name, Message: sentence, Hint: hint, Paths: errorPaths(err)}})
		if werr != nil && !errors.Is(werr, syscall.EPIPE) {
			fmt.Fprintf(a.Err, "superqode: %s\n", text.Printable(werr.Error()))
		}
	}
	return code
}

// hintOf returns an error's hint. A disk can be full at any write, so what helps
// then is not with each of them; a full stream is nothing that cleaning up helps.
func hintOf(err error) string {
	hint := superqode.Hint(err)
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if at, ok := errors.AsType[*fs.PathError](err); hint == "" && full && ok && !strings.HasPrefix(at.Path, "/dev/std") {
		return "superqode workspace cleanup"
	}
	return hint
}

// jsonError is the document of docs/formats.md.
type jsonError struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint"`
	Paths   []string `json:"paths"`
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// abs resolves a path from the command line; "" stays.
func (a *app) abs(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.Dir, path)
}
