package gittest

import (
	"path/filepath"
	"runtime"
)

// Dirty makes a repository in every state that a user's work can be in at once:
// two branches, a tag, a stash, a remote in a second folder, hooks and local
// configuration; staged, unstaged, staged and changed again, deleted (both
// ways), renamed, mode changed, type changed, intent-to-add, untracked, ignored;
// links, executables, binary, empty and CRLF files, a file without a newline at
// its end, empty folders and names that tools trip over.
func Dirty(tb TB) *Fixture {
	tb.Helper()
	return dirtyTemplate.Make(tb)
}

var dirtyTemplate = Template{Build: MakeDirty}

// MakeDirty makes what Dirty describes in a fixture that is empty, for a template
// that adds to it.
func MakeDirty(f *Fixture) {
	f.Git("init", "-q")
	dirtyHistory(f)
	dirtyRemote(f)
	f.Write("stashed.txt", "changed in the stash\n")
	f.Write("stash-untracked.txt", "untracked in the stash\n")
	f.Git("stash", "push", "-q", "-u", "-m", "work put aside")
	f.WriteMode(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)
	f.Git("config", "superqode.fixture", "kept")
	dirtyIndex(f)
	dirtyWorkTree(f)
}

// oddNames are names that tools trip over; those that are not UTF-8 are for
// file systems that take any bytes.
func oddNames() []string {
	names := []string{"-dash", "with space", "trailing ", "new\nline", "tab\there", `quote".txt`, "ünï.txt", "#hash",
		"*star", "[x]", "back\\slash"}
	if runtime.GOOS == "linux" {
		names = append(names, "latin1-\xe9", "broken-\xff\xfe")
	}
	return names
}

func dirtyHistory(f *Fixture) {
	f.Write("README.md", "# fixture\n\nOne.\nTwo.\nThree.\n")
	f.Write(".gitignore", "*.log\n/build/\n")
	f.Write("src/main.go", "package main\n\nfunc main() {}\n")
	f.Write("src/deep/er/lib.go", "package er\n\n// Lib is here.\nvar Lib = 1\n")
	f.WriteMode("tool.sh", "#!/bin/sh\necho tool\n", 0o755)
	f.Write("mode.sh", "#!/bin/sh\necho mode\n")
	f.Write("crlf.txt", "one\r\ntwo\r\n")
	f.Write("latin1.txt", "caf\xe9\n")
	f.Write("no-newline.txt", "no newline at the end")
	f.Write("empty.txt", "")
	f.Write("binary.bin", "\x00\x01\x02\xff\xfe\x00binary\x00")
	for _, name := range []string{"staged.txt", "unstaged.txt", "both.txt", "deleted.txt", "removed.txt", "stashed.txt",
		"becomes-link.txt"} {
		f.Write(name, "first contents of "+name+"\n")
	}
	f.Write("old-name.txt", "a file that is renamed\nwith a few lines\nso that git sees it\n")
	f.Symlink("README.md", "link")
	f.Symlink("nowhere/at/all", "dangling")
	for _, name := range oddNames() {
		f.Write("odd/"+name, "odd "+name+"\n")
	}
	f.Commit("first")
	f.Write("src/main.go", "package main\n\nfunc main() { println(1) }\n")
	f.Commit("second")
	f.Git("tag", "-a", "-m", "a tag", "v1.0.0")
	f.Git("switch", "-q", "-c", "feature")
	f.Write("feature.txt", "on a branch\n")
	f.Commit("on feature")
	f.Git("switch", "-q", "main")
}

func dirtyRemote(f *Fixture) {
	remote := filepath.Join(f.Home, "remote.git")
	f.Git("init", "-q", "--bare", remote)
	f.Git("remote", "add", "origin", remote)
	f.Git("push", "-q", "-u", "origin", "main", "v1.0.0")
	f.Git("fetch", "-q", "origin")
}

func dirtyIndex(f *Fixture) {
	f.Write("staged.txt", "staged contents\n")
	f.Write("both.txt", "staged contents of both\n")
	f.Write("new-staged.txt", "new and staged\n")
	f.Git("add", "staged.txt", "both.txt", "new-staged.txt")
	f.Git("mv", "old-name.txt", "new-name.txt")
	f.Git("rm", "-q", "removed.txt")
	f.Write("intent.txt", "intent to add\n")
	f.Git("add", "--intent-to-add", "intent.txt")
}

func dirtyWorkTree(f *Fixture) {
	f.Write("both.txt", "changed again after staging\n")
	f.Write("unstaged.txt", "unstaged contents\n")
	f.WriteMode("mode.sh", "#!/bin/sh\necho mode\n", 0o755)
	f.Remove("deleted.txt")
	f.Remove("becomes-link.txt")
	f.Symlink("staged.txt", "becomes-link.txt")
	f.Write("untracked.txt", "untracked\n")
	f.Write("new-folder/inner/untracked.go", "package inner\n")
	f.WriteMode("new-folder/run.sh", "#!/bin/sh\n", 0o755)
	f.Symlink("../README.md", "new-folder/link")
	f.Write("odd/untracked \nname", "untracked odd name\n")
	f.Write("debug.log", "ignored file\n")
	f.Write("build/out/result.o", "ignored\x00binary")
	f.WriteMode("build/secret", "ignored, private\n", 0o600)
	f.Mkdir("empty-folder/inner")
}
