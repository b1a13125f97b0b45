package worktree

import (
	"context"
	"strings"

	"github.com/seed-2d964004/superqode/internal/git"
)

// config is git's configuration as it holds in the origin. Section and name are
// in lower case; the last value of a key counts.
type config map[string]string

func readConfig(ctx context.Context, repo *git.Repo) (config, error) {
	out, err := repo.Output(ctx, git.Cmd{Dir: repo.TopLevel, Args: []string{"config", "--includes", "-z", "--list"}})
	if err != nil {
		return nil, err
	}
	c := config{}
	for item := range strings.SplitSeq(string(out), "\x00") {
		if item == "" {
			continue
		}
		key, value, ok := strings.Cut(item, "\n")
		if !ok {
			value = "true" // "key" alone, without "="
		}
		c[key] = value
	}
	return c, nil
}

// bool reads a value as git does; what is no boolean counts as def.
func (c config) bool(key string, def bool) bool {
	v, ok := c[key]
	if !ok {
		return def
	}
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	case "", "false", "no", "off", "0":
		return false
	}
	return def
}
