package salvage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Part is one directory's entries that are about to be overwritten or
// deleted.
type Part struct {
	Dir     string            // absolute: where the contents are read
	Prefix  superqode.RelPath // "" or the folder of the salvage that holds the entries ("git-dir")
	Entries []snapshot.Entry  // as they are now
	LeftOut []LeftOut         // what is left out already, and why
}

// Nothing reports whether the parts are empty.
func Nothing(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool { return len(p.Entries)+len(p.LeftOut) > 0 })
}

// Keeper makes the salvages of one session.
type Keeper struct {
	Dir     string // the session's folder
	Session superqode.SessionID
	Origin  superqode.HostPath
	Store   *store.Store
	Now     func() time.Time
	Warn    func(lines ...string)
	Log     zerolog.Logger
}

// tries is how often Keep reads a file that changes meanwhile.
const tries = 3

// The files of a salvage's first commit, whose child holds the entries as git's
// trees can: the exact list, and the contents at paths that no tree may hold.
const (
	ListName     = "entries.snap"
	ContentsName = "contents"
)

// Keep keeps what the entries hold before somebody overwrites or deletes them,
// and returns when that would survive a power cut; see Record. It returns nil
// if the parts are empty, and the previous salvage if that holds exactly the
// same (a step that is repeated after a crash).
//
// LeftOut and a warning name what Keep could not read; the caller decides
// whether to go on. Sockets, FIFOs and devices are only listed.
//
// The order of the writes makes it safe: contents, list, commit, and last the
// record that makes them a salvage.
func (k *Keeper) Keep(ctx context.Context, why string, parts ...Part) (_ *Record, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if Nothing(parts) {
		return nil, nil
	}
	unlock, err := lockfile.Lock(ctx, filepath.Join(k.Dir, "salvage.lock"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	sv := &Record{SchemaVersion: state.SchemaVersion, Session: k.Session, Why: why, At: k.Now().UTC(), Origin: k.Origin,
		LeftOut: []LeftOut{}}
	list := &snapshot.Snapshot{Root: string(k.Origin), Taken: k.Now(), Format: k.Store.Format()}
	for _, p := range freePrefixes(parts) {
		kept, left, err := k.contents(ctx, p, list.Format)
		if err != nil {
			return nil, fmt.Errorf("salvage the contents of %s: %w", p.Dir, err)
		}
		list.Entries, sv.LeftOut = append(list.Entries, kept...), append(sv.LeftOut, left...)
	}
	failpoint.Hit("salvage.contents")
	slices.SortFunc(list.Entries, snapshot.ByPath)
	sv.Files, sv.Bytes = list.Count()
	k.warnLeftOut(sv.LeftOut)
	last, err := k.last(ctx)
	if err != nil {
		return nil, err
	}
	if last.Ref != "" && k.same(last, list, sv.LeftOut) {
		return &last, nil
	}
	sv.number(last.N + 1)
	if err := k.write(ctx, sv, list); err != nil {
		return nil, fmt.Errorf("salvage %s: %w", sv.ID, err)
	}
	k.Log.Info().Str("salvage", sv.ID).Int("files", sv.Files).Int64("bytes", sv.Bytes).Msg("salvaged")
	return sv, nil
}

// maxLeftOutWarnings is how many paths are named one by one; the record has all.
const maxLeftOutWarnings = 10

func (k *Keeper) warnLeftOut(left []LeftOut) {
	for _, l := range left[:min(len(left), maxLeftOutWarnings)] {
		k.Warn("could not be salvaged: " + text.Printable(l.Path) + ": " + l.Reason)
	}
	if n := len(left) - maxLeftOutWarnings; n > 0 {
		k.Warn(fmt.Sprintf("could not be salvaged: %s more", text.Plural(n, "path")))
	}
}

// freePrefixes gives each part with a prefix one that no other path uses: a
// work tree may hold a file of that name.
func freePrefixes(parts []Part) []Part {
	parts = slices.Clone(parts)
	taken := func(prefix superqode.RelPath, but int) bool {
		for i, p := range parts {
			if i == but {
				continue
			}
			if p.Prefix == prefix || p.Prefix == "" && slices.ContainsFunc(p.Entries, func(e snapshot.Entry) bool {
				return superqode.Within(e.Path, prefix)
			}) {
				return true
			}
		}
		return false
	}
	for i := range parts {
		for parts[i].Prefix != "" && taken(parts[i].Prefix, i) {
			parts[i].Prefix += "~"
		}
	}
	return parts
}

// contents stores the contents of one part. It returns the entries as it read
// them, with the part's prefix, and what it could not read.
func (k *Keeper) contents(ctx context.Context, p Part,
	format snapshot.Format) (kept []snapshot.Entry, left []LeftOut, err error) {
	now := &snapshot.Snapshot{Root: p.Dir, Format: format, Entries: slices.Clone(p.Entries)}
	reasons := map[superqode.RelPath]string{}
	for i := range now.Entries {
		if e := &now.Entries[i]; e.Kind == snapshot.Link && e.ID.IsZero() {
			e.ID = format.HashBlob([]byte(e.Link))
		}
	}
	for try := 1; ; try++ {
		problems, err := snapshot.HashMissing(ctx, now)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range problems {
			reasons[p.Path] = p.Err.Error()
		}
		now.Entries = slices.DeleteFunc(now.Entries, func(e snapshot.Entry) bool { return reasons[e.Path] != "" })
		err = k.Store.WriteBlobs(ctx, p.Dir, now.Entries)
		var changed *store.ChangedError
		if !errors.As(err, &changed) {
			if err != nil {
				return nil, nil, err
			}
			break
		}
		for _, path := range changed.Paths {
			if try >= tries {
				reasons[path] = snapshot.ErrChangedWhileRead.Error()
			} else {
				forgetContent(now, path)
			}
		}
	}
	for path, why := range reasons {
		left = append(left, LeftOut{below(p.Prefix, path), why})
	}
	for _, l := range p.LeftOut {
		left = append(left, LeftOut{below(p.Prefix, l.Path), l.Reason})
	}
	slices.SortFunc(left, func(a, b LeftOut) int { return cmp.Compare(a.Path, b.Path) })
	for _, e := range now.Entries {
		e.Path = below(p.Prefix, e.Path)
		kept = append(kept, e)
	}
	return kept, left, nil
}

// below returns a path of a part in its salvage; "" is the part's own folder.
func below(prefix, path superqode.RelPath) superqode.RelPath {
	if path == "" {
		return prefix
	}
	return prefix.Join(string(path))
}

// forgetContent prepares another try on a file that changed while it was
// stored, and on the files that share its content.
func forgetContent(now *snapshot.Snapshot, path superqode.RelPath) {
	e := now.Find(path)
	if e == nil {
		return
	}
	id := e.ID
	for i := range now.Entries {
		if o := &now.Entries[i]; o.Kind == snapshot.File && o.ID == id {
			o.ID = snapshot.ID{}
		}
	}
}

// write writes the list, the commits and the record of a salvage whose
// contents are stored.
func (k *Keeper) write(ctx context.Context, sv *Record, list *snapshot.Snapshot) error {
	dir := Dir(k.Dir)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = atomicfile.SyncDir(k.Dir)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := list.Save(sv.ListPath(dir)); err != nil {
		return err
	}
	failpoint.Hit("salvage.listed")
	first, err := k.listTree(ctx, sv, dir, list)
	if err != nil {
		return err
	}
	message, err := sv.message()
	if err != nil {
		return err
	}
	ids, err := k.Store.CommitAll(ctx, []store.CommitRequest{
		{Snap: first, CommitOptions: store.CommitOptions{Message: "list of salvage " + sv.ID, When: sv.At}},
		{Ref: sv.Ref, Snap: list, CommitOptions: store.CommitOptions{Message: message, When: sv.At}, OnPrevious: true},
	})
	if err != nil {
		return err
	}
	sv.Commit = ids[1]
	failpoint.Hit("salvage.committed")
	if err := atomicfile.WriteJSON(sv.RecordPath(dir), sv); err != nil {
		return err
	}
	failpoint.Hit("salvage.recorded")
	return nil
}

// listTree makes the tree of the first commit. It holds the list, and the
// contents of paths that git's trees refuse: otherwise nothing would point at
// them, and the store's next packing would drop them.
func (k *Keeper) listTree(ctx context.Context, sv *Record, dir string,
	list *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	file := filepath.Base(sv.ListPath(dir))
	sn := &snapshot.Snapshot{Root: dir, Format: list.Format,
		Entries: []snapshot.Entry{{Path: superqode.RelPath(file), Kind: snapshot.File, Perm: 0o600}}}
	if problems, err := snapshot.HashMissing(ctx, sn); err != nil || len(problems) > 0 {
		return nil, snapshot.WithProblems(err, problems)
	}
	if err := k.Store.WriteBlobs(ctx, dir, sn.Entries); err != nil {
		return nil, err
	}
	sn.Entries[0].Path = ListName
	seen := map[snapshot.ID]bool{}
	for _, e := range list.Entries {
		if (e.Kind == snapshot.File || e.Kind == snapshot.Link) && !e.InTree() && !seen[e.ID] {
			seen[e.ID] = true
			sn.Entries = append(sn.Entries, snapshot.Entry{Path: ContentsName + "/" + superqode.RelPath(e.ID.String()),
				Kind: snapshot.File, Perm: 0o600, Size: e.Size, ID: e.ID})
		}
	}
	slices.SortFunc(sn.Entries, snapshot.ByPath)
	return sn, nil
}

// same reports whether a salvage holds exactly the list, so that another one is
// not needed.
func (k *Keeper) same(sv Record, list *snapshot.Snapshot, left []LeftOut) bool {
	old, err := snapshot.Load(sv.ListPath(Dir(k.Dir)))
	if err != nil || len(sv.LeftOut) != len(left) || len(old.Entries) != len(list.Entries) {
		return false
	}
	a, errA := old.Digest()
	b, errB := list.Digest()
	return errA == nil && errB == nil && a == b
}

// last returns the session's last salvage. Its number is the highest ever used,
// also by one that was interrupted: then Ref is "".
func (k *Keeper) last(ctx context.Context) (last Record, err error) {
	list, err := Read(k.Dir, k.Session)
	if err != nil {
		return last, err
	}
	for _, sv := range list {
		if sv.N > last.N {
			last = sv
		}
	}
	names, err := state.Names(Dir(k.Dir))
	if err != nil {
		return last, err
	}
	refs, err := k.Store.Refs(k.Session)
	if err != nil {
		return last, err
	}
	for ref := range refs {
		if n, ok := strings.CutPrefix(ref, "salvage/"); ok {
			names = append(names, n+".snap")
		}
	}
	for _, name := range names {
		if n, ok := Number(name, ".snap"); ok && n > last.N {
			last = Record{N: n}
		}
	}
	return last, nil
}
