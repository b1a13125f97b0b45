package cli

import (
	"strings"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/cmd/internal/guardcmd"
	"github.com/seed-2d964004/superqode/guard"
)

// quickCheck reads the usual forms of "superqode guard check" without the grammar,
// whose building takes as long as the rest of that command: a coding agent waits
// for it before each of its commands. Whatever is not plainly such a line (help, a
// mistake, a flag twice) is left to the grammar, ok is false then; a test holds the
// two together.
func quickCheck(args []string) (flags app.Globals, c *guardcmd.Check, ok bool) {
	q := quickLine{
		flags: app.Globals{Color: "auto"}, check: &guardcmd.Check{Format: string(guard.Text)}, seen: map[string]bool{},
	}
	words := []string{"guard", "check"}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "-C" || strings.HasPrefix(arg, "--") && arg != "--":
			if args, ok = q.flag(args, len(words) == 0); !ok {
				return flags, nil, false
			}
		case len(words) == 0 && (arg == "-" || arg == "--" || arg != "" && arg[0] != '-'):
			q.check.Line = args // the rest, as it is
			return q.flags, q.check, true
		case len(words) > 0 && arg == words[0]:
			words, args = words[1:], args[1:]
		default:
			return flags, nil, false
		}
	}
	return q.flags, q.check, len(words) == 0
}

// quickLine is a line that is being read.
type quickLine struct {
	flags app.Globals
	check *guardcmd.Check
	seen  map[string]bool
}

// flag takes one flag, and its value, from args. own are those of the command
// itself, which stand behind its name.
func (q *quickLine) flag(args []string, own bool) (rest []string, ok bool) {
	name, value, glued := strings.Cut(args[0], "=")
	if name == "-C" {
		name = "--repo"
	}
	target, toggle := q.target(name, own)
	if target == nil && toggle == nil || q.seen[name] || glued && (toggle != nil || args[0][1] == 'C') {
		return nil, false
	}
	q.seen[name], args = true, args[1:]
	if toggle != nil {
		*toggle = true
		return args, true
	}
	if !glued {
		if len(args) == 0 || strings.HasPrefix(args[0], "-") {
			return nil, false
		}
		value, args = args[0], args[1:]
	}
	*target = value
	if name == "--format" {
		_, err := guard.ParseFormat(value)
		return args, err == nil
	}
	return args, value != ""
}

// target is where a flag goes: a text, or a switch.
func (q *quickLine) target(name string, own bool) (text *string, toggle *bool) {
	switch {
	case name == "--repo":
		return &q.flags.Repo, nil
	case name == "--home":
		return &q.flags.Home, nil
	case name == "--config":
		return &q.flags.Config, nil
	case name == "--json":
		return nil, &q.flags.JSON
	case name == "--format" && own:
		return &q.check.Format, nil
	case name == "--policy" && own:
		return &q.check.Policy, nil
	case name == "--explain" && own:
		return nil, &q.check.Explain
	}
	return nil, nil
}
