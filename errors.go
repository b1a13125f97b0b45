package superqode

import (
	"errors"
	"fmt"
)

// The errors that callers branch on. Each has one exit code (docs/formats.md);
// wrap them with %w and test with errors.Is.
var (
	// ErrDenied means that the guard refused.
	ErrDenied = errors.New("denied")
	// ErrConflict means that someone else changed what would be overwritten, or
	// that a merge or a claim conflicts.
	ErrConflict = errors.New("conflict")
	// ErrLocked means that another session holds what is needed.
	ErrLocked = errors.New("locked")
	// ErrVerification means that a check after an action failed.
	ErrVerification = errors.New("verification failed")
	// ErrNotFound means that a session, an artifact or a file does not exist.
	ErrNotFound = errors.New("not found")
	// ErrUsage means that the command line or the configuration is wrong.
	ErrUsage = errors.New("usage error")
)

// HintError is an error with one line that says what to do next, if possible as
// a command to paste.
type HintError struct {
	Err  error
	Hint string
}

// Error returns the wrapped error's sentence; the hint is printed separately.
func (e *HintError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *HintError) Unwrap() error { return e.Err }

// WithHint attaches a hint to err.
func WithHint(err error, format string, args ...any) error {
	return &HintError{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// Hint returns the outermost hint in err's chain, or "".
func Hint(err error) string {
	if h, ok := errors.AsType[*HintError](err); ok {
		return h.Hint
	}
	return ""
}

// KindError gives a sentence of its own to one of the sentinel errors, so that
// the message need not repeat the sentinel's words.
type KindError struct {
	Kind error
	Msg  string
}

// Error returns the sentence.
func (e *KindError) Error() string { return e.Msg }

// Unwrap returns the sentinel.
func (e *KindError) Unwrap() error { return e.Kind }

// Errorf makes a KindError: errors.Is(err, kind) holds and the text is the
// formatted one alone.
func Errorf(kind error, format string, args ...any) error {
	return &KindError{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}
