package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/report"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/team"
	"github.com/seed-2d964004/superqode/internal/text"
)

// collectAll looks at the workspace and stores what there is to keep of it: afterwards it
// is not needed any more. Repeating it after an interruption stores nothing twice.
func (e *ending) collectAll(ctx context.Context) (err error) {
	defer e.Begin("collecting the changes", nil)()
	l, err := e.Look(ctx)
	if err != nil {
		return err
	}
	e.look = l
	defer func() { err = errors.Join(err, l.Close()) }()
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
	digest, err := l.Final.Digest()
	if err != nil {
		return err
	}
	if err := mode.WriteChanges(e.Site, l.Changes); err != nil {
		return err
	}
	e.Rec.Final.Digest = digest // and so the changes are known, now and later
	failpoint.Hit("collect.compared")
	fixes, _, err := staging.Fixes(e.ArtifactDir()) // they are checked on the base
	if err != nil {
		return err
	}
	if len(l.Changes)+len(fixes) > 0 {
		if _, _, err := mode.StoreEnds(ctx, e.Site, l); err != nil {
			return err
		}
	}
	if len(e.Rec.Agents) > 0 && !e.Rec.Shared {
		e.outputs = e.members.Outputs // taken from the agents' own workspaces
		return nil
	}
	store, err := artifacts.Open(string(e.Rec.Origin))
	if err != nil {
		return err
	}
	var missing []string
	e.outputs, e.artifacts, missing, err = e.CollectOutputs(ctx, store, e.Rec.ID)
	e.warnings = append(e.warnings, missing...)
	return err
}

// describe stores what can be made without the workspace: the patch, with what git makes
// of the changes, the files that the program left for superqode, the commits. Repeating
// it after an interruption stores nothing twice.
func (e *ending) describe(ctx context.Context) error { return e.file(ctx, e.describeAll) }

// describeAgain makes a patch that could not be stored before: the disk was full, say.
func (e *ending) describeAgain(ctx context.Context) error {
	return e.file(ctx, func(ctx context.Context, store *artifacts.Store) error {
		if e.look.Commits[1] == "" || atomicfile.Exists(filepath.Join(store.Dir(), artifacts.SessionPatch(e.Rec.ID))) {
			return nil
		}
		patch, err := e.describeChanges(ctx)
		for _, p := range patch {
			defer os.Remove(p.File)
		}
		if err == nil {
			_, err = store.AddAll(ctx, patch)
		}
		return err
	})
}

// file adds artifacts. Where others have added some before, it lists what there is then.
func (e *ending) file(ctx context.Context, add func(context.Context, *artifacts.Store) error) error {
	if e.failedIn(stepMerge, stepCollect) {
		return nil
	}
	store, err := artifacts.Open(string(e.Rec.Origin))
	if err != nil {
		return err
	}
	e.warnings = nil
	err = add(ctx, store)
	for _, w := range store.Warnings() {
		e.warnings = append(e.warnings, "artifacts: "+w.String())
	}
	e.Note(e.warnings)
	e.Rec.Collected = e.Rec.Collected && err == nil
	if e.from == "" && (len(e.Rec.Agents) == 0 || e.Rec.Shared) {
		return err
	}
	var lerr error
	e.artifacts, lerr = store.List(ctx, artifacts.Filter{Session: e.Rec.ID})
	return errors.Join(err, lerr)
}

func (e *ending) describeAll(ctx context.Context, store *artifacts.Store) (err error) {
	var list []artifacts.New
	if e.look.Commits[1] != "" {
		list, err = e.describeChanges(ctx)
	}
	for _, patch := range list {
		defer os.Remove(patch.File)
	}
	if err != nil {
		return err
	}
	if err := e.collectFiles(ctx, store, list); err != nil {
		return fmt.Errorf("store the session's artifacts: %w", err)
	}
	var added []artifacts.Artifact
	e.commits, added, err = gitdir.Collect(ctx, e.Site, store)
	e.artifacts = append(e.artifacts, added...)
	failpoint.Hit("collect.stored")
	if e.Rec.Shared && err == nil {
		added, err = team.ShareParts(ctx, e.Attached, store, e.look.Changes, e.artifacts)
		e.artifacts = append(e.artifacts, added...)
	}
	return err
}

// describeChanges asks git for lines and renames with edits, and for the patch, in a file
// that the caller removes: nil where git sees none, of a file's permission bits beyond the
// executable one, say.
func (e *ending) describeChanges(ctx context.Context) ([]artifacts.New, error) {
	patch, err := e.DescribeAndPatch(ctx, e.look)
	if patch == nil {
		return nil, err
	}
	var flags []string
	if err == nil {
		flags, err = report.ShowPatch(ctx, e.Folder, patch.File, e.Redactor())
	}
	for _, f := range flags {
		e.Tell(f)
	}
	e.warnings = append(e.warnings, flags...)
	return []artifacts.New{*patch}, err
}

// collectFiles stores list, the logs and the staging folder's files.
func (e *ending) collectFiles(ctx context.Context, store *artifacts.Store, list []artifacts.New) error {
	imported, err := e.Findings().Import()
	if err != nil {
		return err
	}
	for _, w := range imported {
		e.Tell(w)
	}
	e.warnings = append(e.warnings, imported...)
	fixes, warnings, err := e.Findings().CollectFixes(ctx, store)
	e.warnings = append(e.warnings, warnings...)
	if err != nil {
		return err
	}
	list = append(list, fixes...)
	list = append(list, team.Logs(e.Attached)...)
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
	return err
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
