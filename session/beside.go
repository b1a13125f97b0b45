package session

import "context"

// beside is what goes on next to one run of a program and ends with it: its
// agent's claims.
type beside struct {
	claims *claimDesk
}

func (s *Session) openBeside(ExecOptions) *beside {
	return &beside{claims: s.openClaims()}
}

func (b *beside) handlers(m map[string]handler) map[string]handler { return b.claims.handlers(m) }

func (b *beside) close(ctx context.Context) error { return b.claims.close(ctx) }
