package gc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// An orphan is a workspace, or the admin folder of one in .git/worktrees, whose
// session has no folder any more: somebody deleted it, or a disk lost it.

// orphans removes the orphans of a project.
func (c *cleaner) orphans(ctx context.Context, p state.Project) error {
	if !c.opt.DryRun {
		if err := sweepOrphanFolders(ctx, p); err != nil {
			return err
		}
	}
	o, err := originOf(p)
	if err != nil {
		c.Tell(fmt.Sprintf("%s cannot be searched for what lost its session: %v", p.Dir, err))
		return nil
	}
	names, err := state.Names(filepath.Join(p.Dir, "qe"))
	if err != nil {
		return err
	}
	for i, name := range names {
		names[i] = p.Leased(name)
	}
	admins, err := c.orphanAdmins(p, o)
	if err != nil {
		return err
	}
	for _, id := range admins {
		if !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if id, err := superqode.ParseSessionID(name); err == nil && !atomicfile.Exists(p.SessionPath(name)) {
			c.orphan(ctx, p, o, id)
		}
	}
	return nil
}

// sweepOrphanFolders removes what a killed cleanup left; the caller holds the
// lock of cleanups.
func sweepOrphanFolders(ctx context.Context, p state.Project) error {
	names, err := state.Names(p.Dir)
	for _, name := range names {
		if strings.HasPrefix(name, mode.OrphanPrefix) {
			err = errors.Join(err, trash.RemoveTree(ctx, filepath.Join(p.Dir, name)))
		}
	}
	return err
}

// originOf returns what a project knows of its origin: Top is "" in a git
// repository, whose work tree it does not know.
func originOf(p state.Project) (*site.Origin, error) {
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	o := &site.Origin{Top: key, Format: "sha1"}
	if conf, err := atomicfile.ReadThrough(filepath.Join(key, "config")); err == nil && atomicfile.Exists(filepath.Join(key, "HEAD")) && atomicfile.Exists(filepath.Join(key, "objects")) {
		o.Repo = &git.Repo{CommonDir: key}
		o.Top = ""
		if filepath.Base(key) == ".git" {
			o.Top = filepath.Dir(key)
		}
		if bytes.Contains(bytes.ToLower(conf), []byte("objectformat = sha256")) {
			o.Format = "sha256"
		}
	}
	return o, nil
}

// orphanAdmins returns the ids of sessions that have an admin folder in the
// origin, no folder here, and a workspace that was one of this project's. Those
// of another home are spared.
func (c *cleaner) orphanAdmins(p state.Project, o *site.Origin) ([]string, error) {
	if o.Repo == nil {
		return nil, nil
	}
	parent := filepath.Join(o.Repo.CommonDir, "worktrees")
	names, err := state.Names(parent)
	if err != nil {
		return nil, err
	}
	var ids []string
	slices.Sort(names)
	for _, name := range names {
		if _, err := superqode.ParseSessionID(name); err != nil || atomicfile.Exists(p.SessionPath(name)) {
			continue
		}
		data, err := atomicfile.Read(filepath.Join(parent, name, "gitdir"))
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
			ids = append(ids, name) // half made, or half removed
			continue
		}
		if err != nil {
			c.spare(name, fmt.Sprintf("it has no record, and %s cannot be read: %v", filepath.Join(parent, name), err))
			continue
		}
		at := filepath.Dir(strings.TrimSuffix(string(data), "\n"))
		if superqode.RealPrefix(at) != superqode.RealPrefix(p.WorkspacePath(name)) {
			c.spare(name, fmt.Sprintf("it belongs to another home: its workspace is %s", text.Printable(at)))
			continue
		}
		ids = append(ids, name)
	}
	return ids, nil
}

// halfMade is how old an admin folder without a workspace must be: git may be
// making it right now, for another home.
const halfMade = 10 * time.Minute

// orphan salvages and removes one orphan.
func (c *cleaner) orphan(ctx context.Context, p state.Project, o *site.Origin, id superqode.SessionID) {
	s := attach.At(&site.Site{Host: c.Host, Project: p, Source: o, Rec: state.Record{
		ID: id, State: superqode.StatePreserved, ObjectFormat: o.Format, Workspace: state.HostPath(p.WorkspacePath(id.String())),
		Origin: state.HostPath(o.Top), Warnings: []string{},
	}})
	admin := ""
	if o.Repo != nil {
		s.Rec.CommonDir = state.HostPath(o.Repo.CommonDir)
		admin = filepath.Join(o.Repo.CommonDir, "worktrees", id.String())
		s.Rec.AdminDir = state.HostPath(admin)
	}
	idle := c.now.Sub(lastTouched(string(s.Rec.Workspace), admin))
	state := fmt.Sprintf("it has no record, last touched %s ago", text.Age(idle))
	switch {
	case idle < c.opt.OlderThan, idle < halfMade && !atomicfile.Exists(string(s.Rec.Workspace)):
		c.spare(id.String(), state)
		return
	case c.opt.DryRun:
		c.removed(id.String(), state, "")
		return
	}
	sv, err := removeOrphan(context.WithoutCancel(ctx), s)
	if err != nil {
		c.failed(id.String(), "what is left of it cannot be removed", err)
		return
	}
	c.removed(id.String(), state, sv.Name())
}

// lastTouched returns the latest time at which one of the folders changed.
func lastTouched(paths ...string) (at time.Time) {
	for _, path := range paths {
		if st, err := os.Lstat(path); err == nil && st.ModTime().After(at) {
			at = st.ModTime()
		}
	}
	return at
}

// removeOrphan keeps what the workspace holds and the origin does not, then
// takes it away.
func removeOrphan(ctx context.Context, s *attach.Attached) (_ *salvage.Record, err error) {
	if s.Folder, err = os.MkdirTemp(s.Project.Dir, mode.OrphanPrefix); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, trash.RemoveTree(ctx, s.Folder)) }()
	mode.OfOrphan(s.Site)
	if s.Base, err = likeOrigin(ctx, s.Site); err != nil {
		return nil, err
	}
	d, err := mode.SalvageWorkspace(ctx, s.Site, "workspace without a session removed by cleanup")
	if err != nil {
		return nil, fmt.Errorf("salvage: %w", err)
	}
	failpoint.Hit("cleanup.orphan-salvaged")
	if atomicfile.Exists(s.Project.SessionPath(s.Rec.ID.String())) {
		return d.Salvage, s.InUse()
	}
	return d.Salvage, mode.TakeAway(ctx, s.Site, false)
}

// likeOrigin stands in for the base that is lost: the files of the workspace
// that have the size and the mtime, to the nanosecond, of the origin's file at
// the same path. They were copied with their times.
func likeOrigin(ctx context.Context, s *site.Site) (*snapshot.Snapshot, error) {
	base, err := mode.NoBase(s)
	if err != nil || s.Rec.Origin == "" {
		return base, err
	}
	opt := snapshot.ScanOptions{Format: base.Format, Contents: snapshot.StatOnly, Skip: mode.SkipOrigin}
	origin, _, err := snapshot.Scan(ctx, string(s.Rec.Origin), opt)
	if errors.Is(err, fs.ErrNotExist) {
		return base, nil
	}
	if err != nil {
		return nil, err
	}
	here, _, err := snapshot.Scan(ctx, mode.OfOrphan(s), opt)
	if errors.Is(err, fs.ErrNotExist) || here == nil {
		return base, nil
	}
	for _, e := range here.Entries {
		o := origin.Find(e.Path)
		if o != nil && o.Perm == e.Perm && o.LooksCopied(&e) {
			base.Entries = append(base.Entries, e)
		}
	}
	return base, nil
}
