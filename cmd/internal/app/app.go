// Package app is what every command of superqode works with: the streams and the global flags, the
// configuration and the sessions, which are opened when they are first asked for, the flag types that
// several commands have, and the table of exit codes.
package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/term"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Globals are the flags that every command takes, before or after its name.
type Globals struct {
	Repo    string `predictor:"file" short:"C" placeholder:"DIR" help:"Use the repository that contains DIR (default: the current directory)." sep:"none"`
	Home    string `predictor:"file" placeholder:"DIR" help:"The folder for sessions (default: $$SUPERQODE_HOME or ~/.superqode)." sep:"none"`
	JSON    bool   `name:"json" help:"Print the result as JSON."`
	Quiet   bool   `short:"q" help:"Print results and errors only."`
	Verbose int    `short:"v" type:"counter" help:"Log a session's states to stderr; -vv also each step and each git command that superqode itself runs."`
	Color   string `enum:"auto,always,never" default:"auto" placeholder:"WHEN" help:"Colour the output: auto, always or never."`
	Config  string `predictor:"file" placeholder:"FILE" help:"Read this configuration file instead of the origin's superqode.yaml." sep:"none"`
	NoInput bool   `name:"no-input" help:"Never prompt."`
}

// App is what every command works with: the streams, the global flags and what
// follows from them.
type App struct {
	term.Terminal
	In      io.Reader
	Env     []string         // KEY=VALUE
	Dir     string           // the current directory, absolute; "" when it was deleted
	Signals <-chan os.Signal // as they arrive; may be nil
	Version string           // stamped by the build, or ""
	Shim    string           // the helper binary of sessions; "" finds it beside this program

	Flags   Globals
	Log     zerolog.Logger
	printed bool // the command's one JSON document is on stdout
	Manager *life.Manager

	Loaded   *config.Config // what Configuration returned last, nil before that
	HelpAll  bool           // --help-all: help shows every flag
	attached *life.Session  // of the command's SessionFlag
}

// New makes the App of one command line; Setup follows when the flags are known.
func New(streams IO) *App {
	if streams.In == nil {
		streams.In = strings.NewReader("")
	}
	return &App{
		Terminal: term.Terminal{Out: streams.Out, Err: streams.Err}, In: streams.In, Env: streams.Env, Dir: streams.Dir,
		Signals: streams.Signals, Version: streams.Version, Shim: streams.Shim, Log: zerolog.Nop(),
	}
}

// Setup draws the conclusions from the global flags and the environment.
// Without a directory to work in only the version can be printed.
func (a *App) Setup(command string, args []string) error {
	a.OutTTY, a.ErrTTY = term.IsTerminal(a.Out), term.IsTerminal(a.Err)
	a.OutColor, a.ErrColor, a.Quiet = a.wantsColor(a.OutTTY), a.wantsColor(a.ErrTTY), a.Flags.Quiet
	level := zerolog.WarnLevel
	switch {
	case a.Flags.Quiet:
		level = zerolog.ErrorLevel
	case a.Flags.Verbose == 1:
		level = zerolog.InfoLevel
	case a.Flags.Verbose > 1:
		level = zerolog.DebugLevel
	}
	a.Log = zerolog.New(a.logWriter()).Level(level).With().Timestamp().Logger()
	for _, flag := range []*string{&a.Flags.Repo, &a.Flags.Home, &a.Flags.Config} {
		*flag = a.Abs(*flag)
	}
	if a.Flags.Repo == "" {
		a.Flags.Repo = a.Dir
	}
	if a.Flags.Repo == "" && command != "version" {
		err := errors.New("the current directory was deleted")
		return superqode.WithHint(err, "superqode -C DIR %s", text.QuoteLine(args...))
	}
	return nil
}

// logWriter gives people lines and programs JSON.
func (a *App) logWriter() io.Writer {
	if !a.ErrTTY {
		return a.Err
	}
	return zerolog.ConsoleWriter{Out: a.Err, NoColor: !a.ErrColor, TimeFormat: "15:04:05"}
}

// wantsColor obeys --color first, then NO_COLOR and TERM.
func (a *App) wantsColor(tty bool) bool {
	switch a.Flags.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return tty && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

// Getenv returns a variable of the given environment.
func (a *App) Getenv(key string) string { return superqode.Getenv(a.Env, key) }

// TempDir is where temporary files go.
func (a *App) TempDir() string { return cmp.Or(a.Getenv("TMPDIR"), "/tmp") }

// Sessions makes the session manager on first use.
func (a *App) Sessions() (*life.Manager, error) {
	if a.Manager != nil {
		return a.Manager, nil
	}
	home, err := life.HomeDir(a.Flags.Home, a.Env)
	if err != nil {
		return nil, err
	}
	var told sync.Map
	warn := func(line string) {
		if _, again := told.LoadOrStore(line, true); !again {
			a.Warn(line)
		}
	}
	a.Manager = life.NewManager(life.Config{
		Program: Self(), Home: home, Env: a.Env, Log: a.Log, Warn: warn, Version: a.BuildVersion(), Shim: a.Shim, Progress: a.steps(),
		ExitCode: func(err error) int { return ExitCode(err, "run") },
	})
	a.Manager.Dir = a.Flags.Repo
	return a.Manager, nil
}

// Self is superqode's own binary, "" where the system does not say.
func Self() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	return exe
}

// Avoid lists the folders that git is not taken from.
func (a *App) Avoid() []string {
	m, err := a.Sessions()
	if err != nil { // no home, and no sessions
		return []string{git.Top(a.Flags.Repo)}
	}
	return m.Avoid()
}

// Done closes the session that the command took as a parameter.
func (a *App) Done() {
	if a.attached != nil {
		_ = a.attached.Close() // its lock goes with the process in any case
	}
}

// steps is what a session manager tells of its long steps, or nil.
func (a *App) steps() site.Progress {
	if !a.showsProgress() {
		return nil
	}
	a.Progress = &term.Progress{W: a.Err}
	return a.Progress.Begin
}

// showsProgress reports whether there is somebody to look: never with --json or
// -q, and never where stderr is no terminal.
func (a *App) showsProgress() bool {
	return a.ErrTTY && !a.Flags.JSON && !a.Flags.Quiet && a.Getenv("TERM") != "dumb"
}

// Configuration reads superqode.yaml and the layers around it.
func (a *App) Configuration(ctx context.Context) (*config.Config, error) {
	return a.ConfigurationFor(ctx, false)
}

// ConfigurationFor is configuration for a command that may change nothing.
func (a *App) ConfigurationFor(ctx context.Context, dryRun bool) (*config.Config, error) {
	if st, err := os.Stat(a.Flags.Repo); err == nil && !st.IsDir() {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a directory", a.Flags.Repo)
	}
	if m, err := a.Sessions(); err == nil && !dryRun { // what a dead session's program planted is no configuration
		if _, err := m.RecoverInPlace(a.Flags.Repo); err != nil {
			return nil, err
		}
	}
	cfg, err := config.Load(ctx, a.ConfigSources())
	if a.Flags.Config != "" && errors.Is(err, fs.ErrNotExist) {
		err = superqode.Errorf(superqode.ErrNotFound, "--config: %s does not exist", a.Flags.Config)
	}
	a.Loaded = cfg
	return cfg, err
}

// Notice is for a command that works on no session: an origin that a dead one left
// changed is brought back, and others that died are told of.
func (a *App) Notice(ctx context.Context) error {
	m, err := a.Sessions()
	if err != nil || a.Getenv("SUPERQODE_SOCKET") != "" { // a session's program sees to no other session
		return nil
	}
	if _, err := m.RecoverInPlace(a.Flags.Repo); err != nil {
		return err
	}
	if o, err := m.Resolve(ctx, a.Flags.Repo); err == nil {
		m.NoticeDead(m.ProjectOf(o))
	}
	return nil
}

// ConfigSources is where the configuration is read from.
func (a *App) ConfigSources() config.Sources {
	return config.Sources{OriginDir: OriginDir(a.Flags.Repo), File: a.Flags.Config, Env: a.Env}
}

// OriginDir returns the root of the work tree around dir, or dir itself. It asks
// the file system only: the answer says where superqode.yaml and .superqode lie,
// and a session asks git again.
func OriginDir(dir string) string {
	if top := git.Top(dir); top != "" {
		return top
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// CancelOnSignal ends ctx when the process gets a signal to stop. Commands that
// run a program hand the signals to it instead.
func (a *App) CancelOnSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if a.Signals == nil {
		return ctx, func() { cancel(nil) }
	}
	go func() {
		for {
			select {
			case sig := <-a.Signals:
				if s, ok := sig.(syscall.Signal); ok && s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
					cancel(&program.InterruptError{Signal: s})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Fail prints an error, if there is one, after the last lines of a setup's command that failed, and
// returns the exit code.
func (a *App) Fail(err error, command string) int {
	code, name := Classify(err, command)
	if code == 0 || name == "status" || name == "pipe" {
		return code
	}
	sentence, hint := sentenceOf(err), hintOf(err)
	if failed, ok := errors.AsType[*setup.Error](err); ok && failed.Step.Output != "" {
		for line := range strings.SplitSeq(failed.Step.Output, "\n") {
			a.Note("  %s", text.Printable(line))
		}
	}
	fmt.Fprintf(a.Err, "%s %s\n", a.PaintErr("superqode:", term.Red), text.Printable(sentence))
	if hint != "" {
		fmt.Fprintf(a.Err, "hint: %s\n", text.Printable(hint))
	}
	if a.Flags.JSON && !a.printed {
		if werr := a.PrintJSON(map[string]any{"error": errorBody(err, name)}); werr != nil && !errors.Is(werr, syscall.EPIPE) {
			fmt.Fprintf(a.Err, "superqode: %s\n", text.Printable(werr.Error()))
		}
	}
	return code
}

// PrintJSON prints the command's one document. An error that follows is not printed
// as another one.
func (a *App) PrintJSON(v any) error {
	a.printed = true
	return a.PrintLine(v)
}

// hintOf returns an error's hint. A disk can be full at any write, so what helps
// then is not with each of them; a full stream is nothing that cleaning up helps.
func hintOf(err error) string {
	hint := superqode.Hint(err)
	full := site.IsFull(err)
	at, ok := errors.AsType[*fs.PathError](err)
	if hint == "" && full && ok && !strings.HasPrefix(at.Path, "/dev/std") {
		return "superqode workspace cleanup"
	}
	return hint
}

// PrintFields prints a document of schema_version and then, in their order, keys
// and values by turns. A nil list is written as an empty one.
func (a *App) PrintFields(keysAndValues ...any) error {
	var doc bytes.Buffer
	doc.WriteString(`{"schema_version":1`)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		value := keysAndValues[i+1]
		if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.IsNil() {
			value = []struct{}{}
		}
		fmt.Fprintf(&doc, ",%q:", keysAndValues[i])
		if err := term.WriteJSON(&doc, value); err != nil {
			return err
		}
	}
	doc.WriteByte('}')
	return a.PrintJSON(json.RawMessage(doc.Bytes()))
}

// ErrorBody is an error in a command's JSON document.
type ErrorBody struct {
	Code string `json:"code"` // the same as the kind, by its older name
	artifacts.Failure
}

// ErrorField is the error as a field of a document that tells of more.
func ErrorField(err error) ErrorBody {
	_, kind := Classify(err, "")
	return errorBody(err, kind)
}

func errorBody(err error, kind string) ErrorBody {
	nothingDone := slices.Contains([]string{"locked", "not_found", "usage"}, kind) // found before anything is changed
	return ErrorBody{Code: kind, Failure: failure(err, kind, nothingDone)}
}

func failure(err error, kind string, retrySafe bool) artifacts.Failure {
	return artifacts.Failure{Kind: kind, Message: sentenceOf(err), Hint: hintOf(err), RetrySafe: retrySafe, Paths: ErrorPaths(err)}
}

// sentenceOf returns an error's text in one line.
func sentenceOf(err error) string {
	return strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "; ")
}

// WithError puts the error that a command ends with into a session's result, and the
// exit code that it ends with.
func WithError(res artifacts.Result, err error, command string) *artifacts.Result {
	code, kind := Classify(err, command)
	if kind == "" || kind == "status" { // nothing of ours
		return &res
	}
	res.ExitCode = code
	res.Error = new(failure(err, kind, res.OriginCheck.Unchanged && !res.Applied.Done()))
	return &res
}

// PrintReply answers the coding agent whose hook asked.
func (a *App) PrintReply(reply guard.Reply) error {
	_, werr := a.Err.Write(reply.Stderr)
	_, oerr := a.Out.Write(reply.Stdout)
	if err := errors.Join(werr, oerr); err != nil {
		return err
	}
	if reply.Code != 0 {
		return StatusError(reply.Code)
	}
	return nil
}

// Abs resolves a path from the command line; "" stays.
func (a *App) Abs(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.Dir, path)
}

// Store opens the artifacts of the origin around the folder that is worked on. In
// a session's workspace they are those of the session's origin, and below an origin
// without git those of the nearest folder that has some.
func (a *App) Store() (*artifacts.Store, error) {
	dir := a.Flags.Repo
	if m, err := a.Sessions(); err == nil { // without a home there is no workspace
		if origin, ok := registry.OriginOf(m.Host, dir); ok {
			return artifacts.Open(origin)
		}
	}
	top := OriginDir(dir)
	if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
		return artifacts.Open(top)
	}
	for d := top; d != filepath.Dir(d); d = filepath.Dir(d) {
		if st, err := os.Lstat(filepath.Join(d, ".superqode", "qe-artifacts")); err == nil && st.IsDir() {
			return artifacts.Open(d)
		}
	}
	return artifacts.Open(top)
}

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

// Confirm asks a person at the terminal. Who is no person at a terminal is
// refused.
func (a *App) Confirm(question string) error {
	if a.Flags.NoInput || !term.IsTerminal(a.In) {
		err := superqode.Errorf(superqode.ErrDenied, "only a person at a terminal can confirm this")
		return superqode.WithHint(err, "run it in a terminal, or add --yes")
	}
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err == nil && (word == "y" || word == "yes") {
		return nil
	}
	return superqode.Errorf(superqode.ErrDenied, "not allowed")
}

// ShortID is the part of an id that people type: its random end.
func ShortID(id superqode.SessionID) string {
	s := id.String()
	return s[strings.LastIndexByte(s, '-')+1:]
}

// SessionName is what a table calls a session: on a terminal what people type, elsewhere the whole id.
func (a *App) SessionName(id superqode.SessionID, name string) string {
	if !a.OutTTY {
		return id.String()
	}
	return cmp.Or(text.Printable(name), ShortID(id))
}

// Self is how superqode is called from here for an origin: with the folders that
// this call was given, too.
func (a *App) Self(origin string) string {
	words := []string{"superqode"}
	if dir := OriginDir(a.Dir); dir != origin {
		words = append(words, "-C", text.Quote(origin))
	}
	if a.Flags.Home != "" {
		words = append(words, "--home", text.Quote(a.Flags.Home))
	}
	return strings.Join(words, " ")
}

// BuildVersion returns the build's stamp or, without one, what the Go tool recorded.
func (a *App) BuildVersion() string {
	if a.Version != "" {
		return a.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// NotNil returns list, and an empty list for nil: JSON has [] then and not null.
func NotNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Rows are the rows of a table, one for each element of a list.
func Rows[T any](list []T, row func(T) []string) [][]string {
	rows := make([][]string, len(list))
	for i, v := range list {
		rows[i] = row(v)
	}
	return rows
}

// ExistingParent returns path or the nearest folder above it that exists.
func ExistingParent(path string) string {
	for path != filepath.Dir(path) {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}
