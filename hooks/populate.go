package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
)

// Populate fills dir, a folder right below the session's, with what Env leads git
// to: a link to helper under each hook's name, and the configuration for guarded
// repositories. helper is the session's own copy of the helper binary, which
// finds the session by its place. What is there already is replaced, so that it
// may be repeated.
//
// The link named RemoteHelper belongs into a folder of the session's PATH; its
// place is the caller's choice.
func Populate(ctx context.Context, st *guard.SessionState, dir, helper string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	target := helper
	if rel, err := filepath.Rel(dir, helper); err == nil {
		target = rel
	}
	names := append(gitHooks(), fsmonitorName, receiveName)
	if !gitVersion(st).Before(versionConfigHooks) {
		names = append(names, configHookName)
	}
	for _, name := range names {
		if err := link(target, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("fill the folder of hooks: %w", err)
		}
	}
	remotes, err := pushedRemotes(ctx, st)
	if err != nil {
		return err
	}
	core := coreConfig(st, dir)
	if err := atomicfile.Write(filepath.Join(dir, coreConfigFile), []byte(core), 0o600); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, configFile), []byte(core+remoteConfig(st, dir, remotes)), 0o600)
}

func link(target, name string) error {
	err := os.Symlink(target, name)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	if old, err := os.Readlink(name); err == nil && old == target {
		return nil
	}
	if err := os.Remove(name); err != nil {
		return err
	}
	return os.Symlink(target, name)
}

// section writes one section of a configuration file.
func section(name, sub string, entries ...entry) string {
	var b strings.Builder
	b.WriteString("[" + name)
	if sub != "" {
		b.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`)
	}
	b.WriteString("]\n")
	for _, e := range entries {
		b.WriteString("\t" + e.key + " = " + configQuote(e.value) + "\n")
	}
	return b.String()
}

// coreConfig is what makes git call the helper.
func coreConfig(st *guard.SessionState, dir string) string {
	text := section("core", "", entry{"hooksPath", dir}, entry{"fsmonitor", shellWord(filepath.Join(dir, fsmonitorName))}, entry{"fsmonitorHookVersion", "2"})
	// A fetch ends with housekeeping, which the guard would refuse with many words.
	if gitVersion(st).Before(versionMaintenance) {
		return text + section("gc", "", entry{"auto", "0"})
	}
	return text + section("maintenance", "", entry{"auto", "false"})
}

// remoteConfig is what may stand in the configuration once only: the addresses
// that are pushed to, and the hooks by name.
func remoteConfig(st *guard.SessionState, dir string, remotes []remote) string {
	var b strings.Builder
	clears := !gitVersion(st).Before(versionClearList)
	for _, r := range remotes {
		var set []entry
		if !r.receivePack {
			set = append(set, entry{"receivepack", singleQuote(filepath.Join(dir, receiveName))})
		}
		if len(r.pushURLs) > 0 && clears {
			set = append(set, entry{"pushurl", ""})
		}
		for _, u := range r.pushURLs {
			switch {
			case clears:
				set = append(set, entry{"pushurl", BlockedScheme + u})
			case !fetchedFrom(remotes, u):
				b.WriteString(section("url", BlockedScheme+u, entry{"insteadOf", u}))
			}
		}
		b.WriteString(section("remote", r.name, set...))
	}
	if !gitVersion(st).Before(versionConfigHooks) {
		for _, event := range []string{transactionHook, "prepare-commit-msg", "pre-push", "pre-rebase"} {
			run := singleQuote(filepath.Join(dir, configHookName)) + " " + event
			if event == transactionHook { // in its other states there is nothing to decide
				run = `test "$1" != prepared || ` + run
			}
			b.WriteString(section("hook", "superqode-"+event, entry{"command", run}, entry{"event", event}))
		}
	}
	return b.String()
}

// shellWord writes a program's path as the value of core.fsmonitor: git gives it to
// a shell only where it holds something that a shell would read (run-command.c),
// and then it must be quoted.
func shellWord(path string) string {
	if strings.ContainsAny(path, "|&;<>()$`\\\"' \t\n*?[#~=%") {
		return singleQuote(path)
	}
	return path
}

// configQuote is a value in git's configuration syntax.
func configQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

// remote is a remote of the guarded repository.
type remote struct {
	name     string
	urls     []string
	pushURLs []string
	// receivePack is set when the user names the program at the other end; git
	// takes the first that it finds, and complains of a second one.
	receivePack bool
}

// fetchedFrom reports whether an address of some remote begins with u: then
// insteadOf would stop fetching, too.
func fetchedFrom(remotes []remote, u string) bool {
	return slices.ContainsFunc(remotes, func(r remote) bool {
		return slices.ContainsFunc(r.urls, func(f string) bool { return strings.HasPrefix(f, u) })
	})
}

// pushedRemotes lists the remotes of the guarded repository. Where a remote has an
// address of its own for pushing git does not look at pushInsteadOf.
func pushedRemotes(ctx context.Context, st *guard.SessionState) ([]remote, error) {
	if len(st.GitDirs) == 0 || st.Off {
		return nil, nil
	}
	if p, err := st.Policy(); err == nil && p.Decide("push") == guard.Allow {
		return nil, nil
	}
	g := git.At(string(st.Git.Bin), nil)
	out, err := g.Output(ctx, git.Cmd{Args: []string{"--git-dir", string(st.GitDirs[0]), "config", "-z", "--get-regexp", `^remote\..*\.(url|pushurl|receivepack)$`}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return nil, nil // none
	}
	if err != nil {
		return nil, fmt.Errorf("read the remotes: %w", err)
	}
	return parseRemotes(string(out)), nil
}

// parseRemotes reads "key\nvalue\0" of git config -z.
func parseRemotes(text string) []remote {
	var list []remote
	for item := range strings.SplitSeq(text, "\x00") {
		key, value, ok := strings.Cut(item, "\n")
		name, found := strings.CutPrefix(key, "remote.")
		dot := strings.LastIndexByte(name, '.')
		if !ok || !found || dot < 0 || value == "" || strings.Contains(name, "\n") {
			continue
		}
		i := slices.IndexFunc(list, func(r remote) bool { return r.name == name[:dot] })
		if i < 0 {
			i = len(list)
			list = append(list, remote{name: name[:dot]})
		}
		switch name[dot+1:] {
		case "pushurl":
			list[i].pushURLs = append(list[i].pushURLs, value)
		case "receivepack":
			list[i].receivePack = true
		default:
			list[i].urls = append(list[i].urls, value)
		}
	}
	return list
}
