package program

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/custody"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Exec runs one program in the session's workspace and returns when it and
// everything that it started have ended. What opt leaves open the session's
// defaults say. The error is nil whenever the program ran, whatever its exit code;
// see runner.Run for programs that could not be started.
func (s *Program) Exec(ctx context.Context, opt ExecOptions) (runner.Result, error) {
	if err := opt.complete(&s.Rec); err != nil {
		return runner.Result{}, err
	}
	if err := s.Update(ctx, opt.starts); err != nil {
		return runner.Result{}, err
	}
	paths, err := s.preparePaths(opt)
	if err != nil {
		return runner.Result{}, err
	}
	unlock, err := lockfile.TryLock(paths.lock) // held until the end is recorded: a run whose lock is free has ended, or died
	if err != nil {
		return runner.Result{}, err
	}
	defer unlock()
	if opt.Args, err = opt.Code.write(opt.Args, paths); err != nil {
		return runner.Result{}, err
	}
	files, err := layers.Of(s.Site).Seal(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	blocked, err := layers.Of(s.Site).Handle()
	if err != nil {
		return runner.Result{}, err
	}
	env := s.environ(opt, paths)
	s.NoteSecrets(env)
	kernel, err := layers.Of(s.Site).OpenKernel(layers.KernelOptions(opt.KernelOptions), env)
	if err != nil {
		return runner.Result{}, err
	}
	if s.custody, err = custody.Take(s.Folder, s.Rec); err != nil {
		return runner.Result{}, errors.Join(err, kernel.Close())
	}
	side := s.openSidecar(opt)
	kill := make(chan time.Duration)
	sup, err := supervisor.Listen(paths.socket, side.handlers(blocked.AddTo(findings.Handle(s.handlers(kill), s.Findings().AddAll))))
	if err != nil {
		err = errors.Join(err, s.custody.Close(), kernel.Close())
		s.custody = nil
		return runner.Result{}, err
	}
	spec := s.spec(opt, paths, env)
	spec.Kill = kill
	switch {
	case kernel.Wraps():
		spec.Wrap = kernel.Wrap
	case kernel.Layer.Applied:
		spec.Confine = kernel.Confine
	}
	res, runErr := runner.Run(ctx, spec)
	s.Log.Info().Stringer("session", s.Rec.ID).Int("exit_code", res.ExitCode).Dur("took", res.Ended.Sub(res.Started)).Msg("program ended")
	after := context.WithoutCancel(ctx)
	err = errors.Join(sup.Close(), side.close(after), kernel.Close(), s.custody.Release(s.Site), s.keepLog(paths, opt.logName()))
	s.custody = nil
	err = errors.Join(err, layers.Of(s.Site).Unseal(after, files), layers.Of(s.Site).Close(blocked))
	s.warnOf(res)
	err = errors.Join(err, s.Update(after, func(r *state.Record) {
		r.Kernel = state.Weaker(r.Kernel, kernel.Layer.State)
		if !opt.Setup {
			r.ExitCode, r.TimedOut, r.Limit, r.Truncated = &res.ExitCode, res.TimedOut, res.Limit, r.Truncated || res.Truncated
		}
	}), s.recordEnd(opt, paths, res))
	return res, errors.Join(hintStart(runErr, opt), err)
}

// spec turns the options into what the runner does.
func (s *Program) spec(opt ExecOptions, paths runPaths, env []string) runner.Spec {
	spec := runner.Spec{
		Args: opt.Args, Dir: paths.cwd, Env: env, Stdin: opt.Stdin, Stdout: opt.Stdout, Stderr: opt.Stderr,
		Timeout: opt.Timeout, Limits: opt.Limits, Log: paths.log, LogIndex: paths.logIndex, MaxOutput: defaultLogged, Signals: opt.Signals, Marker: Marker(paths.runDir),
	}
	if opt.StdoutToo {
		spec.Stdout = opt.Stderr
	}
	if opt.MaxOutput > 0 {
		if opt.StdoutToo { // two streams with a limit each, not one
			spec.Stdout = struct{ io.Writer }{opt.Stderr}
		}
		spec.MaxPassed, spec.MaxOutput = opt.MaxOutput, max(mostLogged, opt.MaxOutput)
	}
	if opt.Setup { // a cap of the log, not of what is passed on
		spec.MaxPassed, spec.MaxOutput = 0, maxSetupOutput
	}
	if opt.TTY {
		spec.TTY = runner.TTYAlways
	}
	if spec.Limits.Disk > 0 {
		spec.Limits.DiskFolders = []string{string(s.Rec.Workspace), filepath.Join(s.Folder, "tmp"), s.ArtifactDir()}
	}
	spec.Started = func(pid int) {
		s.recordStart(opt, paths, pid)
		if opt.Started != nil {
			opt.Started(paths.number)
		}
	}
	return spec
}

// How much of each output stream the log keeps. Who limits what is passed on wants
// all of it in the log; a program that writes without end must still not fill the
// disk.
const (
	defaultLogged = 64 << 20
	mostLogged    = 256 << 20
)

// warnOf says what of a run a person should know.
func (s *Program) warnOf(res runner.Result) {
	for _, p := range res.Survivors {
		fate := "was ended"
		if p.Alive {
			fate = "could not be ended"
		}
		s.Warn(fmt.Sprintf("process %d outlived the program and %s: %s", p.PID, fate, text.Printable(strings.Join(p.Args, " "))))
	}
	if res.LogErr != nil {
		s.Warn("the log of the program's output is not complete: " + res.LogErr.Error())
	}
	switch passed := res.Stdout.Passed < res.Stdout.Bytes || res.Stderr.Passed < res.Stderr.Bytes; {
	case res.Truncated && passed && res.Stdout.Logged >= res.Stdout.Bytes && res.Stderr.Logged >= res.Stderr.Bytes:
		s.Warn(fmt.Sprintf("the program's output was cut (%d of %d bytes of stdout, %d of %d of stderr passed on); the log has all of it",
			res.Stdout.Passed, res.Stdout.Bytes, res.Stderr.Passed, res.Stderr.Bytes))
	case res.Truncated:
		s.Warn(fmt.Sprintf("the log keeps the first %d bytes of stdout and %d of stderr only", res.Stdout.Logged, res.Stderr.Logged))
	}
	if res.Limit != "" {
		s.Warn(limitSentence(res))
	} else if len(res.Hits) > 0 {
		s.Warn("the program was refused processes by --pids")
	}
}

// preparePaths makes the folders of one command and decides where it starts.
func (s *Program) preparePaths(opt ExecOptions) (runPaths, error) {
	var r runPaths
	ws := string(s.Rec.Workspace)
	if _, err := os.Stat(ws); err != nil {
		return r, superqode.Errorf(superqode.ErrNotFound, "the workspace of session %s is not there: %v", s.Rec.ID, err)
	}
	for _, d := range []string{s.TmpDir(), s.OutputDir(), s.ArtifactDir()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return r, err
		}
	}
	staging.MakeFolders(s.ArtifactDir())
	for n := max(s.Rec.Runs, 1); ; n++ {
		name := strconv.Itoa(n)
		if opt.Setup {
			name = "setup-" + name // the runs of the session's program are numbered
		}
		r.runDir = filepath.Join(s.Folder, "tmp", "run-"+name)
		err := os.Mkdir(r.runDir, 0o700)
		if err == nil {
			r.number, r.socket = n, filepath.Join(s.Folder, "sock-"+name)
			base := filepath.Join(s.Folder, "log", "run-"+name)
			r.log, r.logIndex, r.lock = base+".log", base+".idx", base+".lock"
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return r, err
		}
	}
	if err := s.linkSelf(); err != nil {
		return r, err
	}
	var err error
	r.cwd, err = s.cwd(opt.Cwd)
	return r, err
}

// linkSelf puts superqode itself into the program's PATH, so that `superqode
// finding add` works inside however superqode was started.
func (s *Program) linkSelf() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	link := filepath.Join(s.Folder, "bin", "superqode")
	if old, err := os.Readlink(link); err == nil && old == exe {
		return nil
	}
	tmp := link + "." + rand.Text() // agents in one workspace begin at the same time
	if err := os.Symlink(exe, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, link)
}

// cwd returns the folder that a command starts in: the one asked for, or the
// one in the workspace that answers to where the session was opened, or the
// nearest folder above it that exists. It lies in the workspace, links
// resolved.
func (s *Program) cwd(asked string) (string, error) {
	ws := string(s.Rec.Workspace)
	if asked == "" {
		for rel := string(s.Rec.Prefix); rel != "" && rel != "."; rel = filepath.Dir(rel) {
			if dir, err := inside(ws, rel); err == nil {
				return dir, nil
			}
		}
		return ws, nil
	}
	dir, err := inside(ws, asked)
	if err != nil {
		return "", superqode.Errorf(superqode.ErrUsage, "--cwd %q: %v", asked, err)
	}
	return dir, nil
}

func inside(ws, rel string) (string, error) {
	if !filepath.IsAbs(rel) {
		rel = filepath.Join(ws, rel)
	}
	dir, err := filepath.EvalSymlinks(rel)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(ws)
	if err != nil {
		return "", err
	}
	if dir != real && !strings.HasPrefix(dir, real+string(filepath.Separator)) {
		return "", fmt.Errorf("it leads out of the workspace %s", ws)
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return "", errors.New("it is not a folder")
	}
	return dir, nil
}

// starts records that a program begins. A command of the session's setup is not
// the session's program.
func (opt ExecOptions) starts(r *state.Record) {
	if opt.Setup {
		return
	}
	r.Runs++
	r.Reverting = false
	r.Command, r.ExitCode, r.TimedOut = opt.Args, nil, false
}

// logName is the log in the session's folder that gets the output.
func (opt ExecOptions) logName() string {
	if opt.Setup {
		return "setup.log"
	}
	if opt.Log != "" {
		return opt.Log
	}
	return "command.log"
}

// keepLog appends a command's output to a log of the session's.
func (s *Program) keepLog(r runPaths, name string) error {
	src := r.log
	st, err := os.Lstat(src)
	if errors.Is(err, os.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	return s.AppendMasked(filepath.Join(s.Folder, "log", name), src)
}

// handlers are the operations that a program in the session may ask for.
func (s *Program) handlers(kill chan<- time.Duration) map[string]supervisor.Handler {
	rec, id, actor := s.Rec, s.PublicID(), s.Actor() // copies: the conversation runs sidecar the session's own work
	return map[string]supervisor.Handler{
		"ping": func(context.Context, int, json.RawMessage) (any, error) {
			return map[string]string{"session_id": id.String()}, nil
		},
		"session": func(context.Context, int, json.RawMessage) (any, error) {
			return map[string]any{
				"session_id": id, "mode": rec.Mode, "origin": rec.Origin, "workspace": rec.Workspace, "agent_id": actor,
				"case_id": rec.Case, "base": rec.Base, "created_at": rec.CreatedAt,
			}, nil
		},
		attribution.OpTrack: s.Authors.TrackHandler(),
		"run.kill":          killHandler(kill),
	}
}
