package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/text"
)

// update is one line of a reference transaction: "<old> <new> <ref>". A value is
// an object id, all zeros for "none", or "ref:<target>" for a symbolic ref (git
// 2.46). An old value of zeros means that git did not say what it has to be: the
// ref is made, or moved by force.
type update struct {
	old, new, ref string
}

// parseUpdates reads the input of a reference-transaction hook. What is no update
// is passed over.
func parseUpdates(input []byte) []update {
	var list []update
	for line := range strings.Lines(string(input)) {
		line = strings.TrimSuffix(line, "\n")
		old, rest, ok := strings.Cut(line, " ")
		new, ref, ok2 := strings.Cut(rest, " ")
		if ok && ok2 && ref != "" {
			list = append(list, update{old, new, ref})
		}
	}
	return list
}

func isZero(id string) bool { return strings.Trim(id, "0") == "" }

// idle reports that a line changes nothing: reset verifies HEAD so.
func (u update) idle() bool { return u.old == u.new && !isZero(u.old) }

// transaction decides on a reference transaction that is prepared: every ref is
// locked and nothing has moved.
func (a *answer) transaction(ctx context.Context) (code int, input []byte) {
	input, err := io.ReadAll(a.In)
	if err != nil { // git is gone; what could not be read must not pass
		return exitRefused, input
	}
	if input == nil {
		input = []byte{}
	}
	var busy []update
	for _, u := range parseUpdates(input) {
		if !u.idle() {
			busy = append(busy, u)
		}
	}
	if len(busy) == 0 { // pack-refs opens one that holds nothing
		if len(bytes.TrimSpace(input)) == 0 || len(parseUpdates(input)) > 0 {
			return 0, input
		}
	}
	chain := a.commands()
	if len(chain) == 0 {
		return a.refuseRefs(ctx, busy, subject{verdict: guard.Verdict{Command: []string{"git"}}}), input
	}
	s := a.judge(ctx, chain)
	switch {
	case s.verdict.Denied() && !a.forRefs(s.verdict.Operation):
		code := a.refuse(s)
		if code != 0 && s.verdict.Operation == "branch.rename" {
			return a.undoRename(s, busy, code), input
		}
		return code, input
	case chain[0].name() == "pack-refs", // writes refs down in another way, and leaves their values alone
		!s.verdict.Denied() && a.byUser(s.verdict.Operation):
		return 0, input
	}
	s.pid = chain[0].PID
	if len(s.verdict.Command) == 0 {
		s.verdict.Command = chain[0].argv
	}
	return a.refuseRefs(ctx, busy, s), input
}

// renamedLog is where git keeps a branch's reflog while it renames the branch
// (TMP_RENAMED_LOG of refs/files-backend.c).
const renamedLog = "refs/.tmp-renamed-log"

// undoRename ends a "git branch -m" that was refused, and puts the branch's reflog
// back: git has moved it aside before it asks, and would leave it there when the
// hook says no.
func (a *answer) undoRename(s subject, list []update, code int) int {
	aside := filepath.Join(a.repo.CommonDir, "logs", renamedLog)
	for _, u := range list {
		if !isZero(u.new) || !strings.HasPrefix(u.ref, "refs/heads/") || strings.Contains(u.ref, "..") {
			continue
		}
		back := filepath.Join(a.repo.CommonDir, "logs", u.ref)
		if _, err := os.Lstat(back); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if code = a.veto(s, code); code == exitFailed {
			return code
		}
		err := os.MkdirAll(filepath.Dir(back), 0o777) // as git makes it
		if err == nil {
			err = os.Rename(aside, back)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(a.Err, "superqode: the reflog of %s stays in %s: %v\n", text.Printable(u.ref), aside, err)
		}
	}
	return code
}

// forRefs reports operations that are known by the refs which they move better
// than by their words: once "fetch origin main:new" or "checkout -B new" has made
// the branch, the words read as if it had been there all the time.
func (a *answer) forRefs(op guard.Operation) bool {
	switch op {
	case "fetch.update", "checkout.reset-branch", "switch.reset-branch":
		return true
	}
	return false
}

// byUser reports an operation that the configuration allows and the default
// denies: then the user wants what it does to refs.
func (a *answer) byUser(op guard.Operation) bool {
	info, ok := op.Info()
	return ok && info.Default == guard.Deny && a.policy.Decide(op) == guard.Allow
}

// refuseRefs refuses a transaction in which something of the user's moves.
func (a *answer) refuseRefs(ctx context.Context, list []update, s subject) int {
	refs := refReader{a: a}
	withHead := slices.ContainsFunc(list, func(u update) bool { return u.ref == "HEAD" })
	for _, u := range list {
		op := a.moves(ctx, u, &refs, mover{s.verdict.Operation, withHead})
		if op == "" || a.policy.Decide(op) == guard.Allow {
			continue
		}
		v := a.policy.Refusal(op, s.verdict.Command)
		v.Reason += ": it would change " + text.Printable(u.ref)
		return a.refuse(subject{verdict: v, pid: s.pid})
	}
	return 0
}

// mover is what is known of the command that moves refs.
type mover struct {
	op       guard.Operation // "" if it is not known
	withHead bool            // HEAD moves in the same transaction
}

// moves returns the operation that a line is, or "" when it takes nothing away: a
// new branch or tag, a remote-tracking ref, a ref of this work tree alone.
func (a *answer) moves(ctx context.Context, u update, refs *refReader, by mover) guard.Operation {
	rest, isRef := strings.CutPrefix(u.ref, "refs/")
	kind, _, _ := strings.Cut(rest, "/")
	switch {
	case !isRef, slices.Contains([]string{"remotes", "bisect", "worktree", "rewritten", "prefetch"}, kind) &&
		rest != kind:
		return ""
	case u.ref == "refs/stash":
		if isZero(u.new) {
			return "stash.drop"
		}
		return "stash.push"
	case strings.HasPrefix(u.ref, "refs/replace/"):
		return "replace.write"
	case strings.HasPrefix(u.ref, "refs/notes/"):
		return "notes.write"
	}
	now, known := u.old, true
	if isZero(u.old) {
		now, known = refs.value(ctx, u.ref)
	}
	switch {
	case known && now == u.new:
		return ""
	case known && isZero(now): // it is not there: a new name, or nothing to delete
		return ""
	case by.op == "fetch.update" || by.op == "fetch":
		return "fetch.update"
	case by.op == "" && by.withHead:
		return "commit" // the command is not known
	case strings.HasPrefix(u.ref, "refs/heads/") && isZero(u.new):
		return "branch.delete"
	case strings.HasPrefix(u.ref, "refs/heads/"):
		return "branch.force"
	case strings.HasPrefix(u.ref, "refs/tags/") && isZero(u.new):
		return "tag.delete"
	case strings.HasPrefix(u.ref, "refs/tags/"):
		return "tag.force"
	}
	return "update-ref"
}
