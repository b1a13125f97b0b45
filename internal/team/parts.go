package team

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/attach"
	"github.com/seed-2d964004/superqode/internal/attribution"
	"github.com/seed-2d964004/superqode/internal/gitdir"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/mode"
	"github.com/seed-2d964004/superqode/internal/program"
	"github.com/seed-2d964004/superqode/internal/staging"
	"github.com/seed-2d964004/superqode/internal/state"
)

// storeParts stores what each agent left: its patch, log, artifacts, findings,
// what the guard refused it, and its conflicts.
func (s *Ending) storeParts(ctx context.Context, m *attribution.TeamMerge) (*attribution.AgentsFile, error) {
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	f := &attribution.AgentsFile{}
	for _, w := range m.Works {
		r := attribution.AgentResult{
			Agent: w.Agent, Changes: w.List, Conflicts: []attribution.ConflictEntry{}, HasFinal: w.Commit != "",
		}
		for _, n := range append(w.Notes, w.Left...) {
			s.Note([]string{w.Agent.String() + ": " + n})
		}
		list, err := s.partsOf(ctx, w, &r)
		if err != nil {
			return nil, err
		}
		if _, err := store.AddAll(ctx, append(list, s.conflictFiles(m, w.Agent, &r)...)); err != nil {
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
func (s *Ending) partsOf(
	ctx context.Context, w *attribution.AgentWork, r *attribution.AgentResult,
) ([]artifacts.New, error) {
	var list []artifacts.New
	if w.Commit != "" {
		patch, err := mode.PatchOf(ctx, s.Site, w.Base, w.Commit)
		if err != nil {
			return nil, err
		}
		if patch != nil {
			patch.Path, patch.Agent = artifacts.AgentPatch(s.Rec.ID, w.Agent), w.Agent
			patch.Description = "the changes of agent " + w.Agent.String() +
				"; git apply brings them into the origin as it was at the start"
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
		n := artifacts.New{
			Type: artifacts.TypeLog, Path: artifacts.SessionLog(s.Rec.ID, w.Agent.String()+"-"+kind), File: file,
			Description: "output of agent " + w.Agent.String(), Session: s.Rec.ID, Agent: w.Agent,
		}
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
func (s *Ending) conflictFiles(
	m *attribution.TeamMerge, agent superqode.AgentID, r *attribution.AgentResult,
) (list []artifacts.New) {
	for _, c := range m.Conflicts {
		if c.Agent != agent {
			continue
		}
		e := attribution.ConflictEntry{
			Path: []byte(c.Path.String()), Kind: c.Kind, Message: c.Message, With: c.With, Lines: c.Lines,
		}
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
	return list
}

// inherit takes over what an agent's own session holds beside its workspace.
func (s *Ending) inherit(ctx context.Context, w *attribution.AgentWork, store *artifacts.Store) error {
	c := attach.Of(w.Child)
	_, problems, err := staging.Collect(ctx, store, staging.CollectOptions{
		Folder: c.ArtifactDir(), Session: s.Rec.ID, Agent: w.Agent, Mask: s.Redactor().IfText,
	})
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
	return errors.Join(s.inheritRuns(c), s.Findings().Inherit(c.Findings().Log),
		s.inheritLines(c, filepath.Join("log", "guard.jsonl")))
}

// inheritOutputs saves what an agent's workspace has of the outputs that the
// session was opened for.
func (s *Ending) inheritOutputs(ctx context.Context, c *attach.Attached, store *artifacts.Store) ([]string, error) {
	if len(s.Rec.Outputs) == 0 || !atomicfile.Exists(string(c.Rec.Workspace)) {
		return nil, nil
	}
	part, _, warnings, err := c.CollectOutputs(ctx, store, s.Rec.ID)
	if err != nil || part == nil {
		return warnings, err
	}
	if s.Outputs == nil {
		s.Outputs = part
		return warnings, nil
	}
	all := s.Outputs
	for _, f := range part.Files {
		if !slices.Contains(all.Files, f) { // what both have as it is
			all.Files, all.Bytes = append(all.Files, f), all.Bytes+f.Size
		}
	}
	all.Skipped, all.SkippedCount = append(all.Skipped, part.Skipped...), all.SkippedCount+part.SkippedCount
	all.Unmatched = slices.DeleteFunc(all.Unmatched, func(p string) bool { return !slices.Contains(part.Unmatched, p) })
	return warnings, nil
}

// inheritLines appends the lines of one of an agent's files to the session's own.
// Each file is taken once: a mark beside it says so.
func (s *Ending) inheritLines(c *attach.Attached, name string) error {
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

// inheritRuns takes over the records of an agent's runs, with their output, under
// numbers that follow on the session's own.
func (s *Ending) inheritRuns(c *attach.Attached) error {
	mark := filepath.Join(c.Folder, "runs.taken")
	if atomicfile.Exists(mark) {
		return nil
	}
	own, err := program.ReadRuns(s.Folder)
	if err != nil {
		return err
	}
	theirs, err := program.ReadRuns(c.Folder)
	if err != nil || len(theirs) == 0 {
		return err
	}
	next := 1
	for _, r := range own {
		next = max(next, r.Run+1)
	}
	for _, r := range theirs {
		from := runLog(c.Folder, r.Run)
		r.Run, r.SessionID, r.Agent = next, s.Rec.ID, c.Rec.Agent
		next++
		if err := copyLog(runLog(s.Folder, r.Run), from); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := s.AppendRun(r); err != nil {
			return err
		}
	}
	return atomicfile.Write(mark, nil, 0o600)
}

func copyLog(dst, src string) (err error) {
	in, err := atomicfile.Open(src)
	if err != nil {
		return err
	}
	defer in.Close() // read only
	return atomicfile.WriteFunc(dst, 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// runLog is the output of one run.
func runLog(dir string, run int) string {
	return filepath.Join(dir, "log", "run-"+strconv.Itoa(run)+".log")
}
