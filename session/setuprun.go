package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/setup"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Create opens a session and sets its workspace up. A session whose setup fails
// is ended, and kept when it is to be kept after failures.
func (m *Manager) Create(ctx context.Context, opt OpenOptions) (*Session, error) {
	s, err := m.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	if _, err := s.Setup(ctx, opt.Setup); err != nil {
		_, err = s.endUnset(ctx, program.ExecOptions{}, err)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// with returns the options for a setup before the program that exec runs: its
// commands get the same additions to the environment.
func (opt SetupOptions) with(exec program.ExecOptions) SetupOptions {
	opt.Env = append(slices.Clip(exec.Env), opt.Env...)
	opt.EnvAllow, opt.CleanEnv, opt.Signals, opt.KernelOptions = exec.EnvAllow, exec.CleanEnv, exec.Signals, exec.KernelOptions
	return opt
}

// endUnset ends a session whose setup failed, the way every session ends. What
// could not even begin, because the configuration is wrong, is not worth keeping.
func (s *Session) endUnset(ctx context.Context, exec program.ExecOptions, failed error) (*artifacts.Result, error) {
	after := context.WithoutCancel(ctx)
	code := state.ExitUnknown
	interrupt, interrupted := errors.AsType[*InterruptError](failed)
	if interrupted {
		code = interrupt.ExitCode()
	}
	args := exec.Args
	if args == nil {
		args = []string{}
	}
	err := s.Update(after, func(r *state.Record) { r.Command, r.ExitCode = args, &code })
	end := EndOptions{Failed: true, Locked: true}
	if (errors.Is(failed, superqode.ErrUsage) || errors.Is(failed, superqode.ErrNotFound)) && s.Rec.Keep != state.KeepAlways {
		end.Keep = state.KeepNever
	}
	stop := team.Ignore(exec.Signals)
	defer stop()
	s.setupError = failed
	res, eerr := s.End(after, end)
	if _, ok := errors.AsType[*setup.Error](failed); ok && superqode.Hint(failed) == "" && res != nil {
		if log := artifacts.SessionLog(s.Rec.ID, "setup"); slices.ContainsFunc(res.Artifacts, func(a artifacts.Ref) bool { return a.Path.String() == log }) {
			failed = superqode.WithHint(failed, "cat %s", site.QuoteWord(filepath.Join(string(s.Rec.Origin), ".superqode", "qe-artifacts", log)))
		}
	}
	return res, errors.Join(failed, err, eerr)
}

// setUpAgents sets up the workspace of each agent, or that of s, which they share.
// One after the other: most setups fill caches that the next one finds filled.
func (s *Session) setUpAgents(ctx context.Context, members []*Session, opt SetupOptions, signals *team.Relay) error {
	for i, c := range members {
		opt.Signals = signals.To[i]
		if _, err := c.Setup(ctx, opt); err != nil {
			if c != s {
				err = fmt.Errorf("agent %s: %w", c.Rec.Agent, err)
			}
			return err
		}
		if sig := signals.Ended(); sig != nil {
			return &InterruptError{sig}
		}
	}
	return nil
}

// checkInputs finds out before anything is made whether the inputs are there. A
// relative path may also mean one that only the workspace will have.
func (m *Manager) checkInputs(ctx context.Context, o *site.Origin, opt SetupOptions) error {
	spec, err := opt.full()
	if err != nil {
		return err
	}
	for _, in := range spec.Inputs {
		if in.Optional {
			continue
		}
		var err error
		switch {
		case in.Artifact != "":
			s := m.of(&site.Site{Host: m.Host, Rec: state.Record{Origin: state.HostPath(o.Top)}})
			_, err = s.inputArtifact(ctx, in.Artifact, in.Version)
		case in.Path != "" && in.Path[0] == '/' && !strings.HasPrefix(in.Path, o.Top+"/"):
			_, serr := os.Stat(in.Path)
			if errors.Is(serr, fs.ErrNotExist) {
				err = superqode.Errorf(superqode.ErrNotFound, "from %s does not exist", text.Printable(in.Path))
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", text.Printable(in.Key), err)
		}
	}
	return nil
}
