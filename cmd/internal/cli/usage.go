package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// usageError turns kong's complaint about a command line into a sentence with a hint.
func usageError(err error, args []string) error {
	parent, said := commandOf(err), err.Error()
	hint := strings.TrimSpace("superqode "+parent) + " --help"
	parse, ok := errors.AsType[*kong.ParseError](err)
	word, unexpected := strings.CutPrefix(said, "unexpected argument ")
	if !ok || !unexpected || parent != "" && parse.Context.Selected().Leaf() {
		return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s", inWords(said)), "%s", hint)
	}
	word, meant, similar := strings.Cut(word, ", did you mean ")
	said = fmt.Sprintf("there is no command %q", word)
	if cmd := elsewhere(parse, parent, word, args); cmd != "" {
		hint = cmd
	} else if meant = strings.Trim(meant, `"?`); similar && !strings.ContainsRune(meant, '"') && slices.Contains(args, word) {
		said += fmt.Sprintf(", did you mean %q?", meant)
		line := slices.Clone(args)
		line[slices.Index(line, word)] = meant
		hint = text.QuoteLine(append([]string{"superqode"}, line...)...)
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%s", said), "%s", hint)
}

// elsewhere is what the first word of a line is called here, "" where nothing is known of
// it: a command of a group without the group, and words of other tools.
func elsewhere(parse *kong.ParseError, parent, word string, args []string) string {
	if parent != "" && parent != "workspace" {
		return ""
	}
	i := slices.Index(args, word)
	if i < 0 {
		return ""
	}
	words := args[i:]
	if (word == "session" || word == "sessions") && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
	}
	found := map[string]string{
		".": "run", "isolated": "run", "sandbox": "run",
		"new": "workspace create", "start": "workspace create", "open": "workspace create",
		"session": "ls", "sessions": "ls", "list": "ls", "status": "ls",
		"stop": "workspace end", "close": "workspace end", "finish": "workspace end", "remove": "workspace end",
		"merge": "apply", "accept": "apply", "rollback": "undo", "clean": "workspace cleanup", "prune": "workspace cleanup",
		"show": "report", "patch": "diff",
	}[words[0]]
	for _, leaf := range parse.Context.Model.Leaves(true) {
		if name := commandName(leaf); leaf.Name == words[0] && (found == "" || name == "workspace "+words[0]) {
			found = text.QuoteLine(append(strings.Fields(name), words[1:]...)...)
		}
	}
	if found == "run" {
		_, program := cutDashes(words)
		found += " -- " + cmp.Or(text.QuoteLine(program...), "CMD")
	}
	if found == "" {
		return ""
	}
	return "superqode " + found
}

// cutDashes cuts a line at its "--".
func cutDashes(args []string) (before, after []string) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil
	}
	return args[:i], args[i+1:]
}

// inWords says what kong says, whose errors have no types, as a person would.
func inWords(said string) string {
	if m := regexp.MustCompile(`^(?s)(.*) must be one of (.*) but got (".*")$`).FindStringSubmatch(said); m != nil {
		list := strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(m[2], `"`, ""), ",", ", "), ", ")
		if !strings.HasPrefix(m[1], "-") { // it is an argument, and its name says nothing
			return fmt.Sprintf("expected %s, not %s", list, m[3])
		}
		return fmt.Sprintf("%s: expected %s, not %s", m[1], list, m[3])
	}
	if list, ok := strings.CutPrefix(said, "expected one of "); ok {
		return "a command is missing: " + strings.ReplaceAll(list, `"`, "")
	}
	for _, c := range [][2]string{
		{`^(?s)(--?[\w-]+): expected \w+ value but got .*$`, "$1 needs a value"},
		{`^(?s)(--?[\w-]+): bool value must be .*$`, "$1 takes no value"},
		{`^(?s)(.*): expected an? (?:valid )?.*(?:int|float) but got (".*?").*$`, "$1: $2 is not a number"},
		{`^expected "(\w+)"$`, "a command is missing: $1"},
		{`^expected "(<.*)"$`, "an argument is missing: $1"},
		{`^missing flags: (.*)$`, "a flag is missing: $1"},
		{`^(unknown flag -\w), did you mean .*$`, "$1"},
	} {
		if re := regexp.MustCompile(c[0]); re.MatchString(said) {
			return re.ReplaceAllString(said, c[1])
		}
	}
	return said
}

// commandOf returns the words of the command that a parse error belongs to.
func commandOf(err error) string {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return ""
	}
	var words []string
	for _, p := range parse.Context.Path {
		if p.Command != nil {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(words, " ")
}
