package kernel

import (
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// A need is a place outside the session that tools write to.
type need struct {
	// vars are the variables that name the place; the first one that is set to an
	// absolute path counts.
	vars []string
	// path is the place if no variable is set: absolute, or below "~" (HOME),
	// "@cache", "@config", "@data", "@state" (the XDG folders) or "@gopath". A
	// last element that ends in "*" stands for all names with that prefix. ""
	// is no place.
	path string
	// tool is the program that would create the folder if it were missing; Open
	// creates it then, because the confined tool could not. "" creates nothing.
	tool string
	// sub is what of the place is meant; "" is all of it.
	sub string
	// whole means that the place is useful only as a whole: if it contains
	// something that must not be written, it is dropped and not narrowed.
	whole bool
}

// needs is the table of what is writable besides the session's own folders.
// Sources: the tools' own documentation of their cache and state folders.
func needs(root bool) []need {
	list := []need{
		// Devices: terminals, and those that hold nothing.
		{path: "/dev/null"}, {path: "/dev/zero"}, {path: "/dev/full"}, {path: "/dev/random"}, {path: "/dev/urandom"},
		{path: "/dev/tty"}, {path: "/dev/ptmx"}, {path: "/dev/pts"}, {path: "/dev/shm",
			whole: true}, {path: "/dev/mqueue", whole: true},
		{path: "/dev/kvm"}, {path: "/dev/dri"}, {path: "/dev/kfd"}, {path: "/dev/nvidia*"},
		// Scratch.
		{path: "/tmp", whole: true}, {path: "/var/tmp", whole: true}, {vars: []string{"GOTMPDIR"}},
		// Caches and stores of build tools.
		{vars: []string{"XDG_CACHE_HOME"}, path: "~/.cache", tool: "sh"},
		{vars: []string{"GOCACHE"}, path: "@cache/go-build"},
		{vars: []string{"GOMODCACHE"}}, {path: "@gopath/pkg", tool: "go"},
		{vars: []string{"GOLANGCI_LINT_CACHE"}}, {vars: []string{"STATICCHECK_CACHE"}},
		{vars: []string{"npm_config_cache", "NPM_CONFIG_CACHE"}, path: "~/.npm", tool: "npm"},
		{vars: []string{"YARN_CACHE_FOLDER"}}, {vars: []string{"YARN_GLOBAL_FOLDER"}, path: "~/.yarn/berry"},
		{vars: []string{"npm_config_store_dir"}, path: "@data/pnpm"}, {path: "~/.pnpm-store"}, {path: "@state/pnpm"},
		{vars: []string{"BUN_INSTALL_CACHE_DIR"}, path: "~/.bun/install/cache"}, {vars: []string{"DENO_DIR"}}, {vars: []string{"COREPACK_HOME"}},
		{vars: []string{"CARGO_HOME"}, path: "~/.cargo", tool: "cargo"}, {vars: []string{"CARGO_TARGET_DIR"}},
		{vars: []string{"PIP_CACHE_DIR"}}, {vars: []string{"UV_CACHE_DIR"}}, {path: "@data/uv"}, {path: "@data/virtualenv"},
		{vars: []string{"POETRY_CACHE_DIR"}}, {vars: []string{"PIPENV_CACHE_DIR"}}, {vars: []string{"PRE_COMMIT_HOME"}}, {path: "~/.conda/pkgs"},
		{vars: []string{"GRADLE_USER_HOME"}, path: "~/.gradle", tool: "gradle"}, {path: "~/.m2/repository",
			tool: "mvn"}, {path: "~/.ivy2"}, {path: "~/.sbt"},
		{vars: []string{"NUGET_PACKAGES"}, path: "~/.nuget/packages",
			tool: "dotnet"}, {path: "@data/NuGet"}, {path: "~/.dotnet"},
		{vars: []string{"COMPOSER_HOME"}, path: "~/.composer"}, {vars: []string{"COMPOSER_CACHE_DIR"}},
		{path: "~/.bundle/cache"}, {path: "~/.gem"}, {vars: []string{"MIX_HOME"},
			path: "~/.mix"}, {vars: []string{"HEX_HOME"}, path: "~/.hex"},
		{path: "~/.stack"}, {path: "~/.cabal"}, {path: "@state/cabal"}, {vars: []string{"PUB_CACHE"},
			path: "~/.pub-cache"},
		{vars: []string{"CCACHE_DIR"}, path: "~/.ccache"}, {vars: []string{"SCCACHE_DIR"}}, {path: "~/.terraform.d/plugin-cache"}, {path: "~/.kube/cache"},
		// Coding agents' own state, and that of editors.
		{vars: []string{"CLAUDE_CONFIG_DIR"}, path: "~/.claude",
			tool: "claude"}, {path: "~/.claude.json"}, {path: "~/.claude.json.backup"},
		{vars: []string{"CODEX_HOME"}, path: "~/.codex", tool: "codex"}, {path: "~/.gemini",
			tool: "gemini"}, {path: "~/.qwen"},
		{path: "~/.cursor", tool: "cursor-agent"}, {path: "@config/cursor"}, {path: "@config/github-copilot"}, {path: "~/.copilot", tool: "copilot"},
		{path: "~/.aider*"}, {path: "~/.continue"}, {path: "~/.factory"}, {path: "~/.augment"}, {path: "~/.vibe"}, {path: "~/.openhands"},
		{path: "@config/nvim/swap"}, {path: "@state/nvim",
			tool: "nvim"}, {path: "~/.vim/swap"}, {path: "~/.emacs.d/auto-save-list"},
	}
	for _, name := range []string{"opencode", "goose", "amp", "crush", "kilo", "claude", "cursor-agent", "amazon-q"} {
		for _, base := range []string{"@config/", "@data/", "@state/"} {
			list = append(list, need{path: base + name})
		}
	}
	if !root {
		// File owners and ptrace rules guard what is there; root's /proc/sys
		// would open the whole machine.
		list = append(list, need{path: "/proc"})
	}
	return list
}

// places turns needs into paths with the program's environment.
type places struct {
	env  []string
	look view
	home string
	goes map[string]string // what `go env -w` has set
}

func newPlaces(env []string, look view) *places {
	p := &places{env: env, look: look}
	if home := superqode.Getenv(env, "HOME"); filepath.IsAbs(home) {
		p.home = filepath.Clean(home)
	}
	p.goes = p.goSettings()
	return p
}

// of returns the absolute paths of a need, none if it has no place here.
func (p *places) of(n need) []string {
	for _, v := range n.vars {
		if path := p.variable(v); filepath.IsAbs(path) {
			return []string{filepath.Clean(path)}
		}
	}
	path := p.expand(n.path)
	if path == "" {
		return nil
	}
	begin, many := strings.CutSuffix(path, "*")
	if !many {
		return []string{path}
	}
	var list []string
	for _, name := range p.look.names(filepath.Dir(begin)) {
		if strings.HasPrefix(name, filepath.Base(begin)) {
			list = append(list, filepath.Join(filepath.Dir(begin), name))
		}
	}
	return list
}

func (p *places) variable(name string) string {
	if v := superqode.Getenv(p.env, name); v != "" {
		return v
	}
	return p.goes[name]
}

func (p *places) expand(path string) string {
	base, rest, _ := strings.Cut(path, "/")
	dir := ""
	switch base {
	case "":
		return path
	case "~":
		dir = p.home
	case "@cache":
		dir = p.xdg("XDG_CACHE_HOME", ".cache")
	case "@config":
		dir = p.xdg("XDG_CONFIG_HOME", ".config")
	case "@data":
		dir = p.xdg("XDG_DATA_HOME", ".local/share")
	case "@state":
		dir = p.xdg("XDG_STATE_HOME", ".local/state")
	case "@gopath":
		dir = filepath.SplitList(p.variable("GOPATH") + string(filepath.ListSeparator))[0]
		if dir == "" && p.home != "" {
			dir = filepath.Join(p.home, "go")
		}
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, rest)
}

// xdg follows the base directory specification: a relative path counts as not
// set.
func (p *places) xdg(name, otherwise string) string {
	if dir := superqode.Getenv(p.env, name); filepath.IsAbs(dir) {
		return dir
	}
	if p.home == "" {
		return ""
	}
	return filepath.Join(p.home, otherwise)
}

// goSettings reads the file of `go env -w`, KEY=VALUE lines.
func (p *places) goSettings() map[string]string {
	name := superqode.Getenv(p.env, "GOENV")
	if name == "" {
		name = p.expand("@config/go/env")
	}
	if !filepath.IsAbs(name) {
		return nil
	}
	set := map[string]string{}
	for line := range strings.Lines(p.look.read(name)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			set[k] = v
		}
	}
	return set
}
