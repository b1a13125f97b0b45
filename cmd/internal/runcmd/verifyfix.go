package runcmd

import (
	"context"
	"time"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/findings"
	"github.com/seed-2d964004/superqode/internal/life"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/text"
)

// VerifyFix tries a fix.
type VerifyFix struct {
	app.SessionFlag
	ID      string        `predictor:"finding" arg:"" name:"id" help:"The id of the finding, or of the fix's artifact."`
	Timeout time.Duration `placeholder:"DUR" help:"Time out each run of the tests after DUR."`
	Cmd     []string      `arg:"" passthrough:"partial" name:"testcmd" placeholder:"TESTCMD" help:"The test command and its arguments, after --."`
}

// Run prints what came of it.
func (c *VerifyFix) Run(ctx context.Context, a *app.App, m *life.Manager) error {
	args, err := programArgs(c.Cmd, "superqode verify-fix FINDING -- TEST [ARG…]")
	if err != nil {
		return err
	}
	cfg, err := a.Configuration(ctx)
	if err != nil {
		return err
	}
	flags := openFlags{From: mode.FromWorking}
	open, err := flags.options(a, cfg)
	if err != nil {
		return err
	}
	if open.KernelOptions, err = (&kernelFlags{}).options(a, cfg); err != nil {
		return err
	}
	v, err := m.VerifyFix(ctx, life.VerifyFixOptions{
		Dir: a.Flags.Repo, Session: c.Session, Finding: c.ID, Open: open, Tell: func(s string) { a.Note("%s", s) },
		Exec: program.ExecOptions{
			Args: args, Stdin: a.In, Stdout: a.Err, Stderr: a.Err, Timeout: c.Timeout, Signals: a.Signals,
			KernelOptions: open.KernelOptions,
		},
	})
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		err = a.PrintJSON(struct {
			SchemaVersion int `json:"schema_version"`
			*findings.VerifiedFix
		}{1, v})
	} else {
		err = a.Line("%s\t%s", fixWord(v), text.Printable(v.Evidence))
		a.Note("added to the report of session %s: superqode report --session %s", v.SessionID, v.SessionID)
	}
	if err == nil && !v.Verified {
		err = app.StatusError(app.ExitFailure)
	}
	return err
}

func fixWord(v *findings.VerifiedFix) string {
	switch {
	case !v.Applies:
		return "does not apply"
	case !v.Verified:
		return "not verified"
	case v.Improvement:
		return "verified, mends the tests"
	}
	return "verified, the tests passed before"
}
