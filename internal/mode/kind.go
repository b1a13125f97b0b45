// Package mode makes, looks at, brings back and takes away the workspace of a
// session, in the way of the session's mode. Nothing outside of this package asks
// which mode a session has.
package mode

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Kind is how one mode makes a workspace, looks at it, brings it back and takes
// it away. Every method can be repeated after a crash.
//
// A new mode is one file with a type that embeds plain and overrides what it does
// differently, and one entry in kinds.
type Kind interface {
	// About returns what the rest of the program asks about the mode.
	About() Facts

	// Check refuses options that do not fit the origin or this machine, before
	// anything is made, and returns them complete. The error wraps ErrUsage, or
	// ErrNotFound for an unknown revision.
	Check(ctx context.Context, h *site.Host, o *site.Origin, opt Options) (Options, error)
	// Make makes the workspace and sets the site's base, and what must be known of
	// the origin. It returns the entries of the base whose contents are to be
	// stored, since they exist nowhere else.
	Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error)

	// scan lists what the workspace holds. Whatever differs from the base can be read below
	// the result's Root.
	scan(ctx context.Context, s *site.Site, opt snapshot.ScanOptions) (*snapshot.Snapshot, []snapshot.Problem, error)
	// Skip reports what is no part of the session's snapshots.
	Skip(s *site.Site) snapshot.Skip
	// patchable returns the part of a snapshot of the workspace that a patch is about.
	patchable(s *site.Site, sn *snapshot.Snapshot) (*snapshot.Snapshot, error)
	// keepBase puts contents of the base that only this kind can find into the
	// store, as far as a patch is made from them.
	keepBase(ctx context.Context, s *site.Site, l *Look) error

	// Revert brings back what opt names and fills r. The caller holds the session
	// and the lock of its project.
	Revert(ctx context.Context, s *site.Site, opt RevertOptions, r *Reverted) error
	// Verify compares the workspace, and what else the mode restores, with the base.
	// It changes nothing. Of paths, none means all.
	Verify(ctx context.Context, s *site.Site, how revert.Method, paths []superqode.RelPath) (*revert.Verified, error)

	// Secure is the first half of what brings an origin back when a session ends:
	// whatever git reads or runs there. It comes before the changes are collected.
	// The result is nil in a mode that leaves the origin alone.
	Secure(ctx context.Context, s *site.Site) (*revert.Restored, error)
	// BringBack is the second half: the files, once the changes are collected. seen
	// is what the collecting found, or nil.
	BringBack(ctx context.Context, s *site.Site, seen *revert.Seen) (*revert.Restored, error)
	// Remove takes the workspace away and checks that it is gone. A worktree that
	// somebody locked stays, unless locked is set.
	Remove(ctx context.Context, s *site.Site, locked bool) error
	// Origin compares the origin with what it was when the session began and
	// changes nothing. changes are those that the session's end collected. The
	// differences are one line each; Method and Unchanged are set by the caller.
	Origin(ctx context.Context, s *site.Site, changes []superqode.Change) (*artifacts.OriginCheck, error)
}

// Facts are what the rest of the program asks about a mode.
type Facts struct {
	Mode      superqode.Mode
	InPlace   bool   // the workspace is the origin itself
	Restores  bool   // the workspace can be brought back to the base
	Mounted   bool   // the session's programs see the workspace at the origin's path, by the kernel layer's mounts
	WorkTree  bool   // the workspace is a work tree of the origin's repository, where there is one
	Templates bool   // the workspace begins with a copy of a folder that is named
	Making    string // what the making of a workspace is called while it goes on
}

// About returns the facts.
func (f Facts) About() Facts { return f }

// Exclusive reports whether a session of the mode needs the origin for itself: it
// has to bring it back.
func (f Facts) Exclusive() bool { return f.InPlace && f.Restores }

// kinds has every mode. It is the one place in which modes are told apart.
var kinds = []Kind{
	overlayKind{plain{Facts{Mode: superqode.ModeOverlay, Mounted: true, Restores: true, WorkTree: true, Making: "making the workspace"}}},
	worktreeKind{plain{Facts{Mode: superqode.ModeWorktree, Restores: true, WorkTree: true, Making: "making the workspace"}}},
	snapshotKind{copyKind{plain{Facts{Mode: superqode.ModeSnapshot, Restores: true, Making: "making the workspace"}}}},
	gitSnapshotKind{inPlaceKind{plain{Facts{Mode: superqode.ModeGitSnapshot, InPlace: true, Restores: true, WorkTree: true, Making: "taking a snapshot"}}}},
	directoryKind{copyKind{plain{Facts{Mode: superqode.ModeDirectory, Restores: true, Templates: true, Making: "making the workspace"}}}},
	sharedKind{inPlaceKind{plain{Facts{Mode: superqode.ModeShared, InPlace: true, WorkTree: true, Making: "taking a snapshot"}}}},
}

// All returns every kind, in the order in which help prints the modes.
func All() []Kind { return kinds }

// For returns the kind of a session's mode. Of a mode that is none (auto, say) it
// is one that has no facts and refuses everything.
func For(mode superqode.Mode) Kind {
	for _, k := range kinds {
		if k.About().Mode == mode {
			return k
		}
	}
	return plain{}
}

// Of returns the facts of a mode; see For.
func Of(mode superqode.Mode) Facts { return For(mode).About() }

// auto chooses the mode of a session that names none: whoever gives a template
// wants to begin with it, and git makes worktrees of commits only.
func auto(ctx context.Context, o *site.Origin, opt Options) (superqode.Mode, error) {
	switch {
	case opt.Template != "":
		return superqode.ModeDirectory, nil
	case opt.Overlay && opt.From == FromWorking && (o.Repo == nil || !o.Repo.Bare):
		return superqode.ModeOverlay, nil
	case o.Repo == nil:
		return superqode.ModeSnapshot, nil
	case o.Repo.Bare || opt.From != FromWorking:
		return superqode.ModeWorktree, nil
	}
	head, err := o.Repo.Head(ctx)
	if head == "" {
		return superqode.ModeSnapshot, err
	}
	return superqode.ModeWorktree, err
}

// Apart returns the mode of a session that is apart from the origin and begins
// with a commit, "" for an empty directory.
func Apart(commit string) superqode.Mode {
	if commit == "" {
		return superqode.ModeDirectory
	}
	return superqode.ModeWorktree
}

// OfOrphan gives the record of a workspace that has none the mode with which it is taken
// away, and returns the folder in which its files lie.
func OfOrphan(s *site.Site) (dir string) {
	s.Rec.Mode = superqode.ModeWorktree
	if s.Source.Repo == nil {
		s.Rec.Mode = superqode.ModeSnapshot
	}
	if dir = s.Upper(); atomicfile.Exists(dir) && atomicfile.Exists(filepath.Join(dir, "..", "work")) {
		s.Rec.Mode, s.Rec.Overlay = superqode.ModeOverlay, &state.Overlay{At: s.Rec.Origin}
		return dir
	}
	return string(s.Rec.Workspace)
}

// FromWorking as OpenOptions.From means what the user sees now: staged,
// unstaged, deleted and untracked files, index state included.
const FromWorking = "working"

// Options say how a workspace is made.
type Options struct {
	Mode     superqode.Mode
	From     string // FromWorking or a commit id
	Commit   string // what HEAD of the workspace will be; "" outside git
	Format   snapshot.Format
	Include  []string   // gitignore patterns of ignored files to bring along
	Exclude  []string   // snapshot mode: what is left out of the copy
	MaxBytes int64      // a bigger copy, of the origin or of a template, is refused; 0: no limit
	MaxTree  int64      // worktree mode: the same of the worktree
	Beside   *site.Site // overlay mode: the session whose beginning this one has, for one of its agents
	Overlay  bool       // auto may choose overlay mode
	Template string     // directory mode: a folder to start from; "": empty

	IgnoredBudget int64    // git_snapshot: bytes of ignored files that are kept copies of; overlay: that come along; 0: the default
	LeaveOut      []string // git_snapshot: patterns of ignored paths that are not protected; overlay: that stay behind
}

// Check decides the mode and has its kind check the options; see Kind.Check.
func Check(ctx context.Context, h *site.Host, o *site.Origin, opt Options) (Options, error) {
	opt.From = cmp.Or(opt.From, FromWorking)
	var err error
	if opt.Format, err = snapshot.ParseFormat(o.Format); err != nil {
		return opt, err
	}
	if opt.Mode == "" || opt.Mode == superqode.ModeAuto {
		if opt.Mode, err = auto(ctx, o, opt); err != nil {
			return opt, err
		}
	}
	return For(opt.Mode).Check(ctx, h, o, opt)
}

// RemoveTimeout bounds undoing and removing, which go on when the caller's
// context has ended.
const RemoveTimeout = 2 * time.Minute

// TakeAway removes the workspace; see Kind.Remove.
func TakeAway(ctx context.Context, s *site.Site, locked bool) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	defer s.Begin("removing the workspace", nil)()
	return For(s.Rec.Mode).Remove(ctx, s, locked)
}
