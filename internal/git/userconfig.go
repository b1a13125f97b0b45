package git

import (
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
)

// UserConfig lists the files that git takes for the user's own configuration
// (git-config(1), FILES), links resolved.
func UserConfig(env []string) []string {
	var list []string
	if f, ok := superqode.LookupEnv(env, "GIT_CONFIG_GLOBAL"); ok {
		list = append(list, f)
	}
	home := superqode.Getenv(env, "HOME")
	xdg := superqode.Getenv(env, "XDG_CONFIG_HOME")
	if home != "" {
		list = append(list, filepath.Join(home, ".gitconfig"))
		if xdg == "" {
			xdg = filepath.Join(home, ".config")
		}
	}
	if xdg != "" {
		list = append(list, filepath.Join(xdg, "git", "config"))
	}
	list = slices.DeleteFunc(list, func(f string) bool { return !filepath.IsAbs(f) })
	for i, f := range list {
		list[i] = superqode.RealPrefix(f)
	}
	return list
}
