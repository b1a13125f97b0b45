package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/layers"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// collectAll looks at the workspace and stores what there is to keep of it.
// Repeating it after an interruption stores nothing twice.
func (e *ending) collectAll(ctx context.Context) (err error) {
	defer e.Begin("collecting the changes", nil)()
	l, err := e.Look(ctx)
	if err != nil {
		return err
	}
	e.look = l
	defer func() { err = errors.Join(err, l.Close(string(e.Rec.Workspace))) }()
	if l.Gone != "" {
		e.Tell(l.Gone)
		e.warnings = append(e.warnings, l.Gone)
	}
	for _, p := range l.Problems {
		e.warnings = append(e.warnings, text.Printable(p.Path)+" could not be read at the end: "+p.Err.Error())
	}
	if l.Ignored > 0 {
		e.warnings = append(e.warnings, fmt.Sprintf("%d new paths that git ignores are in no patch", l.Ignored))
	}
	if err := e.Describe(ctx, l); err != nil {
		return err
	}
	digest, err := l.Final.Digest()
	if err != nil {
		return err
	}
	if err := mode.WriteChanges(e.Site, l.Changes); err != nil {
		return err
	}
	e.Rec.Final.Digest = digest // and so the changes are known, now and later
	failpoint.Hit("collect.compared")
	store, err := artifacts.Open(string(e.Rec.Origin))
	if err != nil {
		return err
	}
	if err := e.collectFiles(ctx, store); err != nil {
		return fmt.Errorf("store the session's artifacts: %w", err)
	}
	commits, series, err := gitdir.Collect(ctx, e.Site, store)
	e.commits, e.artifacts = commits, append(e.artifacts, series...)
	if err != nil {
		return err
	}
	failpoint.Hit("collect.stored")
	if e.Rec.Shared {
		parts, err := team.ShareParts(ctx, e.Attached, store, e.look.Changes, e.artifacts)
		e.artifacts = append(e.artifacts, parts...)
		if err != nil {
			return err
		}
	}
	if len(e.Rec.Agents) > 0 && !e.Rec.Shared { // with what the agents left
		if e.artifacts, err = store.List(ctx, artifacts.Filter{Session: e.Rec.ID}); err != nil {
			return err
		}
	}
	for _, w := range store.Warnings() {
		e.warnings = append(e.warnings, "artifacts: "+w.String())
	}
	return nil
}

// collectFiles stores the patch, the logs and the staging folder's files.
func (e *ending) collectFiles(ctx context.Context, store *artifacts.Store) error {
	var list []artifacts.New
	if len(e.look.Changes) > 0 {
		patch, err := e.makePatch(ctx)
		if err != nil {
			return err
		}
		if patch != nil {
			defer os.Remove(patch.File)
			list = append(list, *patch)
			flags, err := report.ShowPatch(ctx, e.Folder, patch.File, e.Redactor())
			if err != nil {
				return err
			}
			for _, f := range flags {
				e.Tell(f)
			}
			e.warnings = append(e.warnings, flags...)
		}
	}
	imported, err := e.Findings().Import()
	if err != nil {
		return err
	}
	for _, w := range imported {
		e.Tell(w)
	}
	e.warnings = append(e.warnings, imported...)
	fixes, warnings, err := e.Findings().CollectFixes(ctx, store, func() error {
		_, _, err := mode.StoreEnds(ctx, e.Site, e.look)
		return err
	})
	e.warnings = append(e.warnings, warnings...)
	if err != nil {
		return err
	}
	list = append(list, fixes...)
	kinds := []string{"command", "setup", "guard", "superqode"}
	if e.Rec.Shared {
		for _, a := range e.Rec.Agents {
			kinds = append(kinds, strings.TrimSuffix(team.AgentLog(a.Agent), ".log"))
		}
	}
	for _, kind := range kinds {
		file := filepath.Join(e.Folder, "log", kind+".log")
		if kind == "guard" {
			file = layers.LogPath(e.Folder)
		}
		if st, err := os.Lstat(file); err == nil && st.Mode().IsRegular() {
			n := artifacts.New{Type: artifacts.TypeLog, Path: artifacts.SessionLog(e.Rec.ID, kind), Description: "output of the session's " + kind, File: file, Session: e.Rec.ID, Agent: e.Rec.Agent}
			if kind != "command" { // that one was masked when its program had ended
				n.Mask = e.Redactor().IfText
			}
			list = append(list, n)
		}
	}
	added, err := store.AddAll(ctx, list)
	e.artifacts = append(e.artifacts, added...)
	if err != nil {
		return err
	}
	if err := e.MoveLargeArtifacts(ctx); err != nil {
		return err
	}
	left, problems, err := staging.Collect(ctx, store, staging.CollectOptions{Folder: e.ArtifactDir(), Session: e.Rec.ID, Agent: e.Rec.Agent, Mask: e.Redactor().IfText})
	e.artifacts = append(e.artifacts, left...)
	for _, p := range problems {
		e.warnings = append(e.warnings, "left in the artifact folder: "+p.String())
	}
	if err != nil {
		return err
	}
	if len(e.Rec.Agents) > 0 && !e.Rec.Shared {
		e.outputs = e.members.Outputs // taken from the agents' own workspaces
		return nil
	}
	out, saved, missing, err := e.CollectOutputs(ctx, store, e.Rec.ID)
	e.outputs, e.artifacts, e.warnings = out, append(e.artifacts, saved...), append(e.warnings, missing...)
	return err
}

// makePatch writes base and final into the store and their difference into a
// file. It returns nil when git sees no difference (permission bits beyond the
// executable one, say).
func (e *ending) makePatch(ctx context.Context) (*artifacts.New, error) {
	base, final, err := mode.StoreEnds(ctx, e.Site, e.look)
	if err != nil {
		return nil, err
	}
	return mode.PatchOf(ctx, e.Site, base, final)
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
