package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// MergeError says that changes of agents conflict. They are in the agents' own
// patches. It wraps superqode.ErrConflict.
type MergeError struct{ Conflicts []attribution.AgentConflict }

// Error counts the conflicts and names the first.
func (e *MergeError) Error() string {
	first := e.Conflicts[0]
	more := ""
	if n := len(e.Conflicts) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s of agents could not be merged: %s (%s)%s", text.Plural(len(e.Conflicts), "change"), text.Printable(first.Path.String()), first.Agent, more)
}

// Unwrap returns superqode.ErrConflict.
func (*MergeError) Unwrap() error { return superqode.ErrConflict }

// ErrorPaths returns the paths that conflict.
func (e *MergeError) ErrorPaths() []string {
	var paths []string
	for _, c := range e.Conflicts {
		if !slices.Contains(paths, c.Path.String()) {
			paths = append(paths, c.Path.String())
		}
	}
	return paths
}

// gather takes what the agents did in workspaces of their own into the session:
// it stores each one's part, merges them and puts the result into the session's
// workspace. Until that is recorded all of it can be repeated, and the agents'
// workspaces are as they left them.
func (s *Session) gather(ctx context.Context) (err error) {
	base, err := s.LoadBase()
	if err != nil {
		return fmt.Errorf("session %s: read its base: %w", s.Rec.ID, err)
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	if err := s.endAgents(); err != nil {
		return err
	}
	works, err := s.Works(ctx)
	if err != nil {
		return err
	}
	s.SeenWorks = works
	failpoint.Hit("agents.looked")
	m, err := s.Merge(ctx, base, works)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := m.Commit(ctx); err != nil {
		return err
	}
	if s.Credits, err = m.Credits(ctx); err != nil {
		return err
	}
	failpoint.Hit("agents.merged")
	f, err := s.storeParts(ctx, m)
	if err != nil {
		return fmt.Errorf("store the agents' artifacts: %w", err)
	}
	if err := s.WriteAgents(f, s.Credits); err != nil {
		return err
	}
	failpoint.Hit("agents.stored")
	s.conflicts = m.Conflicts
	if err := s.settle(ctx, m); err != nil {
		return fmt.Errorf("put the merged changes into %s: %w", s.Rec.Workspace, err)
	}
	failpoint.Hit("agents.settled")
	if err := s.Update(ctx, func(r *state.Record) { r.Merged = true }); err != nil {
		return err
	}
	failpoint.Hit("agents.gathered")
	return nil
}

// endAgents ends what is left of the agents' programs, and takes away workspaces
// that were not made to the end.
func (s *Session) endAgents() error {
	kids, err := s.Children()
	if err != nil {
		return err
	}
	for _, l := range kids {
		c := s.childSession(s.Child(l))
		if l.Dead { // of a superqode that was killed
			err = errors.Join(err, c.endLeftovers())
		}
		if l.Dead && l.State == superqode.StateCreated {
			err = errors.Join(err, holdChild(c), c.discard())
		}
	}
	return err
}

// storeParts stores what each agent left: its patch, log, artifacts, findings,
// what the guard refused it, and its conflicts.
func (s *Session) storeParts(ctx context.Context, m *attribution.TeamMerge) (*attribution.AgentsFile, error) {
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	f := &attribution.AgentsFile{}
	for _, w := range m.Works {
		r := attribution.AgentResult{Agent: w.Agent, Changes: w.List, Conflicts: []attribution.ConflictEntry{}, HasFinal: w.Commit != ""}
		for _, n := range append(w.Notes, w.Left...) {
			s.Note([]string{w.Agent.String() + ": " + n})
		}
		list, err := s.partsOf(ctx, w, &r)
		if err != nil {
			return nil, err
		}
		more, err := s.conflictFiles(m, w.Agent, &r)
		if err != nil {
			return nil, err
		}
		if _, err := store.AddAll(ctx, append(list, more...)); err != nil {
			return nil, err
		}
		for _, n := range list {
			if filepath.Dir(n.File) == s.Folder {
				err = errors.Join(err, os.Remove(n.File))
			}
		}
		if err == nil && w.Child != nil {
			err = s.inherit(ctx, w, store)
		}
		if err != nil {
			return nil, err
		}
		f.Agents = append(f.Agents, r)
	}
	return f, nil
}

// partsOf lists an agent's patch and log.
func (s *Session) partsOf(ctx context.Context, w *attribution.AgentWork, r *attribution.AgentResult) ([]artifacts.New, error) {
	var list []artifacts.New
	if w.Commit != "" {
		patch, err := mode.PatchOf(ctx, s.Site, w.Base, w.Commit)
		if err != nil {
			return nil, err
		}
		if patch != nil {
			patch.Path, patch.Agent = artifacts.AgentPatch(s.Rec.ID, w.Agent), w.Agent
			patch.Description = "the changes of agent " + w.Agent.String() + "; git apply brings them into the origin as it was at the start"
			r.Patch = patch.Path
			list = append(list, *patch)
		}
	}
	if w.Child == nil {
		return list, nil
	}
	series, err := gitdir.AgentCommits(ctx, s.Site, w.Child.Site)
	if err != nil {
		return nil, err
	}
	if series != nil {
		list = append(list, *series)
	}
	for _, kind := range []string{"command", "setup"} {
		file := filepath.Join(w.Child.Folder, "log", kind+".log")
		if st, err := os.Lstat(file); err != nil || !st.Mode().IsRegular() {
			continue
		}
		n := artifacts.New{Type: artifacts.TypeLog, Path: artifacts.SessionLog(s.Rec.ID, w.Agent.String()+"-"+kind), Description: "output of agent " + w.Agent.String(), File: file, Session: s.Rec.ID, Agent: w.Agent}
		if kind == "command" { // it was masked when its program had ended
			r.Log = n.Path
		} else {
			n.Mask = s.Redactor().IfText
		}
		list = append(list, n)
	}
	return list, nil
}

// conflictFiles lists an agent's conflicts and the files with git's marks.
func (s *Session) conflictFiles(m *attribution.TeamMerge, agent superqode.AgentID, r *attribution.AgentResult) ([]artifacts.New, error) {
	var list []artifacts.New
	for _, c := range m.Conflicts {
		if c.Agent != agent {
			continue
		}
		e := attribution.ConflictEntry{Path: []byte(c.Path.String()), Kind: c.Kind, Message: c.Message, With: c.With, Lines: c.Lines}
		if c.File != "" {
			e.File = attribution.EvidencePath(s.Rec.ID, agent, c.Path.String())
			list = append(list, artifacts.New{
				Type: artifacts.TypeError, Path: e.File, File: m.B.Path(c.File), Session: s.Rec.ID, Agent: agent,
				Description: c.Message, Name: filepath.Base(e.File),
			})
		}
		s.Note([]string{agent.String() + ": " + c.Message})
		r.Conflicts = append(r.Conflicts, e)
	}
	return list, nil
}

// inherit takes over what an agent's own session holds beside its workspace.
func (s *Session) inherit(ctx context.Context, w *attribution.AgentWork, store *artifacts.Store) error {
	c := s.childSession(w.Child)
	_, problems, err := staging.Collect(ctx, store, staging.CollectOptions{Folder: c.ArtifactDir(), Session: s.Rec.ID, Agent: w.Agent, Mask: s.Redactor().IfText})
	if err != nil {
		return err
	}
	notes, err := s.Findings().InheritFixes(ctx, c.Findings(), store)
	if err != nil {
		return err
	}
	saved, err := s.inheritOutputs(ctx, c, store)
	if err != nil {
		return err
	}
	notes = append(notes, saved...)
	for _, p := range problems {
		notes = append(notes, "left in the artifact folder: "+p.String())
	}
	for _, line := range append(notes, c.Rec.Warnings...) {
		s.Note([]string{w.Agent.String() + ": " + line})
	}
	for _, name := range c.Rec.Tampered {
		s.Rec.Tampered = state.Merged(s.Rec.Tampered, []string{w.Agent.String() + ": " + name})
	}
	return errors.Join(s.inheritRuns(c), s.Findings().Inherit(c.Findings().Log), s.inheritLines(c, filepath.Join("log", "guard.jsonl")))
}

// inheritOutputs saves what an agent's workspace has of the outputs that the
// session was opened for.
func (s *Session) inheritOutputs(ctx context.Context, c *Session, store *artifacts.Store) ([]string, error) {
	if len(s.Rec.Outputs) == 0 || !atomicfile.Exists(string(c.Rec.Workspace)) {
		return nil, nil
	}
	part, _, warnings, err := c.CollectOutputs(ctx, store, s.Rec.ID)
	if err != nil || part == nil {
		return warnings, err
	}
	if s.teamOutputs == nil {
		s.teamOutputs = part
		return warnings, nil
	}
	all := s.teamOutputs
	all.Files, all.Bytes = append(all.Files, part.Files...), all.Bytes+part.Bytes
	all.Skipped, all.SkippedCount = append(all.Skipped, part.Skipped...), all.SkippedCount+part.SkippedCount
	all.Unmatched = slices.DeleteFunc(all.Unmatched, func(p string) bool { return !slices.Contains(part.Unmatched, p) })
	return warnings, nil
}

// inheritLines appends the lines of one of an agent's files to the session's own.
// Each file is taken once: a mark beside it says so.
func (s *Session) inheritLines(c *Session, name string) error {
	mark := filepath.Join(c.Folder, filepath.Base(name)+".taken")
	if atomicfile.Exists(mark) {
		return nil
	}
	data, err := atomicfile.Read(filepath.Join(c.Folder, name))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(data) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	own := filepath.Join(s.Folder, name)
	have, err := atomicfile.Read(own)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := atomicfile.Write(own, ledger.Extend(have, data), 0o600); err != nil {
		return err
	}
	return atomicfile.Write(mark, nil, 0o600)
}
