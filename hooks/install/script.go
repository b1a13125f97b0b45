package install

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/installation"
	"github.com/seed-2d964004/superqode/internal/text"
)

// scriptMark stands in the second line of every hook that guard install writes.
const scriptMark = "# superqode-guard hook 1\n"

// pingVariable makes the hook of reference transactions say that it was reached,
// and refuse: guard status asks so whether git really runs it.
const pingVariable = "SUPERQODE_GUARD_PING"

const pong = "superqode-guard-pong "

// script is the hook of one name in an installation. next are the lines of the shell that
// set next, the user's hook. A helper that is gone must not stop the user's git: the
// hook says so and goes on to the user's own.
func script(in *installation.Record, name, next string) string {
	helper := string(in.Helper)
	var b strings.Builder
	b.WriteString("#!/bin/sh\n" + scriptMark)
	b.WriteString("# Refuses what programs do to this repository's history; a person at a terminal\n# passes. Put in by superqode guard install, taken out by superqode guard uninstall.\n")
	b.WriteString(next + "\n")
	if name == installation.TransactionHook {
		b.WriteString(`if [ -n "$` + pingVariable + `" ]; then echo "` + pong + `$` + pingVariable +
			`" >&2; exit 1; fi` + "\n")
	}
	if slices.Contains(installation.Deciders(), name) {
		b.WriteString("guard=" + text.QuoteSingle(helper) + "\n")
		b.WriteString(`if [ -x "$guard" ]`)
		switch {
		case idle(in, name):
			b.WriteString(` && [ -x "$next" ]`) // it knows when hooks call one another in a circle
		case name == installation.TransactionHook:
			b.WriteString(` && [ "$1" = prepared ]`)
		case name == "prepare-commit-msg":
			// Between pre-commit and the transaction it is needed with --no-verify only, lest
			// an editor opens, or a hook of the user's runs, for nothing.
			b.WriteString(` && { [ "$2" != message ] || [ -x "$next" ]; }`)
		}
		b.WriteString("; then\n\t" + `GOMAXPROCS=${GOMAXPROCS:-` +
			strings.TrimPrefix(installation.Processors, "GOMAXPROCS=") + `} exec "$guard" ` + installation.Command +
			" " + name + ` "${0%/*}/../superqode" "$next" "$@"` + "\nfi\n")
		if name == "prepare-commit-msg" || name == "pre-push" || name == "pre-rebase" {
			b.WriteString(`if [ ! -x "$guard" ]; then echo "superqode: $guard is gone, so nothing guards this repository. Install superqode again, or remove this hook: $0" >&2; fi` + "\n")
		}
	}
	b.WriteString(`if [ -f "$next" ] && [ -x "$next" ]; then exec "$next" "$@"; fi` + "\nexit 0\n")
	return b.String()
}

// idle reports a hook that has nothing to refuse under this policy: every commit
// meets reference-transaction, too, and where commits are allowed pre-commit would
// start the helper only to hear that.
func idle(in *installation.Record, name string) bool {
	policy, err := guard.NewPolicy(in.Allow, in.Deny)
	return name == "pre-commit" && err == nil && policy.Decide("commit") == guard.Allow
}

// isOurs reports whether a file is a hook of guard install's, whatever its name is
// by now.
func isOurs(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	return (err == nil || err == io.ErrUnexpectedEOF) &&
		bytes.Contains(head[:n], []byte("\n"+scriptMark[:len(scriptMark)-3]))
}

// passedOn are the hooks that a folder of ours hands on under rule 2: all of git's
// but those whose mere presence changes what git does, or that git runs with every
// look at the index; these are there only if the former folder has them.
func passedOn(former string) []string {
	var names []string
	for _, name := range installation.GitHooks() {
		switch name {
		case "post-index-change", "proc-receive", "pre-receive", "update", "post-receive", "post-update",
			"sendemail-validate",
			"p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist":
			if st, err := os.Stat(filepath.Join(former, name)); former == "" || err != nil || st.IsDir() {
				continue
			}
		}
		names = append(names, name)
	}
	if st, err := os.Stat(filepath.Join(former, "push-to-checkout")); former != "" && err == nil && !st.IsDir() {
		names = append(names, "push-to-checkout")
	}
	return names
}
