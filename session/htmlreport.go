package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/report"
)

// maxPagePatch bounds what an HTML report reads of a patch, in bytes: the page
// shows some thousand lines of it and leads to the rest.
const maxPagePatch = 32 << 20

// page renders a report as HTML with the patches that the store has of its
// session.
func page(ctx context.Context, store *artifacts.Store, rep artifacts.Report, opt report.HTMLOptions) ([]byte, error) {
	names := map[string]string{artifacts.SessionPatch(rep.SessionID): ""}
	for _, a := range rep.Run.Agents {
		names[artifacts.AgentPatch(rep.SessionID, a.Agent)] = a.Agent.String()
	}
	list, err := store.List(ctx, artifacts.Filter{Session: rep.SessionID, Type: artifacts.TypePatch})
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		agent, known := names[a.Path.String()]
		if !known || slices.ContainsFunc(opt.Patches, func(p report.Patch) bool { return p.Path == a.Path.String() }) {
			continue
		}
		data, err := store.Read(a, maxPagePatch)
		if err != nil {
			return nil, err
		}
		opt.Patches = append(opt.Patches, report.Patch{Agent: agent, Path: a.Path.String(), Data: data})
	}
	var b bytes.Buffer
	err = report.HTML(&b, rep, opt)
	return b.Bytes(), err
}

// shownPatch gives a page the copy of the session's patch without secrets, where
// there is one.
func (s *Session) shownPatch(opt *report.HTMLOptions) error {
	f, err := atomicfile.Open(s.shownPatchPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPagePatch))
	opt.Patches = append(opt.Patches, report.Patch{Path: artifacts.SessionPatch(s.Rec.ID), Data: data})
	return err
}
