package workspacecmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Materialize writes a session's workspace out.
type Materialize struct {
	app.SessionFlag
	Dir string `arg:"" name:"dir" sep:"none" type:"somepath" help:"Folder to write to: a new or an empty one."`
}

// Run copies the files as they are now and prints the folder.
func (c *Materialize) Run(ctx context.Context, a *app.App) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	s, err := c.Attach(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	made, problems, err := s.WriteOut(ctx, dir)
	if err != nil {
		return err
	}
	left := []string{}
	for _, p := range problems {
		left = append(left, text.Printable(p.Path)+": "+p.Err.Error())
		s.Warn(text.Printable(p.Path) + " was left out: " + p.Err.Error())
	}
	files, bytes := made.Count()
	if a.Flags.JSON {
		return a.PrintFields("session_id", s.Record().ID, "path", dir, "files", files, "bytes", bytes, "left_out", left)
	}
	_, err = fmt.Fprintln(a.Out, text.Printable(dir))
	return err
}
