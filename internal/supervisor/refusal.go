package supervisor

import (
	"errors"

	"github.com/seed-2d964004/superqode"
)

// Refusal is an error in the form that crosses a socket or a pipe.
type Refusal struct {
	Code    string `json:"code"` // one of codes, or "error"
	Message string `json:"message"`
}

// Refuse turns an error into a Refusal.
func Refuse(err error) *Refusal {
	for _, c := range codes() {
		if errors.Is(err, c.err) {
			return &Refusal{c.code, err.Error()}
		}
	}
	return &Refusal{"error", err.Error()}
}

// Err turns a received Refusal into an error.
func (r *Refusal) Err() error {
	for _, c := range codes() {
		if c.code == r.Code {
			return superqode.Errorf(c.err, "%s", r.Message)
		}
	}
	return errors.New(r.Message)
}

// codes pairs the protocol's error codes with the sentinels of package
// superqode, so that both ends branch on the same errors.
func codes() []struct {
	code string
	err  error
} {
	return []struct {
		code string
		err  error
	}{
		{"denied", superqode.ErrDenied}, {"conflict", superqode.ErrConflict}, {"locked", superqode.ErrLocked},
		{"not_found", superqode.ErrNotFound}, {"usage", superqode.ErrUsage}, {"verification", superqode.ErrVerification},
	}
}
