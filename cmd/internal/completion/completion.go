// Package completion prints the completion code for shells, and answers when they ask.
package completion

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/gc"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Cmd prints the code that makes a shell ask superqode for completions.
type Cmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Run prints the code. It names this program by its path, which may hold blanks:
// the shells take what follows -C for a command line, not for a name.
func (c *Cmd) Run(a *app.App) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	bash := fmt.Sprintf("complete -o default -o bashdefault -C %s superqode\n", text.Quote(text.Quote(exe)))
	code := bash
	switch c.Shell {
	case "zsh":
		code = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash
	case "fish":
		code = fmt.Sprintf(`function __complete_superqode
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    %s
end
complete -f -c superqode -a "(__complete_superqode)"
`, text.Quote(exe))
	}
	_, err = fmt.Fprint(a.Out, code)
	return err
}

// Complete answers a shell that asks by COMP_LINE. The grammar's predictor tags say what can stand
// where. Nothing is changed for it, not even a dead session recovered, and an error means that there
// is nothing to offer.
func Complete(ctx context.Context, a *app.App, parser *kong.Kong) {
	w := &offers{a: a, ctx: ctx}
	options := []kongcompletion.Option{kongcompletion.WithPredictor("file", complete.PredictFiles("*"))}
	for name, offer := range map[string]func(complete.Args) []string{
		"session": w.sessions, "agent": w.agents, "artifact": w.artifacts, "finding": w.findings, "salvage": w.salvages,
		"type":     func(complete.Args) []string { return words(artifacts.Types()) },
		"severity": func(complete.Args) []string { return words(artifacts.Severities()) },
	} {
		predict := complete.PredictFunc(func(line complete.Args) []string { return safeWords(offer(line)) })
		options = append(options, kongcompletion.WithPredictor(name, predict))
	}
	cmd, err := kongcompletion.Command(parser, options...)
	if err != nil {
		return
	}
	c := complete.New("superqode", cmd)
	c.Out = a.Out
	c.Complete()
}

func words[T ~string](list []T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// offers finds what can stand at a place of the command line.
type offers struct {
	a   *app.App
	ctx context.Context
}

// where takes the folders from the line that is being typed.
func (w *offers) where() (dir, home string) {
	dir = w.a.Dir
	typed := strings.Fields(w.a.Getenv("COMP_LINE"))
	for i, arg := range typed[:max(len(typed)-1, 0)] {
		switch arg {
		case "-C", "--repo":
			dir = w.a.Abs(typed[i+1])
		case "--home":
			home = w.a.Abs(typed[i+1])
		}
	}
	return dir, home
}

func (w *offers) manager() (m *life.Manager, dir string, ok bool) {
	dir, home := w.where()
	home, err := life.HomeDir(home, w.a.Env)
	if err != nil {
		return nil, "", false
	}
	m = life.NewManager(life.Config{Home: home, Env: w.a.Env, Log: w.a.Log, Version: w.a.BuildVersion()})
	return m, dir, true
}

func (w *offers) list(line complete.Args) (list []state.Listed) {
	if m, dir, ok := w.manager(); ok {
		list, _, _ = registry.List(w.ctx, m.Host, dir, slices.Contains(line.All, "--all")) // no list, no words
	}
	return list
}

// sessions offers whole ids, and to who has begun with something else the random
// ends and the names.
func (w *offers) sessions(line complete.Args) (out []string) {
	for _, s := range w.list(line) {
		out = append(out, s.ID.String())
		if line.Last != "" && !strings.HasPrefix(line.Last, "q") {
			out = append(out, app.ShortID(s.ID), s.Name)
		}
	}
	return out
}

// agents offers those of the sessions and of the configuration.
func (w *offers) agents(line complete.Args) (out []string) {
	for _, s := range w.list(line) {
		out = append(out, s.Agent.String())
		for _, a := range s.Agents {
			out = append(out, a.Agent.String())
		}
	}
	dir, _ := w.where()
	if cfg, err := config.Load(w.ctx, config.Sources{OriginDir: app.OriginDir(dir), Env: w.a.Env}); err == nil {
		for name := range cfg.Agents {
			out = append(out, name.String())
		}
	}
	return out
}

func (w *offers) artifacts(line complete.Args) (out []string) {
	dir, _ := w.where()
	store, err := artifacts.Open(app.OriginDir(dir))
	if err != nil {
		return nil
	}
	list, _ := store.List(w.ctx, artifacts.Filter{}) // no list, no words
	for _, a := range list {
		out = append(out, a.ID)
		if line.Last != "" {
			out = append(out, a.Name)
		}
	}
	return out
}

// findings offers those of the sessions that ended last.
func (w *offers) findings(line complete.Args) (out []string) {
	m, dir, ok := w.manager()
	if !ok {
		return nil
	}
	const newest = 5
	list := w.list(line)
	for _, s := range list[:min(len(list), newest)] {
		var data bytes.Buffer
		asJSON := report.ShowOptions{Format: report.FormatJSON}
		if err := m.Report(w.ctx, dir, s.ID.String(), asJSON, &data); err != nil {
			continue
		}
		if rep, err := artifacts.ParseReport(data.Bytes()); err == nil {
			for _, f := range rep.Findings {
				out = append(out, f.ID)
			}
		}
	}
	return out
}

func (w *offers) salvages(line complete.Args) (out []string) {
	m, dir, ok := w.manager()
	if !ok {
		return nil
	}
	list, _ := gc.Salvages(w.ctx, m.Host, dir, false) // no list, no words
	for _, s := range list {
		out = append(out, s.ID)
	}
	return out
}

// safeWords sorts out what a shell would not take for one word, or obey: names can
// be a program's.
func safeWords(list []string) []string {
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" || text.Quote(s) != s })
	slices.Sort(list)
	return slices.Compact(list)
}

// Completes reports whether a shell asks for completions.
func Completes(env []string) bool { return superqode.Getenv(env, "COMP_LINE") != "" }
