package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// DetachCommand is the hidden command word with which superqode starts itself to
// supervise a detached run. It reads a detachRequest from its stdin and answers
// with one detachReply on its stdout as soon as the program runs, or does not.
const DetachCommand = "supervise-detached"

// A detached run is supervised by a superqode process of its own, in a session of
// its own, which no terminal's end reaches. It shares the session's lock like any
// other run, so the session cannot be ended under it; who started it keeps the
// lock until the answer is there.

// detachRequest is what the supervisor needs to know.
type detachRequest struct {
	Dir     string      `json:"dir"` // the session's folder
	Options detachedRun `json:"options"`
}

// detachedRun is ExecOptions without streams, and with paths for them.
type detachedRun struct {
	Args     []string              `json:"args"`
	Stdin    string                `json:"stdin"` // a file; "" is none, SendStdin what program.Send writes
	Defaults state.Defaults        `json:"defaults"`
	TTY      bool                  `json:"tty"`
	Code     *program.Code         `json:"code"`
	Blocks   []blockCode           `json:"blocks"`
	Kernel   program.KernelOptions `json:"kernel"`
}

// SendStdin is the stdin that stays open for program.Send.
const SendStdin = "-"

type detachReply struct {
	Run   int                 `json:"run"`
	Error *supervisor.Refusal `json:"error"`
	Hint  string              `json:"hint"`
	Start int                 `json:"start"` // exit code of a program that could not be started
	Name  string              `json:"name"`  // of that program
}

// blockCode is a Block with its text, which no result holds.
type blockCode struct {
	program.Block
	Text []byte `json:"text"`
}

func blockCodes(blocks []program.Block) []blockCode {
	var out []blockCode
	for _, b := range blocks {
		out = append(out, blockCode{b, b.Text})
	}
	return out
}

// Detach starts a program, or the first of several blocks, and returns while it
// runs: the run's number. The blocks after it are the runs after it. stdin is a
// file that it reads from, SendStdin, or "" for none. Its output goes to the log only, see
// CopyLog. The errors are those of Exec.
func (s *Attached) Detach(ctx context.Context, opt program.ExecOptions, stdin string) (run int, err error) {
	if err := s.Usable(); err != nil {
		return 0, err
	}
	if s.Self == "" {
		return 0, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "a detached run is given to a superqode process, and this program has not said where superqode is"),
			"set session.Config.Program")
	}
	request, err := json.Marshal(detachRequest{s.Folder, detachedRun{opt.Args, stdin, opt.Defaults(), opt.TTY, opt.Code, blockCodes(opt.Blocks), opt.KernelOptions}})
	if err != nil {
		return 0, err
	}
	log, err := atomicfile.Append(filepath.Join(s.Folder, "log", "superqode.log"), 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close() // the supervisor has its own
	cmd := exec.Command(s.Self, "--home", s.Home, DetachCommand)
	cmd.Dir, cmd.Env, cmd.Stderr = "/", s.Env, log // it must not keep the caller's folder busy
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := runner.StartApart(cmd); err != nil {
		return 0, fmt.Errorf("start the supervisor: %w", err)
	}
	_, werr := in.Write(request)
	var reply detachReply
	rerr := json.NewDecoder(out).Decode(&reply)
	err = errors.Join(werr, in.Close(), out.Close())
	if rerr != nil {
		return 0, errors.Join(fmt.Errorf("the supervisor of the detached run did not answer: %w", rerr), err)
	}
	return reply.Run, reply.err()
}

// err turns the answer back into the error that it was.
func (r detachReply) err() error {
	if r.Error == nil {
		return nil
	}
	var err error
	if r.Start > 0 {
		err = &runner.StartError{Name: r.Name, Code: r.Start, Err: errors.New(r.Error.Message)}
	} else {
		err = r.Error.Err()
	}
	if r.Hint != "" {
		err = superqode.WithHint(err, "%s", r.Hint)
	}
	return err
}

// Supervise is the work of a detached run's supervisor: it reads the request from
// in and answers on out.
func Supervise(ctx context.Context, h *site.Host, in io.Reader, out io.WriteCloser, signals <-chan os.Signal) error {
	var q detachRequest
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return superqode.Errorf(superqode.ErrUsage, "%s is superqode's own: %v", DetachCommand, err)
	}
	answered := false
	answer := func(r detachReply) error {
		if answered {
			return nil
		}
		answered = true
		return errors.Join(json.NewEncoder(out).Encode(r), out.Close())
	}
	err := supervise(ctx, h, q, signals, func(run int) { _ = answer(detachReply{Run: run}) }) // who asked may be gone; the run goes on
	if err == nil {
		return nil
	}
	r := detachReply{Error: supervisor.Refuse(err), Hint: superqode.Hint(err)}
	if start, ok := errors.AsType[*runner.StartError](err); ok {
		r.Start, r.Name, r.Error.Message = start.Code, start.Name, start.Err.Error()
	}
	return errors.Join(answer(r), err)
}

func supervise(ctx context.Context, h *site.Host, q detachRequest, signals <-chan os.Signal, started func(int)) error {
	l, err := state.Load(q.Dir)
	if err != nil {
		return err
	}
	s, err := Share(h.At(l))
	if err != nil {
		return err
	}
	defer s.Close()
	opt := program.ExecOptions{Args: q.Options.Args, TTY: q.Options.TTY, Code: q.Options.Code, KernelOptions: q.Options.Kernel, Signals: signals}.With(q.Options.Defaults)
	running := false
	opt.Started = func(run int) { running = true; started(run) }
	opt.Detached = true
	var failed error // why no block could be started
	for _, b := range q.Options.Blocks {
		b.Block.Text = b.Text
		opt.Blocks = append(opt.Blocks, b.Block)
	}
	opt.BlockEnded = func(b program.BlockResult) { failed = b.Failed }
	switch q.Options.Stdin {
	case "":
	case SendStdin:
		feed, err := runner.NewFeed()
		if err != nil {
			return err
		}
		defer feed.Close()
		opt.Stdin = feed
	default:
		f, err := os.Open(q.Options.Stdin)
		if err != nil {
			return superqode.Errorf(superqode.ErrNotFound, "--stdin: %v", err)
		}
		defer f.Close() // read only
		opt.Stdin = f
	}
	if _, err = s.ExecAll(ctx, opt); err == nil && !running {
		err = failed
	}
	return err
}
