package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// collected is what the end of a session found and stored.
type collected struct {
	*mode.Look
	artifacts []artifacts.Artifact
	commits   *artifacts.Commits
	outputs   *artifacts.Outputs // nil: none were asked for
	warnings  []string
}

// collect compares the workspace with the base and stores the patch, the logs
// and what the program left. Repeating it after an interruption stores nothing
// twice.
func (s *Session) collect(ctx context.Context) (_ *collected, err error) {
	defer s.Begin("collecting the changes", nil)()
	l, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}
	c := &collected{Look: l}
	defer func() { err = errors.Join(err, l.Close(string(s.Rec.Workspace))) }()
	if l.Gone != "" {
		s.Tell(l.Gone)
		c.warnings = append(c.warnings, l.Gone)
	}
	for _, p := range l.Problems {
		c.warnings = append(c.warnings, text.Printable(p.Path)+" could not be read at the end: "+p.Err.Error())
	}
	if l.Ignored > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("%d new paths that git ignores are in no patch", l.Ignored))
	}
	if err := s.Describe(ctx, l); err != nil {
		return c, err
	}
	digest, err := l.Final.Digest()
	if err != nil {
		return c, err
	}
	s.Rec.Final.Digest = digest
	if err := mode.WriteChanges(s.Site, l.Changes); err != nil {
		return c, err
	}
	failpoint.Hit("collect.compared")
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return c, err
	}
	if err := s.collectFiles(ctx, c, store); err != nil {
		return c, fmt.Errorf("store the session's artifacts: %w", err)
	}
	commits, series, err := gitdir.Collect(ctx, s.Site, store)
	c.commits, c.artifacts = commits, append(c.artifacts, series...)
	if err != nil {
		return c, err
	}
	failpoint.Hit("collect.stored")
	if err := s.shareParts(ctx, c); err != nil {
		return c, err
	}
	if len(s.Rec.Agents) > 0 && !s.Rec.Shared { // with what the agents left
		if c.artifacts, err = store.List(ctx, artifacts.Filter{Session: s.Rec.ID}); err != nil {
			return c, err
		}
	}
	for _, w := range store.Warnings() {
		c.warnings = append(c.warnings, "artifacts: "+w.String())
	}
	return c, nil
}

// collectFiles stores the patch, the logs and the staging folder's files.
func (s *Session) collectFiles(ctx context.Context, c *collected, store *artifacts.Store) error {
	var list []artifacts.New
	if len(c.Changes) > 0 {
		patch, err := s.makePatch(ctx, c)
		if err != nil {
			return err
		}
		if patch != nil {
			defer os.Remove(patch.File)
			list = append(list, *patch)
			flags, err := report.ShowPatch(ctx, s.Folder, patch.File, s.Redactor())
			if err != nil {
				return err
			}
			for _, f := range flags {
				s.Tell(f)
			}
			c.warnings = append(c.warnings, flags...)
		}
	}
	imported, err := s.Findings().Import()
	if err != nil {
		return err
	}
	for _, w := range imported {
		s.Tell(w)
	}
	c.warnings = append(c.warnings, imported...)
	fixes, warnings, err := s.Findings().CollectFixes(ctx, store, func() error {
		_, _, err := mode.StoreEnds(ctx, s.Site, c.Look)
		return err
	})
	c.warnings = append(c.warnings, warnings...)
	if err != nil {
		return err
	}
	list = append(list, fixes...)
	kinds := []string{"command", "setup", "guard", "superqode"}
	if s.Rec.Shared {
		for _, a := range s.Rec.Agents {
			kinds = append(kinds, strings.TrimSuffix(team.AgentLog(a.Agent), ".log"))
		}
	}
	for _, kind := range kinds {
		file := filepath.Join(s.Folder, "log", kind+".log")
		if kind == "guard" {
			file = layers.LogPath(s.Folder)
		}
		if st, err := os.Lstat(file); err == nil && st.Mode().IsRegular() {
			n := artifacts.New{Type: artifacts.TypeLog, Path: artifacts.SessionLog(s.Rec.ID, kind), Description: "output of the session's " + kind, File: file, Session: s.Rec.ID, Agent: s.Rec.Agent}
			if kind != "command" { // that one was masked when its program had ended
				n.Mask = s.Redactor().IfText
			}
			list = append(list, n)
		}
	}
	added, err := store.AddAll(ctx, list)
	c.artifacts = append(c.artifacts, added...)
	if err != nil {
		return err
	}
	left, problems, err := staging.Collect(ctx, store, staging.CollectOptions{Folder: s.ArtifactDir(), Session: s.Rec.ID, Agent: s.Rec.Agent, Mask: s.Redactor().IfText})
	c.artifacts = append(c.artifacts, left...)
	for _, p := range problems {
		c.warnings = append(c.warnings, "left in the artifact folder: "+p.String())
	}
	if err != nil {
		return err
	}
	if len(s.Rec.Agents) > 0 && !s.Rec.Shared {
		c.outputs = s.teamOutputs // taken from the agents' own workspaces
		return nil
	}
	out, saved, missing, err := s.CollectOutputs(ctx, store, s.Rec.ID)
	c.outputs, c.artifacts, c.warnings = out, append(c.artifacts, saved...), append(c.warnings, missing...)
	return err
}

// makePatch writes base and final into the store and their difference into a
// file. It returns nil when git sees no difference (permission bits beyond the
// executable one, say).
func (s *Session) makePatch(ctx context.Context, c *collected) (*artifacts.New, error) {
	base, final, err := mode.StoreEnds(ctx, s.Site, c.Look)
	if err != nil {
		return nil, err
	}
	return mode.PatchOf(ctx, s.Site, base, final)
}

// Diff writes the session's changes as a patch in git's format: base to
// workspace, or base to final once the workspace is no more.
func (s *Session) Diff(ctx context.Context, w io.Writer, opt DiffOptions) error {
	do := store.DiffOptions{Paths: opt.Paths, Stat: opt.Stat, Color: opt.Color}
	if !opt.Agent.IsZero() {
		e, err := s.AgentEnds(ctx, opt.Agent)
		if err != nil || e.Base == "" {
			return err
		}
		do.Base, do.Final = e.Base, e.Final
		return s.Store.Diff(ctx, do, w)
	}
	if s.Past() {
		if !s.Rec.HasFinal {
			return nil // it changed nothing
		}
		if err := s.OpenStore(ctx); err != nil {
			return err
		}
		do.Base, do.Final = s.Ref("base"), s.Ref("final")
		return s.Store.Diff(ctx, do, w)
	}
	l, err := s.Look(ctx)
	if err != nil {
		return err
	}
	if len(l.Changes) == 0 {
		return l.Close(string(s.Rec.Workspace))
	}
	do.Base, do.Final, err = mode.StoreEnds(ctx, s.Site, l)
	if err = errors.Join(err, l.Close(string(s.Rec.Workspace))); err != nil {
		return err
	}
	return s.Store.Diff(ctx, do, w)
}

// Track keeps a statement about the session that ref names, from outside of it.
func (m *Manager) Track(ctx context.Context, dir, ref string, list []attribution.Track) (err error) {
	s, err := m.Attach(ctx, dir, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Rec.State.Ended() {
		return mode.Ended(s.Site)
	}
	for _, t := range list {
		if t.Agent.IsZero() {
			t.Agent = s.Rec.Agent
		}
		if err := s.Track(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// DiffNumbered is Diff with the number of each hunk behind its second "@@", or on
// a line of its own for a file without hunks: what ApplyOptions.Hunks takes.
func (s *Session) DiffNumbered(ctx context.Context, w io.Writer, opt DiffOptions) error {
	n := merge.NewNumberWriter(w)
	return errors.Join(s.Diff(ctx, n, opt), n.Close())
}
