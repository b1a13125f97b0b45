package session

import (
	"context"
	"errors"

	"github.com/seed-2d964004/superqode/internal/coordinator"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// beside is what goes on next to one run of a program and ends with it: its
// agent's claims, and the watching.
type beside struct {
	s      *Program
	claims *coordinator.Handler
	watch  *watching
}

func (s *Program) openBeside(opt ExecOptions) *beside {
	b := &beside{s: s, claims: s.claimRun().Handle()}
	if !opt.setup {
		b.watch = s.startWatching()
	}
	return b
}

func (b *beside) handlers(m map[string]supervisor.Handler) map[string]supervisor.Handler {
	return b.claims.AddTo(m)
}

func (b *beside) close(ctx context.Context) error {
	return errors.Join(b.claims.Close(ctx), b.s.stopWatching(b.watch))
}
