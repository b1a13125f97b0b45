package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/text"
)

// input is one of Spec.Inputs.
type input struct {
	config.Input

	id     string
	source string          // absolute, links of the source itself followed
	found  artifacts.Named // where it is an artifact
	sum    string          // fingerprint of the source
}

func (in *input) step() Step {
	to := in.To.String()
	from := &artifacts.SetupInput{From: in.From, To: to, Resolved: in.source, Version: in.found.Version}
	return Step{Key: in.Key, Kind: KindInput, Name: to, Input: from}
}

func (in *input) optional() bool { return in.Optional }

// inputFacts decide whether an input has to be applied.
type inputFacts struct {
	record *Record
	sum    string // of the source, now
	there  bool
	result string // of what is at the target now
}

// decideInput is the whole decision on an input.
func decideInput(f inputFacts) (apply bool, why string) {
	switch {
	case !f.there:
		return true, "it is not there"
	case f.record == nil:
		return true, "something else is in its place"
	case f.record.Fingerprint != f.sum:
		return true, "its source has changed"
	case f.record.Result != f.result:
		return true, "it has changed"
	}
	return false, "it is there, and neither it nor its source has changed"
}

func (in *input) decide(ctx context.Context, w *work) (bool, string, error) {
	def := newFramed()
	def.group("input", in.Path, in.Workspace, in.Artifact, fmt.Sprint(in.Version), in.To.String(), fmt.Sprint(in.Link),
		fmt.Sprint(in.ReadOnly))
	in.id = w.id(def.sum())
	if in.To.IsZero() {
		return false, "", superqode.Errorf(superqode.ErrUsage, "from %s: to is missing", text.Printable(in.From))
	}
	if err := in.locate(ctx, w); err != nil {
		return false, "", err
	}
	if err := in.check(w); err != nil {
		return false, "", err
	}
	facts := inputFacts{record: w.state.defined(in.id)}
	var err error
	if in.sum, err = in.fingerprint(ctx); err != nil {
		return false, "", err
	}
	facts.sum = in.sum
	if _, err := w.root.Lstat(in.To.String()); err == nil {
		facts.there = true
		if facts.record != nil {
			if facts.result, _, err = digest(ctx, w.root, []string{text.QuotePattern(in.To.String())}); err != nil {
				return false, "", err
			}
		}
	}
	apply, why := decideInput(facts)
	return apply, why, nil
}

// locate finds the source.
func (in *input) locate(ctx context.Context, w *work) (err error) {
	switch {
	case in.Artifact != "":
		in.source, in.found, err = w.Artifact(ctx, in.Artifact, in.Version)
		return err
	case in.Workspace != "":
		return in.locateInside(w, in.Workspace)
	}
	if in.source, err = w.expand(in.Path); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(in.source)
	if err == nil {
		in.source = real
		return nil
	}
	rel, rerr := filepath.Rel(w.Origin, in.source)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if w.Origin != "" && rerr == nil && filepath.IsLocal(rel) && in.locateInside(w, rel) == nil {
		return nil // only the workspace has it: from a commit, or from the template
	}
	return superqode.Errorf(superqode.ErrNotFound, "from %s does not exist", text.Printable(in.source))
}

func (in *input) locateInside(w *work, rel string) error {
	if err := w.checkParent("from", rel); err != nil {
		return err
	}
	real, err := w.resolve(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return superqode.Errorf(superqode.ErrNotFound, "from %s does not exist in the workspace", text.Printable(rel))
	}
	if err != nil && !errors.Is(err, errOutside) {
		return err
	}
	if err != nil || real == "." {
		return superqode.Errorf(superqode.ErrUsage, "from %s leads out of the workspace through a link",
			text.Printable(rel))
	}
	in.source = filepath.Join(w.top(), real)
	return nil
}

// check refuses sources that cannot be copied to their target.
func (in *input) check(w *work) error {
	st, err := os.Stat(in.source)
	if err != nil {
		return err
	}
	from := text.Printable(in.source)
	if !st.IsDir() && !st.Mode().IsRegular() {
		return superqode.Errorf(superqode.ErrUsage, "from %s is neither a file nor a folder", from)
	}
	goal := in.To.In(w.top())
	if superqode.Within(goal, in.source) {
		return superqode.Errorf(superqode.ErrUsage, "from %s: a folder cannot contain itself (to %s)", from,
			text.Printable(in.To.String()))
	}
	if superqode.Within(in.source, goal) {
		return superqode.Errorf(superqode.ErrUsage, "to %s: it would replace the folder that %s comes from",
			text.Printable(in.To.String()), from)
	}
	for _, dir := range w.Forbidden {
		nested := superqode.Within(dir, in.source) || superqode.Within(in.source, dir)
		if st.IsDir() && nested && in.Artifact == "" && !superqode.Within(in.source, w.top()) {
			return superqode.Errorf(superqode.ErrUsage, "from %s: superqode keeps its state there (%s)", from, dir)
		}
	}
	if in.Link && in.ReadOnly {
		if how, ok := w.Protected(in.source); !ok {
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage,
				"from %s: read_only with mode link is impossible: %s", from, how), "use mode copy")
		}
	}
	return nil
}

// fingerprint identifies the source's content; of a link's source only its
// path.
func (in *input) fingerprint(ctx context.Context) (string, error) {
	if in.Link {
		f := newFramed()
		f.group("link", in.source)
		return f.sum(), nil
	}
	root, err := atomicfile.OpenRoot(filepath.Dir(in.source))
	if err != nil {
		return "", err
	}
	sum, _, err := digest(ctx, root, []string{text.QuotePattern(filepath.Base(in.source))})
	return sum, errors.Join(err, root.Close())
}

// apply copies or links the source beside its target and moves it into place.
func (in *input) apply(ctx context.Context, w *work, s *Step) error {
	rel := in.To.String()
	temp, err := w.prepare("to", rel)
	if err != nil {
		return err
	}
	switch {
	case in.Link:
		err = w.root.Symlink(in.source, temp)
		how, _ := w.Protected(in.source)
		s.Reason += "; a link to " + text.Printable(in.source) + ": " + how
	default:
		err = in.copy(ctx, w, temp)
	}
	if err == nil && in.ReadOnly && !in.Link {
		err = w.closeAll(temp)
	}
	if err == nil && w.Keep != nil {
		if _, lerr := w.root.Lstat(rel); lerr == nil {
			err = w.Keep(ctx, in.To)
		}
	}
	if err == nil {
		err = w.replace(temp, rel)
	}
	if err != nil {
		if _, lerr := w.root.Lstat(temp); lerr == nil {
			err = errors.Join(err, w.erase(temp))
		}
		return err
	}
	rec := Record{ID: in.id, Name: rel, Fingerprint: in.sum, At: time.Now().UTC()}
	if rec.Result, _, err = digest(ctx, w.root, []string{text.QuotePattern(rel)}); err != nil {
		return err
	}
	w.state.put(rec)
	return nil
}

// copy copies the source to an unused path of the workspace, a folder with
// everything in it and links as they are.
func (in *input) copy(ctx context.Context, w *work, temp string) error {
	st, err := os.Stat(in.source)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		src, err := os.Open(in.source)
		if err != nil {
			return err
		}
		defer src.Close()
		if err := w.writeFile(temp, cmp.Or(in.found.Perm(), st.Mode().Perm()), func(out io.Writer) error {
			_, err := io.Copy(out, src)
			return err
		}); err != nil {
			return err
		}
		return w.root.Chtimes(temp, time.Time{}, st.ModTime())
	}
	from, problems, err := snapshot.Scan(ctx, in.source,
		snapshot.ScanOptions{Format: snapshot.SHA256, Contents: snapshot.StatOnly})
	if err != nil {
		return err
	}
	if err := w.root.Mkdir(temp, 0o700); err != nil {
		return err
	}
	if len(problems) == 0 {
		var more []snapshot.Problem
		_, more, err = treecopy.Copy(ctx, from, filepath.Join(w.Workspace, temp), treecopy.CopyOptions{})
		problems = append(problems, more...)
	}
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("from %s cannot be copied whole: %w", text.Printable(in.source), problems[0])
	}
	return errors.Join(err, w.root.Chmod(temp, st.Mode().Perm()))
}

// closeAll removes the write permission of everything at and below a path.
func (w *work) closeAll(name string) error {
	var folders []string
	err := w.eachBelow(name, func(p string, st fs.FileInfo) error {
		switch {
		case st.IsDir():
			folders = append(folders, p)
			return nil
		case st.Mode().IsRegular():
			return w.root.Chmod(p, st.Mode().Perm()&^0o222)
		}
		return nil
	})
	for _, p := range folders {
		st, serr := w.root.Lstat(path.Clean(p))
		if serr == nil {
			serr = w.root.Chmod(p, st.Mode().Perm()&^0o222)
		}
		err = errors.Join(err, serr)
	}
	return err
}
