package program

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	mdtext "github.com/yuin/goldmark/text"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Block is one fenced block of a Markdown file in a language that can be run.
type Block struct {
	Index int    `json:"index"` // from 1, among those that are run
	Lang  string `json:"lang"`
	Line  int    `json:"line"` // of the block's first line of code, from 1
	Text  []byte `json:"-"`
}

// ParseBlocks finds the fenced blocks whose info string names a language that can
// be run, in their order, and those of other languages, which have no Index. A block
// without a language is prose. A file with nothing to run is an error that wraps
// superqode.ErrUsage.
func ParseBlocks(markdown []byte) (blocks, others []Block, err error) {
	doc := goldmark.DefaultParser().Parse(mdtext.NewReader(markdown))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		f, ok := n.(*ast.FencedCodeBlock)
		if !ok || !entering || f.Info == nil {
			return ast.WalkContinue, nil
		}
		word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(string(f.Language(markdown)))), "{")
		line := 2 + bytes.Count(markdown[:f.Info.Segment.Start], []byte("\n"))
		lang, err := ParseLang(word)
		if err != nil {
			others = append(others, Block{Lang: word, Line: line})
			return ast.WalkContinue, nil
		}
		b := Block{Index: len(blocks) + 1, Lang: lang, Line: line}
		for i := range f.Lines().Len() {
			line := f.Lines().At(i)
			b.Text = append(b.Text, line.Value(markdown)...)
		}
		blocks = append(blocks, b)
		return ast.WalkContinue, nil
	})
	if err == nil && len(blocks) == 0 {
		err = superqode.Errorf(superqode.ErrUsage, "there is no fenced block in python or bash to run")
	}
	return blocks, others, err
}

// BlockResult tells how one block ended.
type BlockResult struct {
	Block
	Run             int     `json:"run"` // 0: it could not be started
	ExitCode        int     `json:"exit_code"`
	TimedOut        bool    `json:"timed_out"`
	Limit           string  `json:"limit"`
	DurationSeconds float64 `json:"duration_seconds"`
	StdoutBytes     int64   `json:"stdout_bytes"`
	StderrBytes     int64   `json:"stderr_bytes"`
	Truncated       bool    `json:"truncated"`
	Error           string  `json:"error"` // why it could not be started

	Failed error // Error
}

// ExecAll runs opt's program, or its blocks one after the other. A block that
// fails does not stop the next one; a signal does, and whoever ends a run. The result is the first that
// failed, else the last. The error tells what superqode could not do.
func (s *Program) ExecAll(ctx context.Context, opt ExecOptions) (runner.Result, error) {
	if len(opt.Blocks) == 0 {
		return s.Exec(ctx, opt)
	}
	var total runner.Result
	for i, b := range opt.Blocks {
		one, out := opt, BlockResult{Block: b}
		one.Code = &Code{Lang: b.Lang, Text: b.Text}
		one.Started = func(run int) {
			out.Run = run
			if opt.Started != nil {
				opt.Started(run)
			}
		}
		res, err := s.Exec(ctx, one)
		out.ExitCode, out.TimedOut, out.Limit, out.Truncated = res.ExitCode, res.TimedOut, res.Limit, res.Truncated
		out.DurationSeconds, out.StdoutBytes, out.StderrBytes = text.Seconds(res.Ended.Sub(res.Started)),
			res.Stdout.Bytes, res.Stderr.Bytes
		if err != nil {
			out.Error, out.Failed = err.Error(), err
		}
		if opt.BlockEnded != nil {
			opt.BlockEnded(out)
		}
		if i == 0 || total.ExitCode == 0 {
			total = res
		}
		if err != nil && out.Run == 0 && !isStart(err) || res.Interrupted != nil || res.Killed || ctx.Err() != nil {
			return total, err
		}
	}
	return total, s.Update(context.WithoutCancel(ctx),
		func(r *state.Record) { r.ExitCode, r.TimedOut, r.Limit = &total.ExitCode, total.TimedOut, total.Limit })
}

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

// Interpreter returns the program that runs a language, "" where word names none.
func Interpreter(word string) string {
	for _, l := range codeLangs() {
		if l.name == word || slices.Contains(l.words, word) {
			return l.interpreter
		}
	}
	return ""
}

// write puts the code into the run's folder and returns the command line that runs
// it with args. Without code there is nothing to do.
func (c *Code) write(args []string, runDir string) ([]string, error) {
	if c == nil {
		return args, nil
	}
	for _, l := range codeLangs() {
		if l.name != c.Lang {
			continue
		}
		file := filepath.Join(runDir, "code"+l.extension)
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
