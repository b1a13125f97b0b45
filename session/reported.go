package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// A session's report outlives the session's own folder, which cleanup takes: it
// lies among the origin's artifacts until artifacts prune takes it from there.
// Such a session can be looked at, and no more.

// metaName and metaTrial stand beside a report, for the time when the session's
// record is gone.
const (
	metaName  = "session_name"
	metaTrial = "trial"
)

// reportMetadata is what the manifest says about a report.
func (s *Session) reportMetadata(v artifacts.Verdict) map[string]any {
	meta := map[string]any{"verdict": string(v)}
	if s.Rec.Name != "" {
		meta[metaName] = s.Rec.Name
	}
	if s.Rec.Trial {
		meta[metaTrial] = true
	}
	return meta
}

// AttachReported returns a session whose report lies among the artifacts of the
// origin around dir, whether its own folder is still there or not: Record knows
// its id, and Findings what it found. ref is its id, a unique beginning or end of
// it, or its name; "" is the session that began last. The error wraps
// superqode.ErrNotFound when there is none.
func (m *Manager) AttachReported(ctx context.Context, dir, ref string) (*Session, error) {
	return m.reported(ctx, dir, ref)
}

// reported returns a session of which only the report is known.
func (m *Manager) reported(ctx context.Context, dir, ref string) (*Session, error) {
	o, err := m.Resolve(ctx, dir)
	if err != nil {
		return nil, err
	}
	store, err := artifacts.Open(o.Top)
	if err != nil {
		return nil, err
	}
	all, err := store.List(ctx, artifacts.Filter{Type: artifacts.TypeQR})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a artifacts.Artifact) bool {
		return a.Session.IsZero() || a.Path.String() != FormatJSON.file(a.Session)
	})
	hit, err := pickReport(all, ref)
	if err != nil {
		return nil, err
	}
	s := &Session{m: m, Site: &site.Site{Host: m.Host, Project: m.ProjectOf(o), Source: o}, reportOnly: true}
	s.Folder = s.Project.SessionPath(hit.Session.String())
	s.Rec = state.Record{ID: hit.Session, State: superqode.StateDone, Origin: state.HostPath(o.Top), CreatedAt: hit.CreatedAt}
	s.Rec.Name, _ = hit.Metadata[metaName].(string)
	return s, nil
}

// pickReport returns the report of the session that ref names.
func pickReport(all []artifacts.Artifact, ref string) (artifacts.Artifact, error) {
	var hits []artifacts.Artifact
	for _, a := range all {
		id := a.Session.String()
		trial, _ := a.Metadata[metaTrial].(bool)
		switch {
		case id == ref:
			return a, nil
		case ref == "" && !trial, ref != "" && (strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref) || a.Metadata[metaName] == ref):
			hits = append(hits, a)
		}
	}
	switch {
	case len(hits) == 0 && ref == "":
		return artifacts.Artifact{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session of this origin has ended"), "superqode workspace list")
	case len(hits) == 0:
		return artifacts.Artifact{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session matches %q", ref), "superqode workspace list --all")
	case len(hits) > 1 && ref != "":
		return artifacts.Artifact{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "%q is ambiguous: %d sessions have left a report (%s, %s)", ref, len(hits), hits[0].Session, hits[1].Session),
			"superqode artifacts list --type qr")
	}
	return slices.MaxFunc(hits, func(a, b artifacts.Artifact) int { return a.CreatedAt.Compare(b.CreatedAt) }), nil
}

// lookAt returns a session to read its report from: one that superqode has the
// record of or, where cleanup took that, what its report tells.
func (m *Manager) lookAt(ctx context.Context, dir, ref string) (*Session, error) {
	l, err := m.find(ctx, dir, ref)
	if err == nil {
		return m.session(l), nil
	}
	if ref == "" || !errors.Is(err, superqode.ErrNotFound) {
		return nil, err
	}
	s, rerr := m.reported(ctx, dir, ref)
	if errors.Is(rerr, superqode.ErrNotFound) || rerr != nil && !errors.Is(rerr, superqode.ErrUsage) {
		return nil, err
	}
	return s, rerr
}

// gone is the error for a session that is not there: no more, or never was.
func (m *Manager) gone(ctx context.Context, dir, ref string) error {
	s, err := m.reported(ctx, dir, ref)
	if err != nil {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session matches %q", ref), "superqode workspace list --all")
	}
	return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "session %s was cleaned up; its report and other artifacts are left", s.Rec.ID), "superqode artifacts list --session %s", s.Rec.ID)
}
