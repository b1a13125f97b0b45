// Package codeexec runs code that somebody else wrote, a model as a rule, in workspaces
// that are sessions, in directory mode as a rule.
//
//	reg := codeexec.NewRegistry(session.NewManager(cfg), session.OpenOptions{Dir: dir, Mode: superqode.ModeDirectory})
//	ws, err := reg.Acquire(ctx, "chat-7") // one workspace, whoever asks and however often
//	blocks, err := codeexec.ExtractCodeBlocks(answer, codeexec.Markdown)
//	ran, err := ws.RunBlocks(ctx, blocks, nil)
//	made, err := ws.Collect(ctx, "out/**")
//	err = reg.Release(ctx, "chat-7")
//
// A workspace has the folders skills, work, runs and out. Programs find the workspace in
// WORKSPACE_DIR, its folders in SKILLS_DIR, WORK_DIR and OUTPUT_DIR, and in RUN_DIR a
// folder below runs that is new for each, beside the variables of every session. Programs run as the session runs them: guarded, with the whole tree of
// processes ended when the call returns.
package codeexec

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/session"
	"github.com/seed-2d964004/superqode/workspace"
)

// Folders of a workspace.
const (
	DirSkills = "skills"
	DirWork   = "work"
	DirRuns   = "runs"
	DirOut    = "out"
)

// MaxOutput is how many bytes of each stream a Result holds.
const MaxOutput = 10 << 20

// Workspace is one workspace. It is safe for concurrent use; programs run one after
// the other.
type Workspace struct {
	ID  string
	Dir *workspace.Dir // its files

	mu sync.Mutex // a session's methods are not safe for concurrent use
	s  *session.Session

	beside func(context.Context) (*session.Session, error) // the same session, for a program that runs beside others

	session superqode.SessionID
	origin  string // whose artifacts inputs are taken from
	able    Capabilities
	provide func(context.Context) (map[string]string, error) // Registry.Env
	tracer  trace.Tracer
	events  string // the path of EventsFile
}

// EnsureLayout makes the folders that are missing and returns the variables that name
// them. RUN_DIR is runs; a program gets a folder of its own below it, see Run.
func EnsureLayout(dir *workspace.Dir) (map[string]string, error) {
	root, err := atomicfile.OpenRoot(dir.Root())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	env := map[string]string{"WORKSPACE_DIR": dir.Root()}
	for name, variable := range map[string]string{DirSkills: "SKILLS_DIR", DirWork: "WORK_DIR", DirRuns: "RUN_DIR", DirOut: "OUTPUT_DIR"} {
		if err := root.MkdirAll(name, 0o755); err != nil {
			return nil, fmt.Errorf("make the folder %s: %w", name, err)
		}
		env[variable] = filepath.Join(dir.Root(), name)
	}
	return env, nil
}

// File is one that is put into a workspace.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode // permission bits; 0 is 0644
}

// Put writes files. A path that leaves the workspace is workspace.ErrPathTraversal, and
// the error names the file by its place in the list.
func (w *Workspace) Put(ctx context.Context, files ...File) (err error) {
	ctx, end := w.span(ctx, spanPut, attribute.Int("count", len(files)))
	defer func() { end(err) }()
	root, err := atomicfile.OpenRoot(w.Dir.Root())
	if err != nil {
		return err
	}
	defer root.Close()
	for i, f := range files {
		err := w.Dir.Write(ctx, f.Path, f.Content)
		if err == nil {
			err = root.Chmod(filepath.FromSlash(path.Clean(f.Path)), cmp.Or(f.Mode.Perm(), 0o644))
		}
		if err != nil {
			return fmt.Errorf("files[%d].path: %w", i, err)
		}
	}
	return nil
}

// Program is what to run.
type Program struct {
	Args    []string
	Cwd     string // relative to the workspace; "" is its root
	Skill   string // SKILL_NAME, where it is not ""
	Stdin   []byte
	Env     map[string]string // added; what the session sets itself is not changed
	Timeout time.Duration     // 0: none
	// CleanEnv leaves out the variables of the session's caller but PATH, HOME, TERM, LANG
	// and USER: no LD_PRELOAD and no BASH_ENV. Env is added all the same.
	CleanEnv bool
	TTY      bool // a terminal for the program, whose stderr is in Stdout then
}

// Result is how a program ended, and what it wrote.
type Result struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"` // as session.Ran has it
	TimedOut  bool   `json:"timed_out"`
	Truncated bool   `json:"truncated"` // a stream had more than MaxOutput
}

// options checks a program, and makes the folders that it is given.
func (w *Workspace) options(ctx context.Context, p Program) (opt session.ExecOptions, err error) {
	if len(p.Args) == 0 {
		return opt, superqode.Errorf(superqode.ErrUsage, "args: there is no program to run")
	}
	if !filepath.IsLocal(cmp.Or(p.Cwd, ".")) {
		return opt, fmt.Errorf("cwd: %q: %w", p.Cwd, workspace.ErrPathTraversal)
	}
	layout, err := EnsureLayout(w.Dir)
	if err != nil {
		return opt, err
	}
	env, err := w.environ(ctx, p, layout)
	if err != nil {
		return opt, err
	}
	if p.Skill != "" {
		env["SKILL_NAME"] = p.Skill
	}
	if env["RUN_DIR"], err = w.newRun(); err != nil {
		return opt, err
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.HasPrefix(k, "SUPERQODE_") {
			return opt, superqode.Errorf(superqode.ErrUsage, "env: %q cannot be set", k)
		}
		pairs = append(pairs, k+"="+env[k])
	}
	return session.ExecOptions{Args: p.Args, Cwd: p.Cwd, Env: pairs, CleanEnv: p.CleanEnv, Timeout: p.Timeout, TTY: p.TTY}, nil
}

// Run runs one program. One that fails is no error: Result.ExitCode says so.
func (w *Workspace) Run(ctx context.Context, p Program) (r Result, err error) {
	ctx, end := w.span(ctx, spanRun, ofProgram(p)...)
	defer func() {
		end(err, attribute.Int("exit_code", r.ExitCode), attribute.Bool("timed_out", r.TimedOut))
	}()
	opt, err := w.options(ctx, p)
	if err != nil {
		return Result{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	w.touch(ctx)
	if w.s == nil {
		return Result{}, fmt.Errorf("workspace %s: %w", w.ID, fs.ErrClosed)
	}
	var stdout, stderr capped
	opt.Stdin, opt.Stdout, opt.Stderr = bytes.NewReader(p.Stdin), &stdout, &stderr
	ran, err := w.s.Exec(ctx, opt)
	return Result{stdout.String(), stderr.String(), ran.ExitCode, ran.TimedOut, stdout.cut || stderr.cut}, err
}

// ofProgram is what a span says of a program: its words may hold secrets.
func ofProgram(p Program) []attribute.KeyValue {
	name := ""
	if len(p.Args) > 0 {
		name = p.Args[0]
	}
	return []attribute.KeyValue{attribute.String("cmd", name), attribute.String("cwd", p.Cwd)}
}

// newRun makes the folder of one run.
func (w *Workspace) newRun() (string, error) {
	root, err := atomicfile.OpenRoot(w.Dir.Root())
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := filepath.Join(DirRuns, "run_"+time.Now().UTC().Format("20060102T150405.000")+"_"+rand.Text()[:8])
	if err := root.Mkdir(name, 0o755); err != nil {
		return "", fmt.Errorf("make the run's folder: %w", err)
	}
	return filepath.Join(w.Dir.Root(), name), nil
}

// capped keeps the first MaxOutput bytes.
type capped struct {
	bytes.Buffer
	cut bool
}

// Write keeps what fits.
func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), MaxOutput-c.Len())
	c.cut = c.cut || keep < len(p)
	c.Buffer.Write(p[:keep])
	return len(p), nil
}

// BlockResult is what became of one block.
type BlockResult struct {
	Block Block
	Result
	Err error // it did not run: superqode.ErrUsage where its language has no interpreter
}

// RunBlocks runs each block in the workspace's folder work, from a file in runs, one after
// the other; one that fails does not keep the next from running. python, bash and their
// short names are known, as on the command line; more adds to them, or replaces one: the words before the file's name. The error is
// that of ctx.
func (w *Workspace) RunBlocks(ctx context.Context, blocks []Block, more map[string][]string) ([]BlockResult, error) {
	results := make([]BlockResult, 0, len(blocks))
	for i, b := range blocks {
		if err := context.Cause(ctx); err != nil {
			return results, err
		}
		r := BlockResult{Block: b}
		if args := interpreter(b.Language, more); len(args) == 0 {
			r.Err = superqode.Errorf(superqode.ErrUsage, "blocks[%d].language: %q has no interpreter", i, b.Language)
		} else {
			r.Result, r.Err = w.runBlock(ctx, b, args)
		}
		results = append(results, r)
	}
	return results, context.Cause(ctx)
}

func interpreter(language string, more map[string][]string) []string {
	language = strings.ToLower(language)
	if args, ok := more[language]; ok {
		return args
	}
	if name := program.Interpreter(language); name != "" {
		return []string{name}
	}
	return nil
}

func (w *Workspace) runBlock(ctx context.Context, b Block, args []string) (Result, error) {
	if _, err := EnsureLayout(w.Dir); err != nil {
		return Result{}, err
	}
	name := path.Join(DirRuns, "block-"+rand.Text())
	if err := w.Dir.Write(ctx, name, []byte(b.Code)); err != nil {
		return Result{}, err
	}
	return w.Run(ctx, Program{Args: append(slices.Clone(args), path.Join("..", name)), Cwd: DirWork})
}
