package guard

// Refusal returns the verdict that denies op, with its reason and suggestion from
// the operations table. It is for a layer that sees an operation in another way
// than by its command line, as a moving branch in a reference transaction.
func Refusal(op Operation, command []string) Verdict { return denial(op, command) }

// Info returns an operation's row of the table; false when it has none, as for
// commands that only read.
func (op Operation) Info() (OperationInfo, bool) { return lookupOperation(op) }

// IsGitCommand reports whether git brings a command of this name along, so that
// no alias can stand behind it.
func IsGitCommand(name string) bool { return isGitCommand(name) }
