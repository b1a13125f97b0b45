// Package site is one session as the code that works on it sees it: its record
// and its folder, its project, and what is opened when first needed: git, the
// store of contents, the snapshots with which it began.
//
// A Site holds no lock. Whoever opened the session holds it; see package session.
package site

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/redact"
	"github.com/seed-2d964004/superqode/internal/revert"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
	"github.com/seed-2d964004/superqode/internal/trash"
)

// Site is one session and the place where it works. Several goroutines must not
// use one at the same time.
type Site struct {
	*Host
	Project state.Project
	Folder  string // the session's folder of state
	Rec     state.Record
	Source  *Origin           // the repository or directory that it was opened on
	As      superqode.AgentID // the agent for whom this value runs a program, when several work in one workspace
	Gentle  bool              // looks touch nothing, not even permissions: a program is at work

	Store      *store.Store    // see OpenStore
	Distrusted bool            // the repository may hold what a program put there: git must not look at it, not even for objects
	BaseKept   bool            // an in-place session's base contents are in the store
	Meter      *treecopy.Meter // of the workspace's making

	KernelTried string // kernel.Layer.By as this process found it

	Base       *snapshot.Snapshot // the workspace as it was handed out; see LoadBase
	OriginBase *snapshot.Snapshot // the origin as it was then; see LoadOrigin
	RepoState  *revert.RepoState  // the origin's repository beside the work tree

	work    *work    // see Mount
	secrets []string // environments of the programs that this process ran here
	masks   *redact.Redactor

	Kept     []string             // how others than the session changed the repository meanwhile; it was left so
	Salvages []string             // ids of what this process salvaged
	Watched  map[string]time.Time // when paths were first seen to change, by who watched this value's runs
}

// Warn shows lines to the person at the terminal and keeps them for the report, each
// once.
func (s *Site) Warn(lines ...string) {
	for _, l := range lines {
		if !slices.Contains(s.Rec.Warnings, l) {
			s.Rec.Warnings = append(s.Rec.Warnings, l)
			s.Tell(l)
		}
	}
}

func (s *Site) Note(lines []string) {
	s.Rec.Warnings = state.Merged(s.Rec.Warnings, lines)
}

// OpenStore opens the project's store of contents once. While the repository is
// distrusted its objects are read from the session's own copy of them.
func (s *Site) OpenStore(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.Store != nil {
		return nil
	}
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return err
	}
	objects := ""
	switch {
	case s.Distrusted:
		objects = filepath.Join(s.AsideDir(), "git", "objects")
	case s.Rec.CommonDir != "":
		objects = filepath.Join(string(s.Rec.CommonDir), "objects")
	}
	g, err := s.Git(ctx)
	if err != nil {
		return err
	}
	s.Store, err = store.Open(ctx, g, s.Project.StorePath(), objects, format)
	if errors.Is(err, os.ErrPermission) && state.ReopenTree(s.Project.StorePath()) == nil {
		s.Store, err = store.Open(ctx, g, s.Project.StorePath(), objects, format)
	}
	return err
}

// Repo returns the repository of the session's origin, from the record: nothing
// in the origin or the workspace is asked for it.
func (s *Site) Repo(ctx context.Context) (*git.Repo, error) {
	g, err := s.Git(ctx)
	if err != nil {
		return nil, err
	}
	return &git.Repo{Git: g, TopLevel: string(s.Rec.Origin), GitDir: string(s.Rec.GitDir), CommonDir: string(s.Rec.CommonDir), ObjectFormat: s.Rec.ObjectFormat}, nil
}

// Reload reads the record again: what was read before the lock was taken may be
// older than what the last holder wrote.
func (s *Site) Reload() error {
	rec, err := state.ReadRecord(s.Folder)
	if err != nil {
		return fmt.Errorf("session %s: %w", s.Rec.ID, err)
	}
	s.Rec = *rec
	return nil
}

// Update changes the mutable part of session.json under a lock, so that
// commands that run at the same time in one session lose nothing.
func (s *Site) Update(ctx context.Context, change func(*state.Record)) (err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(s.Folder, "record.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	rec, _ := state.Believe(s.Folder, s.Rec)
	s.Rec = rec
	change(&s.Rec)
	if s.Rec.State != rec.State || s.Rec.Step != rec.Step {
		s.Log.Info().Stringer("session", s.Rec.ID).Str("state", string(s.Rec.State)).Str("step", s.Rec.Step).Msg("session")
	}
	if err := s.Save(); err != nil || s.Rec.Step == rec.Step && s.Rec.Merged == rec.Merged {
		return err
	}
	return atomicfile.SyncDir(s.Folder) // what stands in the way of a recovery is taken away next
}

// Save writes session.json, see state.WriteRecord.
func (s *Site) Save() error {
	s.Rec.UpdatedAt = s.Now().UTC()
	return state.WriteRecord(s.Folder, &s.Rec)
}

func (s *Site) Ref(name string) string {
	return "refs/superqode/" + s.Rec.ID.String() + "/" + name
}

// AsideDir holds copies of what a git_snapshot session may have to bring back:
// tree/ of the work tree, git/ of the repository.
func (s *Site) AsideDir() string { return filepath.Join(s.Folder, "aside") }

func (s *Site) LoadBase() (*snapshot.Snapshot, error) {
	if s.Base != nil {
		return s.Base, nil
	}
	var err error
	s.Base, err = Held(s, "base.snap", snapshot.Load)
	return s.Base, err
}

// Held reads a file of the session's folder or, where that cannot be read, what a
// git_snapshot session keeps of it in its aside folder: what an origin is brought
// back by is held twice.
func Held[T any](s *Site, name string, read func(path string) (T, error)) (T, error) {
	v, err := read(filepath.Join(s.Folder, name))
	if err == nil {
		return v, nil
	}
	if twin, terr := read(filepath.Join(s.AsideDir(), name)); terr == nil {
		return twin, nil
	}
	return v, err
}

func (s *Site) LoadOrigin() (*snapshot.Snapshot, error) {
	if s.OriginBase != nil {
		return s.OriginBase, nil
	}
	var err error
	s.OriginBase, err = snapshot.Load(filepath.Join(s.Folder, "origin.snap"))
	return s.OriginBase, err
}

// Salvage keeps what the entries hold before somebody overwrites or deletes them;
// see salvage.Keeper.keep.
func (s *Site) Salvage(ctx context.Context, why string, parts ...salvage.Part) (*salvage.Record, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if salvage.Nothing(parts) {
		return nil, nil
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, err
	}
	k := &salvage.Keeper{Dir: s.Folder, Session: s.Rec.ID, Origin: s.Rec.Origin, Store: s.Store, Now: s.Now, Warn: s.Warn, Log: s.Log}
	return k.Keep(ctx, why, parts...)
}

// Keep salvages and remembers what the salvage is called.
func (s *Site) Keep(ctx context.Context, part salvage.Part) (*salvage.Record, error) {
	sv, err := s.Salvage(ctx, "revert", part)
	if sv != nil && !slices.Contains(s.Salvages, sv.ID) {
		s.Salvages = append(s.Salvages, sv.ID)
	}
	return sv, err
}

// Actor is who works: the agent for whom a program is run, or the session's.
func (s *Site) Actor() superqode.AgentID {
	if !s.As.IsZero() {
		return s.As
	}
	return s.Rec.Agent
}

// PublicID is the session that what runs here knows: that of all agents.
func (s *Site) PublicID() superqode.SessionID {
	if !s.Rec.Parent.IsZero() {
		return s.Rec.Parent
	}
	return s.Rec.ID
}

// mostTmp is how long TMPDIR may be, in bytes: programs make unix sockets some folders
// below it, and the name of one has room for 107.
const mostTmp = 30

const tmpPrefix = "sq-"

// TmpName chooses the folder that will be a session's TMPDIR, in the caller's own or in
// /tmp. It is "" where that would lie in the origin. MakeTmp makes it: the name is
// recorded before that, so that a crash loses none.
func (h *Host) TmpName(o *Origin) state.HostPath {
	name := tmpPrefix + strings.ToLower(rand.Text()[:8])
	dir := filepath.Join(superqode.Getenv(h.Env, "TMPDIR"), name)
	if !filepath.IsAbs(dir) || len(dir) > mostTmp {
		dir = filepath.Join("/tmp", name)
	}
	if superqode.Within(superqode.RealPrefix(dir), o.Top) {
		return ""
	}
	return state.HostPath(dir)
}

// MakeTmp makes the session's TMPDIR: the folder that TmpName chose, where the user may
// make it and nobody else was there first, else one in the session's own folder.
func (s *Site) MakeTmp() error {
	if s.Rec.Tmp != "" && os.Mkdir(string(s.Rec.Tmp), 0o700) == nil {
		return nil
	}
	dir := s.TmpDir()
	return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700))
}

// TmpDir is the session's TMPDIR.
func (s *Site) TmpDir() string {
	if s.tmpKind() == unix.S_IFDIR {
		return string(s.Rec.Tmp)
	}
	return filepath.Join(s.Folder, "tmp", "t")
}

// tmpKind is what stands where TmpName chose: 0 where that is nothing, or not the user's.
// A program may have written into the record.
func (s *Site) tmpKind() uint32 {
	var st unix.Stat_t
	dir := string(s.Rec.Tmp)
	if !strings.HasPrefix(filepath.Base(dir), tmpPrefix) || unix.Lstat(dir, &st) != nil || int(st.Uid) != os.Geteuid() {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}

// RemoveTmp removes the session's TMPDIR.
func (s *Site) RemoveTmp(ctx context.Context) error {
	err := trash.RemoveTree(ctx, filepath.Join(s.Folder, "tmp", "t"))
	if s.tmpKind() != 0 {
		err = errors.Join(err, trash.RemoveTree(ctx, string(s.Rec.Tmp)))
	}
	return err
}

// A program can fill the disk. So a session in place sets something aside as it
// begins, some room and some names, for its end to write with.
const (
	reserveBytes = 2 << 20
	reserveFiles = 32
)

func (s *Site) reserveDir() string { return filepath.Join(s.Folder, "reserve") }

// Reserve sets it aside.
func (s *Site) Reserve() error {
	err := os.Mkdir(s.reserveDir(), 0o700)
	for n := range reserveFiles {
		if err == nil {
			err = os.WriteFile(filepath.Join(s.reserveDir(), strconv.Itoa(n)), make([]byte, reserveBytes/reserveFiles), 0o600)
		}
	}
	return err
}

// MakeRoom gives up what was set aside, and what the session's programs left in
// their temporary folder. Call it where the session's end begins.
func (s *Site) MakeRoom(ctx context.Context) {
	if err := errors.Join(trash.RemoveTree(ctx, s.reserveDir()), s.RemoveTmp(ctx)); err != nil {
		s.Tell("what the session no longer needs cannot be removed: " + err.Error())
	}
}

// IsFull reports whether an error is that of a full disk.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// RoomHint gives the error of a full disk the hint that helps, where no command of
// superqode's makes room: again is what to run then.
func RoomHint(err error, again string) error {
	if !IsFull(err) {
		return err
	}
	return superqode.WithHint(err, "make room on that disk, then: %s", again)
}

func (s *Site) OutputDir() string { return filepath.Join(s.Folder, "tmp", "output") }

func (s *Site) ArtifactDir() string { return filepath.Join(s.Folder, "artifacts") }

// MoveLarge moves files that are too large for the store out of a directory into the
// session's folder and tells where they are.
func (s *Site) MoveLarge(ctx context.Context, dir string, files []snapshot.Entry) (moved bool, err error) {
	return s.moveOut(ctx, dir, files, "too much to be stored")
}

// An artifact that is larger than mostArtifact, and the largest beyond allArtifacts,
// stay in the session: they may be mostly holes, and the copies would fill the disk.
const (
	mostArtifact = 1 << 30 // bytes
	allArtifacts = 4 << 30
)

// MoveLargeArtifacts moves them.
func (s *Site) MoveLargeArtifacts(ctx context.Context) error {
	now, _, err := snapshot.Scan(ctx, s.ArtifactDir(), snapshot.ScanOptions{Format: snapshot.SHA1, Contents: snapshot.StatOnly})
	if err != nil { // staging.Collect tells
		return context.Cause(ctx)
	}
	_, err = s.MoveLarge(ctx, s.ArtifactDir(), snapshot.TooMuch(now.Entries, mostArtifact, allArtifacts))
	return err
}

// MoveUnsaved is MoveLarge for what a full disk has no room to save: a move needs
// none. Small files fit into what the session has set aside.
func (s *Site) MoveUnsaved(ctx context.Context, dir string, entries []snapshot.Entry) (moved bool, err error) {
	return s.moveOut(ctx, dir, snapshot.TooMuch(entries, reserveBytes/reserveFiles, math.MaxInt64), "not stored, for the disk is full")
}

func (s *Site) moveOut(ctx context.Context, dir string, files []snapshot.Entry, why string) (moved bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	if len(files) == 0 {
		return false, nil
	}
	to := ""
	for n := 1; ; n++ {
		to = filepath.Join(s.Folder, "large", strconv.Itoa(n))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return false, err
		}
		if err := os.Mkdir(to, 0o700); err == nil {
			break
		} else if !errors.Is(err, os.ErrExist) {
			return false, err
		}
	}
	format, err := snapshot.ParseFormat(s.Rec.ObjectFormat)
	if err != nil {
		return false, err
	}
	err = treecopy.MoveOut(ctx, dir, to, format, files)
	files = slices.DeleteFunc(files, func(e snapshot.Entry) bool { return !atomicfile.Exists(e.Path.In(to)) })
	switch {
	case len(files) == 1:
		s.Warn(fmt.Sprintf("%s (%s) is %s; it is kept until the session is cleaned up: %s", text.Printable(files[0].Path), text.Size(files[0].Size), why, text.QuotePOSIX(files[0].Path.In(to))))
	case len(files) > 1:
		s.Warn(fmt.Sprintf("%s and %s are %s; they are kept until the session is cleaned up: %s", text.Printable(files[0].Path), text.Plural(len(files)-1, "more file"), why, text.QuotePOSIX(to)))
	}
	return true, err
}
