package guard

import (
	"slices"
	"strings"
)

func (k *call) doBranch() {
	p, done := k.parse(`v/verbose q/quiet t/track? set-upstream u/set-upstream-to= unset-upstream color? r/remotes contains= no-contains= with= without= abbrev? a/all
 d/delete D m/move M c/copy C l/list show-current create-reflog edit-description f/force merged= no-merged= column? sort= points-at= i/ignore-case
 recurse-submodules format= omit-empty`)
	switch {
	case done:
	case p.has("delete", "D"):
		k.op("branch.delete")
	case p.has("move", "M"):
		k.op("branch.rename")
	case p.has("C") || p.has("copy") && p.has("force"):
		k.op("branch.copy")
	case p.has("list"):
		k.read("branch")
	case p.has("force"):
		k.op("branch.force")
	case p.has("set-upstream", "set-upstream-to", "unset-upstream", "edit-description"):
		k.op("branch.config")
	case len(p.args) == 0 || p.has("remotes", "all", "show-current", "contains", "no-contains", "merged", "no-merged", "points-at"):
		k.read("branch")
	default:
		k.op("branch.create")
	}
}

func (k *call) tag() {
	p, done := k.parse(`l/list n? d/delete v/verify a/annotate m/message= F/file= trailer= e/edit s/sign cleanup= u/local-user= f/force create-reflog column?
 contains= no-contains= with= without= merged= no-merged= sort= points-at= format= color? i/ignore-case omit-empty`)
	switch {
	case done:
	case p.has("delete"):
		k.op("tag.delete")
	case p.has("list", "verify"):
		k.read("tag")
	case p.has("force"):
		k.op("tag.force")
	case len(p.args) == 0 || p.has("n", "contains", "no-contains", "merged", "no-merged", "points-at"):
		k.read("tag")
	default:
		k.op("tag.create")
	}
}

func (k *call) fetch() {
	p, done := k.parse(`v/verbose q/quiet all set-upstream a/append atomic upload-pack= f/force m/multiple t/tags n j/jobs= prefetch p/prune P/prune-tags
 recurse-submodules? dry-run porcelain write-fetch-head k/keep u/update-head-ok progress depth= shallow-since= shallow-exclude= deepen= unshallow refetch
 submodule-prefix= recurse-submodules-default= update-shallow refmap= o/server-option= 4/ipv4 6/ipv6 negotiation-tip= negotiate-only filter=
 auto-maintenance auto-gc show-forced-updates write-commit-graph stdin bundle-uri=`)
	if done {
		return
	}
	if p.has("dry-run") {
		k.dryRun("fetch")
		return
	}
	if len(p.args) > 0 {
		k.transport(p.args[0])
	}
	if p.has("prune-tags") { // deletes the tags that the remote has not
		k.op("tag.delete")
		return
	}
	specs := p.values["refmap"]
	for _, e := range k.inv.config {
		if key := strings.ToLower(e.key); strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".fetch") {
			specs = append(specs, e.value)
		}
	}
	if len(p.args) > 1 && !p.has("multiple") {
		specs = append(specs, p.args[1:]...)
	}
	if len(specs) > 0 {
		for _, spec := range specs {
			if k.fetchUpdates(spec, p.has("force")) {
				k.op("fetch.update")
				return
			}
		}
	}
	k.op("fetch")
}

// fetchUpdates reports whether a refspec writes a ref of the user's: the target
// is neither remote-tracking nor known to be new.
func (k *call) fetchUpdates(spec string, force bool) bool {
	force = force || strings.HasPrefix(spec, "+")
	_, dst, ok := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
	if !ok || dst == "" || strings.HasPrefix(dst, "refs/remotes/") || strings.HasPrefix(dst, "remotes/") {
		return false
	}
	if strings.HasPrefix(dst, "refs/tags/") {
		return force
	}
	if strings.Contains(dst, "*") {
		return true
	}
	if strings.HasPrefix(dst, "refs/") && !strings.HasPrefix(dst, "refs/heads/") { // refs/stash, refs/notes/…
		return k.revision(dst) != No
	}
	return k.branch(strings.TrimPrefix(strings.TrimPrefix(dst, "refs/"), "heads/")) != No
}

// transport checks an address that runs a command: "ext::git reset --hard".
func (k *call) transport(url string) {
	if line, ok := strings.CutPrefix(url, "ext::"); ok {
		k.step(line, "the ext:: transport runs it")
		k.run(withoutShell(k.inv.st), extWords(line))
	}
}

// extWords splits as git-remote-ext(1) does: at spaces, where "% " is a space of
// the word and "%%" a percent sign.
func extWords(line string) []string {
	words, cur := []string(nil), ""
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '%' && i+1 < len(line):
			i++
			if line[i] == ' ' || line[i] == '%' {
				cur += line[i : i+1]
			}
		case line[i] == ' ':
			words, cur = append(words, cur), ""
		default:
			cur += line[i : i+1]
		}
	}
	return append(words, cur)
}

func (k *call) symbolicRef() {
	p, done := k.parse("q/quiet d/delete short recurse m=")
	switch {
	case done:
	case p.has("delete") || len(p.args) > 1:
		k.op("symbolic-ref.write")
	default:
		k.read("symbolic-ref")
	}
}

func (k *call) replace() {
	p, done := k.parse("l/list d/delete e/edit g/graft convert-graft-file f/force raw format=")
	switch {
	case done:
	case p.has("list") || len(p.args) == 0 && !p.has("convert-graft-file"):
		k.read("replace")
	case p.has("delete", "edit", "graft", "convert-graft-file") || len(p.args) > 1:
		k.op("replace.write")
	default:
		k.read("replace")
	}
}

func (k *call) notes() {
	p := newSpec("ref=").parse(k.args, true)
	sub, rest := first(p.args)
	switch {
	case p.help || len(rest) > 0 && (rest[0] == "-h" || rest[0] == "--help"):
		k.read("help")
	case sub == "prune" && newSpec("n/dry-run v/verbose").parse(rest, false).has("dry-run"):
		k.dryRun("notes.write")
	case slices.Contains([]string{"add", "copy", "append", "edit", "merge", "remove", "prune"}, sub):
		k.op("notes.write")
	default:
		k.read("notes")
	}
}

func (k *call) reflog() {
	sub, rest := first(k.args)
	switch sub {
	case "expire", "delete", "drop", "write":
		op := Operation("reflog." + sub)
		if sub == "drop" || sub == "write" {
			op = "reflog.delete"
		}
		k.args = rest
		k.dryOr(op, "n/dry-run rewrite updateref verbose expire= expire-unreachable= stale-fix all single-worktree")
	default:
		k.read("reflog")
	}
}

func (k *call) maintenance() {
	sub, _ := first(k.args)
	switch sub {
	case "run", "start", "stop", "register", "unregister":
		k.op("gc")
	default:
		k.read("maintenance")
	}
}

func (k *call) repack() {
	p, done := k.parse(`a A d f F n q/quiet l/local b/write-bitmap-index i/delta-islands k/keep-unreachable cruft cruft-expiration= unpack-unreachable= window= window-memory= depth=
 threads= max-pack-size= pack-kept-objects keep-pack= g/geometric= m/write-midx expire-to= filter= filter-to= combine-cruft-below-size= max-cruft-size=`)
	switch {
	case done:
	case p.has("d"):
		k.op("repack.delete")
	default:
		k.read("repack")
	}
}

func (k *call) worktree() {
	sub, rest := first(k.args)
	switch sub {
	case "add":
		p := newSpec("f/force B= b= orphan d/detach checkout lock reason= q/quiet track guess-remote relative-paths").parse(rest, false)
		if p.has("B") && k.branch(p.last("B")) != No {
			k.op("branch.force")
			return
		}
		k.op("worktree.add")
	case "prune":
		k.args = rest
		k.dryOr("worktree.prune", "n/dry-run v/verbose expire=")
	case "remove", "move":
		k.args = rest
		if _, done := k.parse("f/force"); !done {
			k.op(Operation("worktree." + sub))
		}
	default:
		k.read("worktree")
	}
}

func (k *call) remote() {
	p := newSpec("v/verbose").parse(k.args, true)
	sub, rest := first(p.args)
	switch sub {
	case "rm":
		sub = "remove"
	case "prune":
		if newSpec("n/dry-run").parse(rest, false).has("dry-run") {
			k.dryRun("fetch")
			return
		}
		k.op("fetch")
		return
	}
	switch sub {
	case "add", "remove", "rename", "set-url", "set-branches", "set-head":
		k.op(Operation("remote." + sub))
	default:
		k.read("remote")
	}
}

func (k *call) submodule() {
	p := newSpec("q/quiet cached").parse(k.args, true)
	sub, rest := first(p.args)
	switch sub {
	case "deinit":
		k.op("submodule.deinit")
	case "update":
		u := newSpec(`q/quiet init remote N/no-fetch f/force checkout merge rebase reference= recursive depth= j/jobs= single-branch progress require-init
 recommend-shallow filter= dissociate`).parse(rest, false)
		if u.has("force") {
			k.op("submodule.update-force")
			return
		}
		k.read("submodule")
	case "foreach":
		f := newSpec("q/quiet recursive").parse(rest, true)
		k.read("submodule")
		if len(f.args) == 1 {
			k.nested(k.inv.st, f.args[0], "submodule foreach runs it")
		} else if len(f.args) > 1 {
			k.run(k.inv.st.clone(), f.args)
		}
	default:
		k.read("submodule")
	}
}

func (k *call) sparseCheckout() {
	sub, _ := first(k.args)
	switch sub {
	case "set", "add", "init", "disable", "reapply", "clean":
		k.op("sparse-checkout.set")
	default:
		k.read("sparse-checkout")
	}
}

// first returns the subcommand, the first word that is no option, and the rest.
func first(args []string) (string, []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a, args[i+1:]
		}
	}
	return "", nil
}
