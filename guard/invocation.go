package guard

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// invocation is a git command after its global options were read.
type invocation struct {
	st       *state
	globals  []string // the global options as given
	dir      string   // after -C
	gitDir   string   // --git-dir or GIT_DIR, absolute, "" when not given
	workTree string   // --work-tree or GIT_WORK_TREE
	config   []configEntry
	command  string
	args     []string
	argv     []string // as it stood in the text
}

// configEntry is one configuration value from the command line or environment.
type configEntry struct{ key, value string }

// gitProgram tells whether a program name is git. For git-NAME it returns NAME
// as the first argument.
func gitProgram(word string) ([]string, bool) {
	// On file systems that ignore case, as macOS has them, GIT is git.
	base := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
	base = strings.TrimSuffix(base, ".exe")
	if base == "git" || base == "git.real" {
		return nil, true
	}
	if strings.ContainsAny(base, "*?[") && strings.Contains(word, "/") {
		if ok, err := path.Match(base, "git"); err == nil && ok {
			return nil, true
		}
	}
	if name, ok := strings.CutPrefix(base, "git-"); ok && (isGitCommand(name) || knownExternal(name)) {
		return []string{name}, true
	}
	return nil, false
}

// Global options that take the next word when no value is glued on with "=".
var globalsWithValue = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--shallow-file"}

// readGlobals follows handle_options of git.c: global options can not be cut
// short, and -h or --version as a command end in help.
func (c *checker) readGlobals(st *state, argv []string) *invocation {
	inv := &invocation{st: st, dir: st.dir, argv: argv}
	inv.fromEnv(st)
	rest := argv[1:]
	for len(rest) > 0 {
		a := rest[0]
		if !strings.HasPrefix(a, "-") {
			break
		}
		name, value, glued := strings.Cut(a, "=")
		took := 1
		if slices.Contains(globalsWithValue, name) && !glued {
			if len(rest) < 2 {
				return inv
			}
			value, took = rest[1], 2
		}
		switch name {
		case "-h", "--help", "-v", "--version", "--html-path", "--man-path", "--info-path", "--list-cmds":
			inv.command = "help"
			return inv
		case "--exec-path":
			if !glued {
				inv.command = "help"
				return inv
			}
		case "-C":
			inv.dir = under(inv.dir, value)
		case "-c":
			inv.addConfig(value)
		case "--config-env":
			if key, env, ok := strings.Cut(value, "="); ok {
				inv.config = append(inv.config, configEntry{key, st.envOr(env)})
			}
		case "--git-dir":
			inv.gitDir = under(inv.dir, value)
		case "--work-tree":
			inv.workTree = under(inv.dir, value)
		}
		inv.globals = append(inv.globals, rest[:took]...)
		rest = rest[took:]
	}
	if len(rest) > 0 {
		inv.command, inv.args = rest[0], rest[1:]
	}
	return inv
}

func (inv *invocation) addConfig(entry string) {
	key, value, ok := strings.Cut(entry, "=")
	if !ok {
		value = "true"
	}
	inv.config = append(inv.config, configEntry{key, value})
}

// fromEnv reads the variables by which configuration and repository reach git.
func (inv *invocation) fromEnv(st *state) {
	if v, ok := st.exported("GIT_DIR"); ok && v != "" {
		inv.gitDir = under(st.dir, v)
	}
	if v, ok := st.exported("GIT_WORK_TREE"); ok && v != "" {
		inv.workTree = under(st.dir, v)
	}
	if v, ok := st.exported("GIT_CONFIG_COUNT"); ok {
		n, _ := strconv.Atoi(v)
		for i := range min(n, 256) {
			k, _ := st.exported("GIT_CONFIG_KEY_" + strconv.Itoa(i))
			v, _ := st.exported("GIT_CONFIG_VALUE_" + strconv.Itoa(i))
			inv.config = append(inv.config, configEntry{k, v})
		}
	}
	if v, ok := st.exported("GIT_CONFIG_PARAMETERS"); ok {
		inv.config = append(inv.config, configParameters(v)...)
	}
}

// configParameters reads git's own quoting: 'key=value' (old) or 'key'='value'.
func configParameters(text string) []configEntry {
	var out []configEntry
	for _, w := range splitCommand(text) {
		if k, v, ok := strings.Cut(w, "="); ok {
			out = append(out, configEntry{k, v})
		} else {
			out = append(out, configEntry{w, "true"})
		}
	}
	return out
}

// splitCommand splits an alias as git's split_cmdline does: quotes and
// backslashes, nothing else.
func splitCommand(s string) []string {
	var out []string
	var cur strings.Builder
	var quote byte
	inWord := false
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote == 0 && (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r'):
			if inWord {
				out = append(out, cur.String())
				cur.Reset()
				inWord = false
			}
		case quote == 0 && (ch == '\'' || ch == '"'):
			quote, inWord = ch, true
		case ch == quote:
			quote = 0
		case ch == '\\' && quote != '\'' && i+1 < len(s):
			i++
			cur.WriteByte(s[i])
			inWord = true
		default:
			cur.WriteByte(ch)
			inWord = true
		}
	}
	if inWord {
		out = append(out, cur.String())
	}
	return out
}

// configured looks a key up: the command line and environment first, then the
// repository and the user's files through the resolver.
func (c *checker) configured(inv *invocation, key string) (string, bool) {
	for _, e := range slices.Backward(inv.config) {
		if strings.EqualFold(e.key, key) {
			return e.value, true
		}
	}
	if v, ok := c.writtenConfig(inv, key); ok {
		return v, true
	}
	if r, at, ok := c.resolver(inv); ok {
		return r.Config(c.ctx, at, key)
	}
	return "", false
}

// resolver returns the resolver, if it can be asked about this command at all.
func (c *checker) resolver(inv *invocation) (Resolver, At, bool) {
	if !isKnown(inv.dir) {
		return nil, At{}, false
	}
	for _, g := range inv.globals {
		if !isKnown(g) {
			return nil, At{}, false
		}
	}
	r := c.asks()
	if r == nil {
		return nil, At{}, false
	}
	return r, At{Dir: inv.dir, Globals: withoutDir(inv.globals), Env: inv.st.gitEnv()}, true
}

// asks returns whoever can be asked, or nil.
func (c *checker) asks() Resolver {
	if c.in.Resolver == nil && c.in.Find != nil {
		c.in.Resolver, c.in.Find = c.in.Find(), nil
	}
	return c.in.Resolver
}

// withoutDir drops -C, which At.Dir already holds, and what only prints.
func withoutDir(globals []string) []string {
	var out []string
	for i := 0; i < len(globals); i++ {
		switch g := globals[i]; g {
		case "-C":
			i++
		case "-p", "--paginate", "-P", "--no-pager":
		default:
			out = append(out, g)
		}
	}
	return out
}

// elsewhere reports whether the command clearly acts on a repository other than
// the guarded one: one that the text itself made, or one that the resolver found
// to have another common directory.
func (c *checker) elsewhere(inv *invocation) bool {
	place := inv.dir
	if inv.gitDir != "" {
		place = inv.gitDir
	}
	for _, e := range inv.config {
		if strings.EqualFold(e.key, "core.worktree") {
			return false
		}
	}
	if !c.foreign(inv, place) {
		return false
	}
	// A foreign git dir with the guarded tree still writes into the tree.
	return inv.workTree == "" || c.foreign(inv, inv.workTree)
}

func (c *checker) foreign(inv *invocation, place string) bool {
	for root := range c.fresh {
		if superqode.Within(place, root) {
			return true
		}
	}
	if c.in.Guarded == "" {
		return false
	}
	r, at, ok := c.resolver(inv)
	if !ok {
		return false
	}
	if place != inv.gitDir && place != inv.dir { // a work tree given by itself
		at = At{Dir: place}
	}
	common, ok := r.Repository(c.ctx, at)
	return ok && common != c.in.Guarded
}
