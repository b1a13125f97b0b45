package guard

import "os"

// gitsOwn reports whether a denied command is a step of another git command that
// was allowed: git runs itself, through the shim. Which command it is tells the
// parent process.
func gitsOwn(st *SessionState, bin string, c ShimCall, v Verdict) bool {
	parent, ok := ReadProcess(os.Getppid())
	return ok && StepOf(parent, bin, v.Operation)
}

// StepOf reports whether an operation is a step that git itself takes while it
// carries out the command of the process parent.
func StepOf(parent Process, bin string, op Operation) bool { return false }
