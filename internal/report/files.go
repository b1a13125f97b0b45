package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/redact"
)

// Format is a form in which a session's report can be written.
type Format string

// The formats. The first three are written for every session.
const (
	FormatJSON    Format = "json"
	FormatMD      Format = "md"
	FormatHTML    Format = "html"
	FormatSARIF   Format = "sarif"
	FormatJUnit   Format = "junit"
	FormatSummary Format = "summary"
)

// path returns where below qe-artifacts a session's report of this format stands.
func (f Format) path(id superqode.SessionID) string {
	ext := map[Format]string{FormatJUnit: "junit.xml", FormatSummary: "summary.md"}[f]
	return artifacts.ReportFile(id, cmp.Or(ext, string(f)))
}

// Files are the reports of one session. Its folder has two, as it is, for
// --no-redact, and as it is shown: what was secret when the session ended stays so
// for whoever asks later, in whose environment the secrets are not. What is shown
// is filed in the origin's store, in every format that is wanted.
type Files struct {
	Dir     string // the session's folder
	Origin  string // absolute
	Session superqode.SessionID
	Name    string           // of the session, "" for none
	Trial   bool             // it stands beside the report, as Name does, for the time when the session's record is gone
	Formats []string         // those that are wanted besides JSON, Markdown and HTML
	Masks   *redact.Redactor // nil: secrets are shown
}

func (f Files) raw() string   { return filepath.Join(f.Dir, "report.json") }
func (f Files) shown() string { return filepath.Join(f.Dir, "report.shown.json") }

// ShownPatch returns where in a session's folder the copy of its patch without
// secrets lies, for showing it; it is there only when the patch holds some.
func ShownPatch(dir string) string { return filepath.Join(dir, "patch.shown") }

// Write writes the session's report and returns what was filed.
func (f Files) Write(ctx context.Context, rep artifacts.Report) ([]artifacts.Artifact, error) {
	var err error
	if rep.Coverage, err = f.coverage(rep.Run.Artifacts); err != nil {
		return nil, err
	}
	return f.write(ctx, rep, Masked(rep, f.Masks))
}

func (f Files) write(ctx context.Context, raw, shown artifacts.Report) ([]artifacts.Artifact, error) {
	// Of all that follows the one that is shown outlives a power cut: the others are made of it.
	for path, rep := range map[string]artifacts.Report{f.raw(): raw, f.shown(): shown} {
		data, err := rep.JSON()
		if err != nil {
			return nil, err
		}
		wait := atomicfile.Loose
		if path == f.shown() {
			wait = atomicfile.Whole
		}
		if err := errors.Join(atomicfile.ClearWay(path), wait.Write(path, data, 0o600)); err != nil {
			return nil, err
		}
	}
	store, err := artifacts.Open(f.Origin)
	if err != nil {
		return nil, err
	}
	meta := map[string]any{"verdict": string(shown.Verdict)}
	if f.Name != "" {
		meta[metaName] = f.Name
	}
	if f.Trial {
		meta[metaTrial] = true
	}
	formats := []Format{FormatJSON, FormatMD, FormatHTML}
	for _, name := range f.Formats {
		if !slices.Contains(formats, Format(name)) {
			formats = append(formats, Format(name))
		}
	}
	list := make([]artifacts.New, len(formats))
	var g errgroup.Group
	for i, format := range formats {
		g.Go(func() error {
			var b bytes.Buffer
			if err := f.render(&b, rendering{store: store, rep: shown, format: format, quick: true}); err != nil {
				return fmt.Errorf("as %s: %w", format, err)
			}
			list[i] = artifacts.New{
				Type: artifacts.TypeQR, Path: format.path(f.Session), Description: "quality report", Session: f.Session,
				Data: b.Bytes(), Metadata: meta, Loose: true,
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return store.AddAll(ctx, list)
}

// Change changes the report of a session that has ended, and files it anew. The
// error wraps superqode.ErrNotFound when there is none.
func (f Files) Change(ctx context.Context, change func(artifacts.Report) artifacts.Report) error {
	raw, err := f.read(ctx, f.raw())
	if err != nil {
		return err
	}
	shown, err := f.read(ctx, f.shown())
	if err != nil {
		return err
	}
	if _, err := f.write(ctx, change(raw), Masked(change(shown), f.Masks)); err != nil {
		return fmt.Errorf("write the report anew: %w", err)
	}
	return nil
}

// Read returns the session's report as it is shown. The error wraps
// superqode.ErrNotFound when there is none.
func (f Files) Read(ctx context.Context) (artifacts.Report, error) { return f.read(ctx, f.shown()) }

// read reads one of the session's two reports, or, where an older superqode ended
// the session, the one that was filed.
func (f Files) read(ctx context.Context, path string) (rep artifacts.Report, err error) {
	data, err := atomicfile.Read(path)
	if err == nil {
		if err = json.Unmarshal(data, &rep); err == nil && rep.SessionID == f.Session {
			return rep, nil
		}
	}
	if data, err = f.filed(ctx, FormatJSON); err != nil {
		return rep, err
	}
	return artifacts.ParseReport(data)
}

// filed reads the session's report as it was filed in a format.
func (f Files) filed(ctx context.Context, format Format) ([]byte, error) {
	store, err := artifacts.Open(f.Origin)
	if err != nil {
		return nil, err
	}
	list, err := store.List(ctx, artifacts.Filter{Session: f.Session, Type: artifacts.TypeQR})
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.Path.String() == format.path(f.Session) {
			return store.Read(a, 0)
		}
	}
	err = superqode.Errorf(superqode.ErrNotFound, "session %s has no report yet", f.Session)
	return nil, superqode.WithHint(err, "superqode workspace end --session %s", f.Session)
}

// ShowOptions say which form of a report is wanted.
type ShowOptions struct {
	Format   Format
	NoRedact bool // show secrets, as far as the session's folder still has them
	Filed    bool // an HTML report is the one that was filed: what masked the patch is not known any more
}

// Show writes the report of a session that has ended.
func (f Files) Show(ctx context.Context, w io.Writer, opt ShowOptions) error {
	path := f.shown()
	if opt.NoRedact {
		path, f.Masks = f.raw(), nil
	}
	rep, err := f.read(ctx, path)
	if err != nil {
		return err
	}
	if opt.Filed && opt.Format == FormatHTML {
		data, err := f.filed(ctx, FormatHTML)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	store, err := artifacts.Open(f.Origin)
	if err != nil {
		return err
	}
	root := url.URL{Scheme: "file", Path: store.Dir()} // nobody knows where the page will stand
	return f.render(w, rendering{store: store, rep: rep, format: opt.Format, root: root.String()})
}

// rendering is one report in one format.
type rendering struct {
	store  *artifacts.Store
	rep    artifacts.Report // as it is to be shown
	format Format
	quick  bool   // every end of a session does it: it must not take long
	root   string // the address of qe-artifacts for an HTML page that does not stand in qr/
}

func (f Files) render(w io.Writer, r rendering) error {
	switch r.format {
	case FormatJSON:
		data, err := r.rep.JSON()
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	case FormatMD:
		return Markdown(w, r.rep, f.Name)
	case FormatHTML:
		patches, err := f.patches(r)
		if err != nil {
			return err
		}
		conflicts, err := f.conflicts(r)
		if err != nil {
			return err
		}
		opt := HTMLOptions{Name: f.Name, Patches: patches, Conflicts: conflicts, Quick: r.quick, Root: r.root}
		if f.Masks != nil {
			opt.Mask = f.Masks.Text
		}
		return HTML(w, r.rep, opt)
	case FormatSARIF:
		return SARIF(w, r.rep)
	case FormatJUnit:
		return JUnit(w, r.rep)
	case FormatSummary:
		return StepSummary(w, r.rep)
	}
	return superqode.Errorf(superqode.ErrUsage, "%q is not a report format", r.format)
}

// maxPagePatch bounds what an HTML report reads of a patch, in bytes: the page
// shows some thousand lines of it and leads to the rest.
const maxPagePatch = 32 << 20

// patches returns the patches that a page shows: the session's, without secrets
// where there is such a copy and secrets are masked, and those of its agents.
func (f Files) patches(r rendering) (list []Patch, err error) {
	whole := artifacts.SessionPatch(f.Session)
	if f.Masks != nil {
		file, err := atomicfile.Open(ShownPatch(f.Dir))
		if err == nil {
			data, rerr := io.ReadAll(io.LimitReader(file, maxPagePatch))
			err = errors.Join(rerr, file.Close())
			list = append(list, Patch{Path: whole, Data: data})
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	agents := map[string]string{}
	if len(list) == 0 {
		agents[whole] = ""
	}
	for _, a := range r.rep.Run.Agents {
		agents[artifacts.AgentPatch(f.Session, a.Agent)] = a.Agent.String()
	}
	for _, a := range r.rep.Run.Artifacts {
		if agent, known := agents[a.Path.String()]; known {
			if list, err = r.read(list, agent, a, maxPagePatch); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// maxPageConflict bounds what a page reads of a file with conflict markers.
const maxPageConflict = 1 << 20

// conflicts returns the files that show both sides of the agents' conflicts.
func (f Files) conflicts(r rendering) (list []Patch, err error) {
	for _, a := range r.rep.Run.Artifacts {
		name, ok := strings.CutPrefix(a.Path.String(), path.Join("evidence", f.Session.String(), "conflicts")+"/")
		if !ok {
			continue
		}
		agent, _, _ := strings.Cut(name, "/")
		if list, err = r.read(list, agent, a, maxPageConflict); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// read appends an artifact's first bytes, unless it was pruned since.
func (r rendering) read(list []Patch, agent string, a artifacts.Ref, limit int64) ([]Patch, error) {
	data, err := r.store.Read(artifacts.Artifact{ID: a.ID, Path: a.Path}, limit)
	if errors.Is(err, superqode.ErrNotFound) {
		return list, nil
	}
	return append(list, Patch{Agent: agent, Path: a.Path.String(), Data: data}), err
}

// What stands beside a report in the manifest.
const (
	metaName  = "session_name"
	metaTrial = "trial"
)

// Find returns the report of the session that ref names, and the session's name.
// A report outlives the session's own folder: it lies in the store until artifacts
// prune takes it. ref is an id, a unique beginning or end of one, or a name; "" is
// the session that began last. The error wraps superqode.ErrNotFound when there is
// none.
func Find(ctx context.Context, store *artifacts.Store, ref string) (hit artifacts.Artifact, name string, err error) {
	all, err := store.List(ctx, artifacts.Filter{Type: artifacts.TypeQR})
	if err != nil {
		return hit, "", err
	}
	var hits []artifacts.Artifact
	for _, a := range all {
		if a.Session.IsZero() || a.Path.String() != FormatJSON.path(a.Session) {
			continue
		}
		id, name := a.Session.String(), a.Metadata[metaName]
		trial, _ := a.Metadata[metaTrial].(bool)
		if id == ref {
			hits = []artifacts.Artifact{a}
			break
		}
		named := strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref) || name == ref
		if named && (ref != "" || !trial) {
			hits = append(hits, a)
		}
	}
	switch {
	case len(hits) == 0 && ref == "":
		err = superqode.Errorf(superqode.ErrNotFound, "no session of this origin has ended")
		return hit, "", superqode.WithHint(err, "superqode workspace list")
	case len(hits) == 0:
		err = superqode.Errorf(superqode.ErrNotFound, "no session matches %q", ref)
		return hit, "", superqode.WithHint(err, "superqode workspace list --all")
	case len(hits) > 1 && ref != "":
		err = superqode.Errorf(superqode.ErrUsage, "%q is ambiguous: %d sessions have left a report (%s, %s)",
			ref, len(hits), hits[0].Session, hits[1].Session)
		return hit, "", superqode.WithHint(err, "superqode artifacts list --type qr")
	}
	hit = slices.MaxFunc(hits, func(a, b artifacts.Artifact) int { return a.CreatedAt.Compare(b.CreatedAt) })
	name, _ = hit.Metadata[metaName].(string)
	return hit, name, nil
}
