package codeexec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/session"
)

// InitHook prepares a workspace that is new. It runs once for it, before anybody gets the
// workspace, whoever asks for it; one that was cut off with its process runs again, and so does one
// whose entry in the Metadata a program removed.
type InitHook struct {
	Name string // in Metadata.Prepared
	Run  func(ctx context.Context, w *Workspace) error
	// Undo, if any, takes back what Run did outside of the workspace: when a later hook
	// fails, or Run itself, and when this registry releases the workspace. Its ctx is not
	// cancelled with the caller's.
	Undo func(ctx context.Context, w *Workspace) error
}

// maxUndo bounds taking back what the hooks did.
const maxUndo = time.Minute

// prepare runs the hooks that have not run. Where one fails the workspace is ended: the next
// Acquire begins anew.
func (r *Registry) prepare(ctx context.Context, w *Workspace) error {
	m, err := w.Metadata(ctx)
	if err != nil {
		return err
	}
	for i, h := range r.Init {
		if _, done := m.Prepared[h.Name]; done {
			continue
		}
		err := h.Run(ctx, w)
		if err == nil {
			err = w.note(ctx, func(m *Metadata, now time.Time) { m.Prepared[h.Name] = now })
		}
		if err != nil {
			return errors.Join(fmt.Errorf("init hook %s: %w", h.Name, err), undo(ctx, r.Init[:i+1], w), w.end(ctx))
		}
	}
	return nil
}

// undo takes back what hooks did, the last one first.
func undo(ctx context.Context, hooks []InitHook, w *Workspace) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxUndo)
	defer cancel()
	for _, h := range slices.Backward(hooks) {
		if h.Undo == nil {
			continue
		}
		if uerr := h.Undo(ctx, w); uerr != nil {
			err = errors.Join(err, fmt.Errorf("undo of init hook %s: %w", h.Name, uerr))
		}
	}
	return err
}

// end ends the workspace's session and removes the workspace.
func (w *Workspace) end(ctx context.Context) (err error) {
	ctx, done := w.span(ctx, spanCleanup)
	defer func() { done(err) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxUndo)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.keepEvents(ctx)
	_, eerr := w.s.End(ctx, session.EndOptions{Keep: superqode.KeepNever})
	err = errors.Join(err, eerr, w.s.Close(), w.Dir.Close())
	w.s = nil
	return err
}

// environ adds to a program's variables those of the registry's provider: none that the
// program or the session has, and where the environment is to be clean none through which
// code gets into a program.
func (w *Workspace) environ(ctx context.Context, p Program, layout map[string]string) (map[string]string, error) {
	env := map[string]string{}
	if w.provide != nil {
		more, err := w.provide(ctx)
		if err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		for k, v := range more {
			if !p.CleanEnv || !loads(k) {
				env[k] = v
			}
		}
	}
	maps.Copy(env, p.Env)
	maps.Copy(env, layout)
	return env, nil
}

// loads reports whether a variable makes programs load code, or changes what a shell does
// before its first command.
func loads(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME",
		"PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "GLIBC_TUNABLES", "GCONV_PATH"}, name)
}
