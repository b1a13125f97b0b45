package hooks

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Git versions from which something is there.
var (
	versionConfigCount = git.Version{2, 31, 0} // GIT_CONFIG_COUNT, and 'key'='value' in GIT_CONFIG_PARAMETERS
	versionMaintenance = git.Version{2, 29, 0} // maintenance.auto
	versionClearList   = git.Version{2, 46, 0} // an empty value clears remote.NAME.pushurl
	versionConfigHooks = git.Version{2, 54, 0} // hook.NAME.command, hook.NAME.event
)

// BlockedScheme begins every address that git pushes to inside a session.
const BlockedScheme = "superqode-blocked://"

// The files of configuration in the folder of hooks: for guarded repositories, the
// part of it that may be given twice, and for every repository.
const (
	configFile     = "config"
	coreConfigFile = "config.core"
	pushConfigFile = "config.push"
)

// entry is one configuration value.
type entry struct{ key, value string }

// Env returns the variables (KEY=VALUE) that put a session's hooks into git: dir
// is the folder that Populate filled. None when the session guards nothing.
//
// They are given in both ways that git knows, so that a program that sets one of
// them for its own purpose does not switch the hooks off by accident. Git reads
// GIT_CONFIG_COUNT first; the values are the same.
func Env(st *guard.SessionState, dir string) []string {
	if st.Off {
		return nil
	}
	version := gitVersion(st)
	list := entries(st, filepath.Join(dir, configFile))
	if len(list) == 0 {
		return nil
	}
	if version.Before(versionConfigCount) {
		return []string{"GIT_CONFIG_PARAMETERS=" + parameters(list, version)}
	}
	env := []string{
		"GIT_CONFIG_PARAMETERS=" + parameters(entries(st, filepath.Join(dir, coreConfigFile)), version),
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(list)),
	}
	for i, e := range list {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+e.key, "GIT_CONFIG_VALUE_"+n+"="+e.value)
	}
	return env
}

// gitVersion is the session's git; one that cannot be read counts as the oldest.
func gitVersion(st *guard.SessionState) git.Version {
	v, err := git.ParseVersion("git version " + st.Git.Version)
	if err != nil {
		return git.MinVersion
	}
	return v
}

// entries is what the environment holds: a file for guarded repositories,
// included where the git dir is one of theirs, and for every
// repository that what is pushed goes to the helper first.
func entries(st *guard.SessionState, file string) []entry {
	var list []entry
	includeIf := "includeIf.gitdir:"
	if runtime.GOOS == "darwin" { // which writes a path in the case in which it was typed
		includeIf = "includeIf.gitdir/i:"
	}
	add := func(place string) {
		// What no key can hold: then the hooks run everywhere, and find out themselves.
		// An old GIT_CONFIG_PARAMETERS ends the key at the first "=".
		if strings.Contains(place, "\n") || strings.Contains(place, "=") && gitVersion(st).Before(versionConfigCount) {
			list = append(list, entry{"include.path", file})
			return
		}
		list = append(list, entry{includeIf + place + ".path", file})
	}
	for _, d := range st.Trees {
		add(text.QuotePattern(string(d)) + "/")
	}
	if st.Private != nil {
		add(text.QuotePattern(string(st.Private.Dir)))
		add(text.QuotePattern(string(st.Private.Dir)) + "/")
	}
	for _, d := range st.GitDirs {
		if slices.ContainsFunc(st.Trees, func(t superqode.HostPath) bool {
			return d != t && superqode.Within(string(d), string(t))
		}) {
			continue
		}
		add(text.QuotePattern(string(d)))       // the main work tree
		add(text.QuotePattern(string(d)) + "/") // linked work trees, submodules
	}
	if blocksPush(st) {
		list = append(list, entry{"include.path", filepath.Join(filepath.Dir(file), pushConfigFile)})
	}
	return list
}

// parameters writes GIT_CONFIG_PARAMETERS as git's "-c" does: 'key'='value' since
// 2.31, 'key=value' before.
func parameters(list []entry, version git.Version) string {
	words := make([]string, 0, len(list))
	for _, e := range list {
		if version.Before(versionConfigCount) {
			words = append(words, text.QuoteSingle(e.key+"="+e.value))
		} else {
			words = append(words, text.QuoteSingle(e.key)+"="+text.QuoteSingle(e.value))
		}
	}
	return strings.Join(words, " ")
}
