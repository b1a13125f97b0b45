package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// Decision is what the guard says about a command.
type Decision string

// The two decisions; the zero value is neither.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
)

// Certainty tells whether a verdict rests on everything that will run.
type Certainty string

// Certain: every command in the text was read. Unknown: something could not be
// decided from the text (a script file, a variable from outside) and was let
// through for the layers below.
const (
	Certain Certainty = "certain"
	Unknown Certainty = "unknown"
)

// Verdict is the answer to one command or line.
type Verdict struct {
	Decision   Decision  `json:"decision"`
	Operation  Operation `json:"operation,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
	Certainty  Certainty `json:"certainty"`
	// Command is the command that decided, with aliases expanded where that was
	// needed. Parts that the text leaves open are shown as "…".
	Command []string `json:"command,omitempty"`

	away bool // see Policy.Elsewhere: to let it through would let it fail
}

// Denied reports whether the command must not run.
func (v Verdict) Denied() bool { return v.Decision == Deny }

// Policy says allow or deny for an operation. The zero value is the default
// policy of the operations table.
type Policy struct {
	base  PolicyName
	rules []rule
	// away marks the policy of a contained session for what is not the session's own.
	away bool
}

type rule struct {
	name     string
	decision Decision
}

// decide returns what the longest of some rules says that covers an operation.
func decide(rules []rule, op Operation) (Decision, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return covers(r.name, string(op)) })
	if i < 0 {
		return "", false
	}
	return rules[i].decision, true
}

// NewPolicy makes a policy from the default and two lists of operation names. A
// name covers what stands below it: "stash" covers "stash.drop". The longest
// matching name wins; between equals deny wins. A name that matches no
// operation and no git command is an error that wraps superqode.ErrUsage.
func NewPolicy(allow, deny []string) (Policy, error) {
	var p Policy
	add := func(names []string, d Decision) error {
		for _, n := range names {
			if !knownOperation(n) {
				return superqode.Errorf(superqode.ErrUsage, "unknown operation %q in guard.%s", n, d)
			}
			p.rules = append(p.rules, rule{n, d})
		}
		return nil
	}
	if err := add(deny, Deny); err != nil {
		return Policy{}, err
	}
	if err := add(allow, Allow); err != nil {
		return Policy{}, err
	}
	// Stable: among equally long names the denials, added first, stay first.
	slices.SortStableFunc(p.rules, func(a, b rule) int { return len(b.name) - len(a.name) })
	return p, nil
}

// PolicyName names a base that guard.allow and guard.deny of a configuration add to.
type PolicyName string

// The policies. QE is the operations table: nothing that changes what is the user's.
// Contained is for a session with a git directory of its own, in which everything may
// happen that stays there. Destructive is for coding agents outside of a session: only
// what destroys work, or leaves the machine.
const (
	QE          PolicyName = "qe"
	Contained   PolicyName = "contained"
	Destructive PolicyName = "destructive"
)

// outward are the denied operations that Contained does not allow: what they do leaves the
// session's own git directory and work tree, or may.
var outward = []string{
	"config.write.global", "gitdir.write", "init", "lfs.prune", "lfs.push", "output.overwrite", "push", "send-email",
	"submodule.deinit", "submodule.update-force", "svn.write",
}

// harmless are the operations that Destructive allows beyond QE: what they do can be
// taken back from the reflog, the stash or the configuration.
var harmless = []string{
	"am", "cherry-pick", "commit", "config.write", "init", "merge", "notes.write", "pull", "rebase",
	"remote.add", "remote.rename", "remote.set-branches", "remote.set-head", "remote.set-url", "reset.commit", "reset.keep", "revert", "sparse-checkout", "stash.apply", "stash.branch", "stash.pop",
	"stash.push", "stash.store", "symbolic-ref.write", "worktree.move", "worktree.prune",
}

// Policy adds two lists of operation names to the policy of the name; see NewPolicy. ""
// is QE. An unknown name is an error that wraps superqode.ErrUsage.
func (n PolicyName) Policy(allow, deny []string) (Policy, error) {
	if n = cmp.Or(n, QE); n != QE && n != Contained && n != Destructive {
		return Policy{}, superqode.Errorf(superqode.ErrUsage, "unknown policy %q: it is %s, %s or %s", string(n), QE, Contained, Destructive)
	}
	p, err := NewPolicy(allow, deny)
	p.base = n
	return p, err
}

// Name returns the policy's name.
func (p Policy) Name() PolicyName { return cmp.Or(p.base, QE) }

// Elsewhere returns what holds for repositories that are not the session's own: of a
// contained session that is QE.
func (p Policy) Elsewhere() Policy {
	p.away = p.away || p.base == Contained
	return p
}

// Decide returns the decision on one operation.
func (p Policy) Decide(op Operation) Decision {
	if d, ok := decide(p.rules, op); ok {
		return d
	}
	return p.usual(op)
}

// usual returns the decision without guard.allow and guard.deny.
func (p Policy) usual(op Operation) Decision {
	info, ok := op.Info()
	named := func(n string) bool { return covers(n, string(op)) }
	switch {
	case !ok, info.Default == Allow:
		return Allow
	case p.base == Destructive && slices.ContainsFunc(harmless, named):
		return Allow
	case p.base == Contained && !p.away && !slices.ContainsFunc(outward, named):
		return Allow
	}
	return Deny
}

func covers(name, op string) bool {
	return name == op || strings.HasPrefix(op, name+".")
}

func knownOperation(name string) bool {
	if name == "" || strings.HasSuffix(name, ".") {
		return false
	}
	for i := range operationTable {
		if covers(name, string(operationTable[i].Name)) {
			return true
		}
	}
	return IsGitCommand(name)
}

// Refusal returns the verdict that denies op, with its reason and suggestion from
// the operations table. command is what is shown of it.
func (p Policy) Refusal(op Operation, command []string) Verdict {
	v := Verdict{Decision: Deny, Operation: op, Certainty: Certain, Command: cmdline.Shown(command)}
	info, ok := op.Info()
	switch {
	case !ok: // denied by the user's own list
		v.Reason = fmt.Sprintf("%q is denied by the configuration", string(op))
	case p.usual(op) == Allow: // there it is no loss, and nothing need be done instead
		v.Reason = info.Covers + ": denied by the configuration"
	case p.away && (Policy{base: Contained}).usual(op) == Allow:
		v.Reason = info.Covers + " outside of the session's own repository: " + info.Why
		v.away = true
		v.Suggestion = "run it in the workspace as plain `git`, which has a git directory of the session's own there"
	default:
		v.Reason, v.Suggestion = info.Covers+": "+info.Why, info.Suggestion
	}
	return v
}
