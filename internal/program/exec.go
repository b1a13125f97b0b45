package program

import (
	"cmp"
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
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
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
	r := &run{Program: s, opt: opt}
	if err := r.prepare(); err != nil {
		return runner.Result{}, err
	}
	// held until the end is recorded: a run whose lock is free has ended, or died
	unlock, err := lockfile.TryLock(r.lock)
	if err != nil {
		return runner.Result{}, err
	}
	defer unlock()
	if r.opt.Args, err = opt.Code.write(opt.Args, r.runDir); err != nil {
		return runner.Result{}, err
	}
	return r.exec(ctx)
}

// run is one command of a session: what was asked for, and its places.
type run struct {
	*Program
	opt ExecOptions
	runPaths
}

// exec runs the program with all that goes on beside it, and records its end.
func (r *run) exec(ctx context.Context) (runner.Result, error) {
	guarded := layers.Of(r.Site)
	files, err := guarded.Seal(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	blocked, err := guarded.Handle()
	if err != nil {
		return runner.Result{}, err
	}
	env := r.environ()
	r.NoteSecrets(env)
	shared, err := r.shareNetwork(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	defer shared()
	options := r.opt.KernelOptions
	options.Args = r.opt.Args
	kernel, err := guarded.OpenKernel(ctx, options, env)
	if err != nil {
		return runner.Result{}, err
	}
	kept := kernel.Layer.Applied
	if mode.Of(r.Rec.Mode).InPlace {
		kept = r.Rec.CommonDir != "" && kernel.GuardsGit() // the same mounts keep the artifacts
	}
	if r.custody, err = custody.Take(r.Folder, r.Rec, kept); err != nil {
		return runner.Result{}, errors.Join(err, kernel.Close())
	}
	side := r.openSidecar(r.opt)
	kill := r.opt.Kill
	if kill == nil {
		kill = make(chan time.Duration)
	}
	sup, err := supervisor.Listen(r.socket,
		side.handlers(blocked.AddTo(findings.Handle(r.handlers(kill, r.opt.Stdin), r.Findings().AddAll))))
	if err != nil {
		err = errors.Join(err, r.custody.Close(), kernel.Close())
		r.custody = nil
		return runner.Result{}, err
	}
	spec := r.spec(env)
	spec.Kill = kill
	record := spec.Started
	spec.Started = func(pid int) {
		record(pid)
		shared()
	}
	if kernel.Layer.Applied {
		spec.Confine, spec.Wrap, spec.Outside = kernel.Confine, kernel.Wrap, r.outside
		if hint := layers.SandboxHint(kernel.Layer, r.Rec.Confine || r.opt.Confine, r.opt.Args); hint != "" {
			r.Warn(hint)
		}
	}
	res, runErr := runner.Run(ctx, spec)
	took := res.Ended.Sub(res.Started)
	r.Log.Info().Stringer("session", r.Rec.ID).Int("exit_code", res.ExitCode).Dur("took", took).Msg("program ended")
	after := context.WithoutCancel(ctx)
	if kernel.Layer.Applied {
		if err := guarded.SeeRefusals(blocked, kernel, r.log, r.cwd); err != nil {
			r.Log.Warn().Err(err).Msg("look for what the kernel refused")
		}
	}
	err = errors.Join(state.ReopenSession(r.Folder), sup.Close(), side.close(after), kernel.Close(), r.custody.Release(r.Site), r.keepLog())
	r.custody = nil
	err = errors.Join(err, guarded.Unseal(after, files), guarded.Close(blocked))
	for _, line := range warnings(res) {
		r.Warn(line)
	}
	err = errors.Join(err, r.Update(after, func(rec *state.Record) {
		rec.HeldBy(state.Record{Kernel: kernel.Layer.State, KernelBy: kernel.Layer.By, KernelMissing: kernel.Layer.Missing})
		if !r.opt.Setup {
			rec.ExitCode, rec.TimedOut, rec.Limit, rec.Truncated = &res.ExitCode, res.TimedOut, res.Limit,
				rec.Truncated || res.Truncated
		}
	}), r.recordEnd(res))
	return res, errors.Join(hintStart(runErr, r.opt), err)
}

// spec turns the options into what the runner does.
func (r *run) spec(env []string) runner.Spec {
	opt := &r.opt
	spec := runner.Spec{
		Args: opt.Args, Dir: r.cwd, Env: env, Stdin: opt.Stdin, Stdout: opt.Stdout, Stderr: opt.Stderr,
		Timeout: opt.Timeout, Limits: opt.Limits, Log: r.log, LogIndex: r.logIndex, MaxOutput: defaultLogged,
		Signals: opt.Signals, Job: opt.Signals != nil, TTY: opt.TTY, Marker: Marker(r.runDir),
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
	if spec.Limits.Disk > 0 {
		spec.Limits.DiskFolders = []string{filepath.Join(r.Folder, state.PrivateTmp), string(r.Rec.Workspace), filepath.Join(r.Folder, "tmp"), r.ArtifactDir()}
		if dir := r.TmpDir(); !superqode.Within(dir, r.Folder) {
			spec.Limits.DiskFolders = append(spec.Limits.DiskFolders, dir)
		}
	}
	spec.Started = func(pid int) {
		r.recordStart(pid)
		if opt.Started != nil {
			opt.Started(r.number)
		}
	}
	return spec
}

// How much of each output stream the log keeps. Who limits what is passed on wants
// all of it in the log; a program that writes without end must still not fill the
// disk.
const (
	defaultLogged  = 64 << 20
	mostLogged     = 256 << 20
	maxSetupOutput = 16 << 20 // of a setup command
)

// warnings says what of a run a person should know.
func warnings(res runner.Result) []string {
	var list []string
	for _, p := range res.Survivors {
		fate := "was ended"
		if p.Alive {
			fate = "could not be ended"
		}
		list = append(list, fmt.Sprintf("process %d outlived the program and %s: %s", p.PID, fate,
			text.Printable(strings.Join(p.Args, " "))))
	}
	if res.LogErr != nil {
		list = append(list, "the log of the program's output is not complete: "+res.LogErr.Error())
	}
	out, errs := res.Stdout, res.Stderr
	switch {
	case !res.Truncated:
	case (out.Passed < out.Bytes || errs.Passed < errs.Bytes) && out.Logged >= out.Bytes && errs.Logged >= errs.Bytes:
		list = append(list, fmt.Sprintf("the program's output was cut "+
			"(%s of %s of stdout, %s of %s of stderr passed on); the log has all of it",
			text.Size(out.Passed), text.Size(out.Bytes), text.Size(errs.Passed), text.Size(errs.Bytes)))
	default:
		list = append(list, fmt.Sprintf("the log keeps the first %s of stdout and %s of stderr only",
			text.Size(out.Logged), text.Size(errs.Logged)))
	}
	if res.Limit != "" {
		return append(list, limitSentence(res))
	}
	if len(res.Hits) > 0 {
		list = append(list, "the program was refused processes by --pids")
	}
	return list
}

// runPaths are the places of one command of a session.
type runPaths struct {
	number   int    // of the run, from 1
	cwd      string // where the command starts
	runDir   string // fresh for this command
	socket   string
	log      string // all of its output
	logIndex string // which of it is stderr's
	lock     string // held while the run is under way
}

// prepare makes the folders of the command and decides where it starts.
func (r *run) prepare() (err error) {
	if _, err := os.Stat(string(r.Rec.Workspace)); err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "the workspace of session %s is not there: %v", r.Rec.ID, err)
	}
	for _, d := range []string{r.OutputDir(), r.ArtifactDir()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := r.MakeTmp(); err != nil {
		return err
	}
	staging.MakeFolders(r.ArtifactDir())
	for r.number = max(r.Rec.Runs, 1); ; r.number++ {
		name := strconv.Itoa(r.number)
		if r.opt.Setup {
			name = "setup-" + name // the runs of the session's program are numbered
		}
		r.runDir, r.socket = filepath.Join(r.Folder, "tmp", "run-"+name), filepath.Join(r.Folder, "sock-"+name)
		base := filepath.Join(r.Folder, "log", "run-"+name)
		r.log, r.logIndex, r.lock = base+".log", base+".idx", base+".lock"
		err := os.Mkdir(r.runDir, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := r.linkSelf(); err != nil {
		return err
	}
	r.cwd, err = r.startFolder(r.opt.Cwd)
	return err
}

// linkSelf puts superqode itself into the program's PATH, so that `superqode
// finding add` works inside however superqode was started.
func (s *Program) linkSelf() error {
	link := filepath.Join(s.Folder, "bin", "superqode")
	if old, err := os.Readlink(link); s.Self == "" || err == nil && old == s.Self {
		return nil
	}
	tmp := link + "." + rand.Text() // agents in one workspace begin at the same time
	if err := os.Symlink(s.Self, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, link)
}

// startFolder returns the folder that a command starts in: the one asked for, or the
// one in the workspace that answers to where the session was opened, or the
// nearest folder above it that exists. It lies in the workspace, links
// resolved.
func (s *Program) startFolder(asked string) (string, error) {
	ws := string(s.Rec.Inside())
	if asked == "" {
		for rel := string(s.Rec.Prefix); rel != "" && rel != "."; rel = filepath.Dir(rel) {
			if dir, err := s.inside(rel); err == nil {
				return dir, nil
			}
		}
		return ws, nil
	}
	dir, err := s.inside(asked)
	if errors.Is(err, os.ErrNotExist) {
		return "", superqode.Errorf(superqode.ErrUsage, "--cwd %s: the workspace has no such folder", text.Quote(asked))
	}
	if err != nil {
		return "", superqode.Errorf(superqode.ErrUsage, "--cwd %q: %v", asked, err)
	}
	return dir, nil
}

// inside is a folder of the workspace as the session's programs see it.
func (s *Program) inside(rel string) (string, error) {
	ws := string(s.Rec.Inside())
	if s.Rec.Overlay == nil {
		return inside(ws, rel)
	}
	rel, err := filepath.Rel(ws, superqode.Under(ws, rel))
	if err != nil {
		return "", err
	}
	root, err := site.OpenWork(context.Background(), s.Site)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if st, err := root.Stat(rel); err != nil {
		return "", err
	} else if !st.IsDir() {
		return "", errors.New("it is not a folder")
	}
	return filepath.Join(ws, rel), nil
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

// outside is the path by which superqode reaches a path of the program's.
func (r *run) outside(path string) string {
	if r.Rec.Overlay == nil {
		return path
	}
	if rel, err := filepath.Rel(string(r.Rec.Inside()), path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(r.WorkDir(), rel)
	}
	return path
}

// starts records that a program begins. A command of the session's setup is not
// the session's program.
func (opt ExecOptions) starts(r *state.Record) {
	if opt.Setup {
		return
	}
	r.Runs++
	r.Step = ""
	r.Command, r.ExitCode, r.TimedOut = opt.Args, nil, false
}

// keepLog appends the command's output to a log of the session's.
func (r *run) keepLog() error {
	st, err := os.Lstat(r.log)
	if errors.Is(err, os.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	name := cmp.Or(r.opt.Log, "command.log")
	if r.opt.Setup {
		name = "setup.log"
	}
	return r.AppendMasked(filepath.Join(r.Folder, "log", name), r.log)
}

// handlers are the operations that a program in the session may ask for.
func (s *Program) handlers(kill chan<- time.Duration, stdin io.Reader) map[string]supervisor.Handler {
	rec, id, actor := s.Rec, s.PublicID(), s.Actor() // copies: the conversation runs sidecar the session's own work
	return map[string]supervisor.Handler{
		"ping": func(context.Context, int, json.RawMessage) (any, error) {
			return map[string]string{"session_id": id.String()}, nil
		},
		"session": func(context.Context, int, json.RawMessage) (any, error) {
			return map[string]any{
				"session_id": id, "mode": rec.Mode, "origin": rec.Origin, "workspace": rec.Inside(), "agent_id": actor,
				"case_id": rec.Case, "base": rec.Base, "created_at": rec.CreatedAt,
			}, nil
		},
		attribution.OpTrack: s.Authors.TrackHandler(),
		"run.kill":          killHandler(kill),
		"run.send":          sendHandler(stdin),
	}
}
