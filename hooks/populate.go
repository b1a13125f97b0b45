package hooks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/installation"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Folder is a session's folder of hooks.
type Folder struct {
	Dir    string // right below the session's own folder
	Helper string // the session's own copy of the helper binary, which finds the session by its place
	// Config yields the configuration of the origin's repository, keys and values as
	// git config --list prints them: it says where pushes go. It is called only where
	// the policy refuses them.
	Config func(context.Context) (iter.Seq2[string, string], error)
}

// Populate fills a folder with what Env leads git to: a link to the helper under each
// hook's name, and configuration. What is there already is replaced, so that it may be
// repeated.
//
// The link named RemoteHelper belongs into a folder of the session's PATH; its
// place is the caller's choice.
func Populate(ctx context.Context, st *guard.SessionState, f Folder) error {
	dir, helper := f.Dir, f.Helper
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := fillLinks(st, dir, helper); err != nil {
		return fmt.Errorf("fill the folder of hooks: %w", err)
	}
	known, err := f.addresses(ctx, st)
	if err != nil {
		return err
	}
	core := coreConfig(st, dir)
	for name, text := range map[string]string{
		coreConfigFile: core,
		configFile:     core + remoteConfig(st, dir, known.remotes),
		pushConfigFile: pushConfig(known.pushPrefixes),
	} {
		if err := atomicfile.Replace(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fillLinks makes the links, and takes away those that are not needed any more: each
// one costs the start of a process where git looks for that hook.
func fillLinks(st *guard.SessionState, dir, helper string) error {
	target := helper
	if rel, err := filepath.Rel(dir, helper); err == nil {
		target = rel
	}
	own := []string{installation.TransactionHook, "prepare-commit-msg", "pre-push", "pre-rebase", fsmonitorName,
		receiveName}
	if !gitVersion(st).Before(versionConfigHooks) {
		own = append(own, configHookName)
	}
	chained := chainedHooks(st)
	if !slices.Contains(chained, installation.TransactionHook) {
		own = own[1:]
		if err := alone(helper, target, filepath.Join(dir, installation.TransactionHook)); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(own, chained) {
		if err := link(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, name := range append(installation.GitHooks(), installation.PushToCheckout) {
		if name == installation.TransactionHook || slices.Contains(own, name) || slices.Contains(chained, name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// chainedHooks are the names of hooks that the user has. With a core.hooksPath that
// is all of them: it may lead into the workspace, where hooks come into being as a
// session goes on. In the git directory there are those that are there now.
func chainedHooks(st *guard.SessionState) []string {
	dirs := []string{string(st.HooksPath)}
	if st.HooksPath == "" {
		dirs = dirs[:0]
		for _, d := range st.GitDirs {
			dirs = append(dirs, filepath.Join(string(d), "hooks"))
		}
	} else if !filepath.IsAbs(dirs[0]) {
		dirs[0] = filepath.Join(string(st.Workspace), dirs[0])
	}
	var names []string
	for _, name := range append(installation.GitHooks(), installation.PushToCheckout) {
		there := slices.ContainsFunc(dirs, func(d string) bool {
			return unix.Access(filepath.Join(d, name), unix.X_OK) == nil
		})
		if there || st.HooksPath != "" && name != installation.PushToCheckout {
			names = append(names, name)
		}
	}
	return names
}

// alone makes the reference-transaction hook where the user has none. That it is
// no symbolic link tells the helper that nothing comes after it.
func alone(helper, target, name string) error {
	if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() && sameFile(helper, name) {
		return nil
	}
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(helper, next); err != nil {
		return link(target, name) // a file system without hard links: it only takes longer
	}
	return os.Rename(next, name)
}

// link makes a symbolic link, or leaves the one that is there already.
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
		b.WriteString("\t" + e.key + " = " + git.QuoteConfig(e.value) + "\n")
	}
	return b.String()
}

// coreConfig is what makes git call the helper.
func coreConfig(st *guard.SessionState, dir string) string {
	text := section("core", "", entry{"hooksPath", dir},
		entry{"fsmonitor", shellWord(filepath.Join(dir, fsmonitorName))}, entry{"fsmonitorHookVersion", "2"})
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
			set = append(set, entry{"receivepack", text.QuoteSingle(filepath.Join(dir, receiveName))})
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
		for _, event := range []string{installation.TransactionHook, "prepare-commit-msg", "pre-push", "pre-rebase"} {
			run := text.QuoteSingle(filepath.Join(dir, configHookName)) + " " + event
			if event == installation.TransactionHook { // in its other states there is nothing to decide
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
		return text.QuoteSingle(path)
	}
	return path
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

// addresses is what the user's configuration says of other repositories.
type addresses struct {
	remotes      []remote
	pushPrefixes []string // of url.BASE.pushInsteadOf
}

// addresses reads the configuration. Where a remote has an address of its own
// for pushing git does not look at pushInsteadOf, and of several rules the longest
// one counts.
func (f Folder) addresses(ctx context.Context, st *guard.SessionState) (addresses, error) {
	if !blocksPush(st) {
		return addresses{}, nil
	}
	conf, err := f.Config(ctx)
	if err != nil {
		return addresses{}, fmt.Errorf("read the remotes: %w", err)
	}
	return addressesIn(conf), nil
}

// blocksPush reports whether the policy refuses to push.
func blocksPush(st *guard.SessionState) bool {
	p, err := st.Policy()
	return !st.Off && (err != nil || p.Decide("push") == guard.Deny)
}

// addressesIn collects remote.NAME.{url,pushurl,receivepack} and
// url.BASE.pushInsteadOf.
func addressesIn(conf iter.Seq2[string, string]) addresses {
	var known addresses
	for name, value := range conf {
		section, rest, _ := strings.Cut(name, ".")
		dot := strings.LastIndexByte(rest, '.')
		if dot < 0 || value == "" {
			continue
		}
		switch subsection, key := rest[:dot], rest[dot+1:]; {
		case section == "url" && key == "pushinsteadof" && !slices.Contains(known.pushPrefixes, value):
			known.pushPrefixes = append(known.pushPrefixes, value)
		case section == "remote" && (key == "url" || key == "pushurl" || key == "receivepack"):
			known.remote(subsection).set(key, value)
		}
	}
	return known
}

// remote returns the remote of a name, a new one if need be.
func (known *addresses) remote(name string) *remote {
	i := slices.IndexFunc(known.remotes, func(r remote) bool { return r.name == name })
	if i < 0 {
		i = len(known.remotes)
		known.remotes = append(known.remotes, remote{name: name})
	}
	return &known.remotes[i]
}

func (r *remote) set(key, value string) {
	switch key {
	case "pushurl":
		r.pushURLs = append(r.pushURLs, value)
	case "receivepack":
		r.receivePack = true
	default:
		r.urls = append(r.urls, value)
	}
}

// pushConfig leads every push to the remote helper. A rule of the user's for a
// prefix is longer than ours for the empty one and would win, so there is one more
// for each byte that can follow that prefix.
func pushConfig(prefixes []string) string {
	var b strings.Builder
	b.WriteString(section("url", BlockedScheme, entry{"pushInsteadOf", ""}))
	for _, p := range prefixes {
		if strings.ContainsRune(p, '\n') {
			continue // no section can be named so
		}
		for c := byte('!'); c <= '~'; c++ {
			b.WriteString(section("url", BlockedScheme+p+string(rune(c)), entry{"pushInsteadOf", p + string(rune(c))}))
		}
	}
	return b.String()
}
