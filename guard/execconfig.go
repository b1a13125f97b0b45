package guard

import (
	"slices"
	"strings"
)

// execKeys are configuration keys whose value git hands to a shell or runs; "*"
// stands for a subsection. Source: git-config(1) of 2.39 to 2.51.
var execKeys = words{text: `core.pager core.editor core.sshcommand core.askpass core.fsmonitor core.gitproxy core.alternaterefscommand sequence.editor
 diff.external diff.*.command diff.*.textconv difftool.*.cmd mergetool.*.cmd merge.*.driver filter.*.clean filter.*.smudge filter.*.process
 interactive.difffilter pager.* credential.helper credential.*.helper gpg.program gpg.*.program trailer.*.cmd trailer.*.command
 uploadpack.packobjectshook remote.*.uploadpack remote.*.receivepack remote.*.vcs browser.*.cmd man.*.cmd guitool.*.cmd submodule.*.update
 sendemail.sendmailcmd sendemail.tocmd sendemail.cccmd init.templatedir web.browser`}

// execVariables are the variables that do the same.
var execVariables = words{text: `GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER PAGER EDITOR VISUAL GIT_EXTERNAL_DIFF GIT_SSH_COMMAND GIT_SSH GIT_ASKPASS
 GIT_PROXY_COMMAND GIT_DIFFTOOL_EXTCMD`}

// execConfig checks commands that reach git through -c or through variables that
// the text sets.
func (c *checker) execConfig(inv *invocation) {
	for _, e := range inv.config {
		if isExecKey(e.key) && (!strings.HasSuffix(strings.ToLower(e.key), ".editor") || editing.has(inv.command)) {
			line, _ := strings.CutPrefix(e.value, "!")
			if isKnown(line) && mayRunGit(line) {
				c.nested(inv.st, line, e.key+" is run by git")
			}
		}
	}
	for _, name := range execVariables.all() {
		if !editing.has(inv.command) && (strings.HasSuffix(name, "EDITOR") || name == "VISUAL") {
			continue
		}
		if v, ok := inv.st.setHere(name); ok && isKnown(v) && mayRunGit(v) {
			c.nested(inv.st, v, name+" is run by git")
		}
	}
}

// editing are the commands that open an editor; what is no command of git's may be
// an alias of one.
var editing = words{text: `commit tag branch rebase config notes merge revert cherry-pick am add replace send-email pull bugreport reset checkout restore stash`}

// mayRunGit keeps plain programs ("less -R", "true") from being parsed: a value
// is looked into when it could start git or write a repository's files.
func mayRunGit(line string) bool { return strings.Contains(line, "git") }

func isExecKey(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(execKeys.all(), func(pattern string) bool {
		before, after, any := strings.Cut(pattern, "*")
		if !any {
			return key == pattern
		}
		return len(key) >= len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after)
	})
}

// execOptions checks the options by which a transport command names a program.
func (c *checker) execOptions(k *call) {
	switch k.name {
	case "fetch", "fetch-pack", "ls-remote", "clone", "archive", "pull":
	default:
		return
	}
	for i, a := range k.args {
		name, value, glued := strings.Cut(a, "=")
		switch name {
		case "--upload-pack", "--exec", "-u":
			if name == "-u" && k.name != "clone" {
				continue
			}
			if !glued && i+1 < len(k.args) {
				value = k.args[i+1]
			}
			if isKnown(value) && mayRunGit(value) {
				c.nested(k.inv.st, value, name+" is run by git")
			}
		}
	}
	if k.name == "ls-remote" && len(k.args) > 0 {
		k.transport(k.args[len(k.args)-1])
	}
}
