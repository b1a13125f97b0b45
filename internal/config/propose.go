package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stacks are the files by which a project's tools are known, the folder that a program
// needs of them and a work tree mostly lacks, and the command that makes it. Of a folder
// the first row counts. Where there is no command, the folder is of use only if it is there.
var stacks = []struct{ file, folder, command string }{
	{"package-lock.json", "node_modules", "npm ci"},
	{"pnpm-lock.yaml", "node_modules", "pnpm install --frozen-lockfile"},
	{"yarn.lock", "node_modules", "yarn install --frozen-lockfile"},
	{"bun.lock", "node_modules", "bun install --frozen-lockfile"},
	{"bun.lockb", "node_modules", "bun install --frozen-lockfile"},
	{"package.json", "node_modules", "npm install"},
	{"uv.lock", ".venv", "uv sync --frozen"},
	{"poetry.lock", ".venv", "poetry install --no-interaction"},
	{"requirements.txt", "venv", ""},
	{"requirements.txt", ".venv", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"},
	{"pyproject.toml", ".venv", "python3 -m venv .venv && .venv/bin/pip install -e ."},
	{"go.mod", "vendor", ""},
	{"Cargo.toml", "vendor", ""},
	{"Gemfile", "vendor/bundle", ""},
	{"composer.lock", "vendor", "composer install --no-interaction"},
}

// A Proposal is what a project's sessions are to have besides what git tracks.
type Proposal struct {
	Include []string // lines for .worktreeinclude
	Setup   []string // lines of setup:, for what there is no copy of
}

// Propose looks at the top folder of a project. A command that configured, the text of its
// superqode.yaml, has already is not proposed. ignored answers whether a name in it stays
// behind when a session begins; nil: a session is a copy, without node_modules and .venv.
func Propose(dir, configured string, ignored func(name string, isDir bool) bool) Proposal {
	var p Proposal
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	seen := map[string]bool{}
	for _, s := range stacks {
		switch {
		case seen[s.folder] || !exists(s.file) || s.command == "" && !exists(s.folder):
			continue
		case ignored != nil && exists(s.folder):
			if ignored(s.folder, true) {
				p.Include = append(p.Include, s.folder+"/")
			}
		case exists(s.folder) && s.folder != "node_modules" && s.folder != ".venv":
		case s.command != "" && !strings.Contains(configured, s.command) && !(s.folder == ".venv" && seen["venv"]):
			p.Setup = append(p.Setup, fmt.Sprintf("  - run: {command: %s, timeout: 10m, fingerprint_inputs: [%s], observed: [%s]}\n", s.command, s.file, s.folder))
		}
		seen[s.folder] = true
	}
	files, _ := filepath.Glob(filepath.Join(dir, ".env.*")) // .env comes along by default
	for _, path := range files {
		name := filepath.Base(path)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && ignored != nil && ignored(name, false) {
			p.Include = append(p.Include, name)
		}
	}
	return p
}

// YAML is the part of a configuration file that holds the proposal's setup, "" for none.
func (p Proposal) YAML() string {
	if len(p.Setup) == 0 {
		return ""
	}
	return "setup:\n" + strings.Join(p.Setup, "")
}
