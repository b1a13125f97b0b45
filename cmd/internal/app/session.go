package app

import (
	"context"
	"errors"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/apply"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/state"
)

// ReportedID returns the id of the session, also when cleanup took it.
func (f SessionFlag) ReportedID(ctx context.Context, a *App) (superqode.SessionID, error) {
	l, err := f.Find(ctx, a)
	if err == nil {
		return l.ID, nil
	}
	if a.Manager != nil {
		if s, rerr := a.Manager.AttachReported(ctx, a.Flags.Repo, f.Session); rerr == nil {
			return s.Record().ID, nil
		}
	}
	return superqode.SessionID{}, err
}

// AttachEnded attaches to the session that LastFlag names.
func (f SessionFlag) AttachEnded(ctx context.Context, a *App) (*life.Session, error) {
	ref, err := LastFlag(f).ref(ctx, a)
	if err != nil {
		return nil, err
	}
	return a.Manager.Attach(ctx, a.Flags.Repo, ref)
}

// AttachReported is attachEnded for looking: it goes on to the reports of sessions
// that cleanup took.
func (f SessionFlag) AttachReported(ctx context.Context, a *App) (*life.Session, error) {
	s, err := f.AttachEnded(ctx, a)
	if !errors.Is(err, superqode.ErrNotFound) || a.Manager == nil {
		return s, err
	}
	if s, rerr := a.Manager.AttachReported(ctx, a.Flags.Repo, f.Ref(a)); rerr == nil {
		return s, nil
	}
	return nil, err
}

// NewestEnded returns the id of the session of this origin that ended last; where
// cleanup took them all, of the one that left the last report.
func (a *App) NewestEnded(ctx context.Context) (string, error) {
	m, err := a.Sessions()
	if err != nil {
		return "", err
	}
	sessions, _, err := registry.List(ctx, m.Host, a.Flags.Repo, false)
	if err != nil {
		return "", err
	}
	for _, s := range sessions {
		if s.State.Ended() && !s.Trial {
			return s.ID.String(), nil
		}
	}
	last, err := m.AttachReported(ctx, a.Flags.Repo, "")
	if err != nil {
		return "", err
	}
	return last.Record().ID.String(), nil
}

// StepSummary appends a session's summary to the one of a workflow's step where
// that was asked for.
func (a *App) StepSummary(ctx context.Context, formats []string, id superqode.SessionID) error {
	if !slices.Contains(formats, string(report.FormatSummary)) {
		return nil
	}
	m, err := a.Sessions()
	if err != nil {
		return err
	}
	return m.AppendStepSummary(ctx, a.Flags.Repo, id.String())
}

// SessionFlag names the session that a command is about. Without it that is the
// session in which the command runs, or the only one that is open here.
type SessionFlag struct {
	Session string `predictor:"session" short:"s" placeholder:"ID" help:"The session's id, any unique prefix or suffix of it, or its name."`
}

// Ref returns what to look the session up by.
func (f SessionFlag) Ref(a *App) string {
	if f.Session == "" {
		return a.Getenv("SUPERQODE_SESSION_ID")
	}
	return f.Session
}

// Attach opens the session; close it.
func (f SessionFlag) Attach(ctx context.Context, a *App) (*life.Session, error) {
	m, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	return m.Attach(ctx, a.Flags.Repo, f.Ref(a))
}

// AfterApply lets a command's Run take the session as a parameter: opened until the
// command ends, or only found.
func (f SessionFlag) AfterApply(kctx *kong.Context, a *App) error {
	return bindSession(kctx, a, func(context.Context) (string, error) { return f.Ref(a), nil })
}

func bindSession(kctx *kong.Context, a *App, named func(context.Context) (string, error)) error {
	find := func(ctx context.Context) (*state.Listed, error) {
		ref, err := named(ctx)
		if err != nil {
			return nil, err
		}
		return SessionFlag{ref}.Find(ctx, a)
	}
	attach := func(ctx context.Context) (*life.Session, error) {
		ref, err := named(ctx)
		if err == nil {
			a.attached, err = SessionFlag{ref}.Attach(ctx, a)
		}
		return a.attached, err
	}
	return errors.Join(kctx.BindToProvider(find), kctx.BindToProvider(attach))
}

// LastFlag is a SessionFlag for what can also be asked of a session that has ended.
// Without it that is the session in which the command runs, the only one that has not
// ended here or, where there is none, the last one, whether it was preserved or not.
type LastFlag SessionFlag

// AfterApply is SessionFlag.AfterApply.
func (f LastFlag) AfterApply(kctx *kong.Context, a *App) error {
	return bindSession(kctx, a, func(ctx context.Context) (string, error) { return f.ref(ctx, a) })
}

// ref returns what to look the session up by; "" where several are open: looking
// that up names them.
func (f LastFlag) ref(ctx context.Context, a *App) (string, error) {
	m, err := a.Sessions()
	if err != nil {
		return "", err
	}
	if ref := SessionFlag(f).Ref(a); ref != "" {
		return ref, nil
	}
	open, _, err := registry.List(ctx, m.Host, a.Flags.Repo, false)
	if err != nil {
		return "", err
	}
	open = slices.DeleteFunc(open, func(l state.Listed) bool { return l.State.Ended() })
	switch len(open) {
	case 0:
		return a.NewestEnded(ctx)
	case 1:
		return open[0].ID.String(), nil
	}
	return "", nil
}

// AppliedFlag is a LastFlag for what takes an apply back: without it that is the session that
// was applied last here, if one was.
type AppliedFlag SessionFlag

// AfterApply is SessionFlag.AfterApply.
func (f AppliedFlag) AfterApply(kctx *kong.Context, a *App) error {
	return bindSession(kctx, a, func(ctx context.Context) (string, error) {
		m, err := a.Sessions()
		if err != nil {
			return "", err
		}
		list, _, err := registry.List(ctx, m.Host, a.Flags.Repo, false)
		if last := apply.Last(list); err == nil && last != "" && SessionFlag(f).Ref(a) == "" {
			return last, nil
		}
		return LastFlag(f).ref(ctx, a)
	})
}

// Find looks the session up without opening it.
func (f SessionFlag) Find(ctx context.Context, a *App) (*state.Listed, error) {
	m, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	return m.Find(ctx, a.Flags.Repo, f.Ref(a))
}

// RelPaths reads path arguments as git does: they count from where the person
// stands. None means all.
func RelPaths(a *App, rec state.Record, args []string) ([]superqode.RelPath, error) {
	names, err := rec.Pathspecs(a.Flags.Repo, args)
	if err != nil {
		return nil, err
	}
	paths := make([]superqode.RelPath, 0, len(names))
	for _, name := range names {
		p, err := superqode.ParseRelPath(name)
		if err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "%v", err)
		}
		paths = append(paths, p)
	}
	return paths, nil
}
