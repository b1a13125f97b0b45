package hooks

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
)

// How long git may take to remove its lock files and end, and how long the kernel
// may take to end it.
const (
	termWait = 500 * time.Millisecond
	killWait = 5 * time.Second
)

// fsmonitorReply says "everything may have changed": git then looks at every file,
// as it does without a monitor. "0" is a token that no other monitor understands:
// one that the user has, and that is asked again after the session, answers it
// with everything too.
const (
	fsmonitorReply1 = "/\x00"
	fsmonitorReply2 = "0\x00/\x00"
)

// fsmonitor answers git's question what has changed since it last asked, which
// comes before git changes the work tree. A denied command is ended instead: git
// would go on without a monitor that fails.
func (a *answer) fsmonitor(ctx context.Context) int {
	if a.guarded() {
		if chain := a.commands(); len(chain) > 0 {
			s := a.judge(ctx, chain)
			if s.verdict.Denied() && s.verdict.Operation != "fetch.update" { // known by its refs, see forRefs
				if code := a.refuse(s); code != 0 {
					return a.veto(s, code)
				}
			}
		}
	}
	reply := fsmonitorReply1
	if len(a.Args) > 0 && a.Args[0] != "1" {
		reply = a.touched()
	}
	if _, err := io.WriteString(a.Out, reply); err != nil {
		return exitFailed
	}
	return 0
}

// veto ends the denied command and those that it runs, the outermost first, so
// that none can go on when another fails. It does not return before they are gone:
// git waits for this process. One that cannot be ended, as the first process of a
// PID namespace cannot from inside, is held.
func (a *answer) veto(s subject, code int) int {
	for _, c := range slices.Backward(s.commands) {
		err := endProcess(c.Process, a.indexLock())
		if err == nil {
			continue
		}
		code = exitFailed
		fmt.Fprintf(a.Err, "superqode: the refused command could not be ended (%v), so it waits here; end it from outside\n", err)
		for !gone(c.Process, time.Hour) {
		}
	}
	return code
}

// indexLock is the lock file of the index that git works on.
func (a *answer) indexLock() string {
	if v := superqode.Getenv(a.Env, "GIT_INDEX_FILE"); v != "" {
		return inside(a.Dir, v) + ".lock"
	}
	return filepath.Join(a.repo.GitDir, "index.lock")
}
