package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
)

// Code is a program given as text.
type Code struct {
	Lang string // python or bash
	Text []byte
}

// codeLang is a language that Code may be written in.
type codeLang struct {
	name        string
	interpreter string
	extension   string
	words       []string // info strings of Markdown blocks
}

func codeLangs() []codeLang {
	return []codeLang{
		{"python", "python3", ".py", []string{"python", "python3", "py"}},
		{"bash", "bash", ".sh", []string{"bash", "sh", "shell"}},
	}
}

// ParseLang returns the language that a word names.
func ParseLang(word string) (string, error) {
	var names []string
	for _, l := range codeLangs() {
		if l.name == word || slices.Contains(l.words, word) {
			return l.name, nil
		}
		names = append(names, l.name)
	}
	return "", superqode.Errorf(superqode.ErrUsage, "--lang %q: must be one of %s", word, strings.Join(names, ", "))
}

// write puts the code into the run's folder and returns the command line that runs
// it with args. Without code there is nothing to do.
func (c *Code) write(args []string, paths runPaths) ([]string, error) {
	if c == nil {
		return args, nil
	}
	for _, l := range codeLangs() {
		if l.name != c.Lang {
			continue
		}
		file := filepath.Join(paths.runDir, "code"+l.extension)
		if err := os.WriteFile(file, c.Text, 0o600); err != nil {
			return nil, err
		}
		return append([]string{l.interpreter, file}, args...), nil
	}
	return nil, superqode.Errorf(superqode.ErrUsage, "unknown language %q", c.Lang)
}

// hintStart tells what to do about an interpreter that is not there.
func hintStart(err error, opt ExecOptions) error {
	var start *runner.StartError
	if opt.Code != nil && errors.As(err, &start) {
		return superqode.WithHint(err, "install %s, or bring its folder into PATH", start.Name)
	}
	return err
}

// isStart reports whether a program could not be started, as one whose interpreter
// is not there.
func isStart(err error) bool {
	_, ok := errors.AsType[*runner.StartError](err)
	return ok
}
