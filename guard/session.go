package guard

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/plainjson"
)

// SessionStateFile is the name of the file in a session's folder that holds its
// SessionState.
const SessionStateFile = "guard.json"

// ShimMarker is the file that marks a folder whose git is a shim, for programs
// that look for the real one (internal/git does).
const ShimMarker = ".superqode-shim"

const sessionStateVersion = 1

// SessionState is what the guard's layers inside one session know. The
// supervisor writes it when the session opens and before each program; the shim
// and the hooks only read it, and find it by their own place on disk, never by
// an environment variable, since a program can change those.
type SessionState struct {
	SchemaVersion int                 `json:"schema_version"`
	ID            superqode.SessionID `json:"session_id"`
	Agent         superqode.AgentID   `json:"agent_id"`
	// WorkTree reports whether the workspace is a work tree of the origin's
	// repository. Other folders are the session's to make repositories of.
	WorkTree bool `json:"work_tree"`
	// OpenedAt is when the session began. In place, a repository inside the origin is
	// the user's when it is older, and the program's own otherwise.
	OpenedAt time.Time `json:"opened_at"`
	// Off is --allow-git-operations: nothing is denied, nothing is reported.
	Off bool `json:"allow_git_operations"`

	Origin    superqode.HostPath `json:"origin"`    // the user's work tree or directory, links resolved
	Workspace superqode.HostPath `json:"workspace"` // where the program works; equal to Origin in place
	Tmp       superqode.HostPath `json:"tmp"`       // TMPDIR, where it does not lie in the session's folder
	// GitDirs are the common git directories that are guarded, links resolved: a
	// repository whose common directory is one of them, or lies below one (a
	// submodule), is guarded. None in a session outside git.
	GitDirs []superqode.HostPath `json:"git_dirs"`
	// Trees are folders of the user's: a repository that lies in one of them
	// is guarded too. An isolated session has the origin here.
	Trees []superqode.HostPath `json:"trees"`

	// Base is the name of the policy to which Allow and Deny add, guard.allow and
	// guard.deny of the configuration.
	Base  string   `json:"policy"`
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`

	Git RealGit `json:"git"`
	// HooksPath is core.hooksPath as it was before the session set its own, as
	// configured (relative to the work tree's root, or absolute); "" when it is
	// not set, and then the user's hooks lie in the common directory's hooks.
	HooksPath superqode.HostPath `json:"hooks_path"`

	// UserConfig are the user's own global configuration files, links resolved,
	// whether they exist or not.
	UserConfig []superqode.HostPath `json:"user_config"`
	// HookEnv are the variables (KEY=VALUE) that put the hooks into git; the shim
	// gives them back to a git that a program started without.
	HookEnv []string `json:"hook_env"`

	// Kernel reports whether the kernel layer holds the programs of this
	// session; Private is where git writes then.
	Kernel  bool        `json:"kernel"`
	Private *PrivateGit `json:"private"`

	// Supervisors are the processes that run the session's programs, see
	// proctable.Process.Name. Who else answers on a socket there is nobody.
	Supervisors []string `json:"supervisors"`

	dir string
}

// RealGit is the git that the shim stands in front of.
type RealGit struct {
	Bin      superqode.HostPath `json:"bin"`       // absolute
	ExecPath superqode.HostPath `json:"exec_path"` // what it prints for --exec-path
	Version  string             `json:"version"`   // "2.39.5"
}

// LoadSessionState reads the state of the session whose folder is dir.
func LoadSessionState(dir string) (*SessionState, error) {
	data, err := atomicfile.Read(filepath.Join(dir, SessionStateFile))
	if err != nil {
		return nil, fmt.Errorf("read the guard's state: %w", err)
	}
	st := plainSessionState(data)
	if st == nil {
		st = &SessionState{}
		if err := json.Unmarshal(data, st); err != nil {
			return nil, fmt.Errorf("read the guard's state: %w", err)
		}
	}
	switch {
	case st.SchemaVersion != sessionStateVersion:
		return nil, fmt.Errorf("the guard's state has schema_version %d, this superqode knows %d", st.SchemaVersion,
			sessionStateVersion)
	case st.Git.Bin == "" || st.ID.IsZero():
		return nil, fmt.Errorf("the guard's state in %s is not whole", dir)
	}
	st.dir = dir
	return st, nil
}

// plainSessionState is for the shim, which reads the state before every git command;
// nil where encoding/json has to look.
func plainSessionState(data []byte) *SessionState {
	st := &SessionState{}
	if !plainjson.Read(data, plainjson.Fields{
		"schema_version": &st.SchemaVersion, "session_id": &st.ID, "agent_id": &st.Agent, "work_tree": &st.WorkTree,
		"opened_at": &st.OpenedAt, "allow_git_operations": &st.Off, "origin": &st.Origin, "workspace": &st.Workspace, "tmp": &st.Tmp,
		"git_dirs": &st.GitDirs, "trees": &st.Trees, "policy": &st.Base, "allow": &st.Allow, "deny": &st.Deny, "hooks_path": &st.HooksPath,
		"user_config": &st.UserConfig, "hook_env": &st.HookEnv, "kernel": &st.Kernel,
		"supervisors": &st.Supervisors,
		"git":         plainjson.Fields{"bin": &st.Git.Bin, "exec_path": &st.Git.ExecPath, "version": &st.Git.Version},
		"private": func() plainjson.Fields {
			st.Private = &PrivateGit{}
			return plainjson.Fields{"dir": &st.Private.Dir, "repository": &st.Private.Repository}
		},
	}) {
		return nil
	}
	return st
}

// StateOf reads the state of the session that a helper binary serves. exe is the
// binary's own path (os.Executable): it stands one folder below the session's,
// as bin/git, exec/git or hooks/NAME.
func StateOf(exe string) (*SessionState, error) {
	return LoadSessionState(filepath.Dir(filepath.Dir(exe)))
}

// Save writes the state into the session's folder dir. It is made anew before a
// program is started when it is lost, so nothing waits for the disk.
func (st *SessionState) Save(dir string) error {
	st.SchemaVersion, st.dir = sessionStateVersion, dir
	data, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, SessionStateFile), append(data, '\n'), 0o600)
}

// Dir returns the session's folder.
func (st *SessionState) Dir() string { return st.dir }

// LogPath returns the file of blocked attempts, one JSON object a line.
func (st *SessionState) LogPath() string { return filepath.Join(st.dir, "log", "guard.jsonl") }

// Policy returns the session's policy.
func (st *SessionState) Policy() (Policy, error) {
	return PolicyName(st.Base).Policy(st.Allow, st.Deny)
}

// Own reports whether a command that git would find to act on f acts on the session's own
// git directory: it lies there, or the shim leads it there. named is set where the command
// names a git directory itself; no shim changes that.
func (st *SessionState) Own(f Found, named bool) bool {
	switch {
	case st.Private == nil || !st.Kernel:
		return false
	case st.Private.holds(f.GitDir):
		return st.Private.holds(f.CommonDir)
	}
	return !named && f.WorkTree == string(st.Workspace) && slices.Contains(st.GitDirs, superqode.HostPath(f.CommonDir))
}

// Guards reports whether a repository is the session's to protect: its common
// directory is guarded or lies in a guarded one or in a tree of the user's, or, in
// place, it lay in the origin when the session began. Both paths are
// absolute and free of symbolic links; workTree is "" in a bare repository.
func (st *SessionState) Guards(commonDir, workTree string) bool {
	if st.Private.holds(commonDir) {
		return true
	}
	for _, d := range st.GitDirs {
		if superqode.Within(commonDir, string(d)) {
			return true
		}
	}
	for _, d := range st.Trees {
		if superqode.Within(commonDir, string(d)) || workTree != "" && superqode.Within(workTree, string(d)) {
			return true
		}
	}
	if PolicyName(st.Base) == Contained && workTree != "" && !superqode.Within(commonDir, string(st.Workspace)) &&
		!madeSince(commonDir, st.OpenedAt) {
		return true // another repository of the user's: a contained session reaches nothing outside
	}
	inPlace := st.Workspace == st.Origin && st.Origin != ""
	if inPlace && superqode.Within(commonDir, string(st.Origin)) && !madeSince(commonDir, st.OpenedAt) {
		return true
	}
	// Another repository's git pointed at the workspace (--work-tree, core.worktree)
	// overwrites what the session's own would not.
	return (st.WorkTree || inPlace) && workTree == string(st.Workspace)
}

// PrivateGit is the git directory that a session's programs use in the workspace
// while the kernel layer makes the repository's own read-only. Its HEAD, index,
// refs and new objects are the session's; all other objects are the repository's.
// Whatever the policy lets through happens here, and no ref of the user's moves.
//
// The programs may write to it, so nothing in it is believed: superqode's own git
// never runs there.
type PrivateGit struct {
	Dir        superqode.HostPath `json:"dir"`        // GIT_DIR, links resolved
	Repository superqode.HostPath `json:"repository"` // the repository's own common directory, where these programs see it
	// Overlay is the folder that holds what was written in the overlay that Dir lies in, and
	// ObjectFormat what Dir's index names contents with. Both are "" elsewhere.
	Overlay      superqode.HostPath `json:"overlay,omitempty"`
	ObjectFormat string             `json:"object_format,omitempty"`
}

// Index is the file that git keeps the session's index in.
func (p *PrivateGit) Index() string { return filepath.Join(string(p.Dir), "index") }

// Objects is the folder of the objects that the session made.
func (p *PrivateGit) Objects() string { return filepath.Join(string(p.Dir), "objects") }

// holds reports whether a path lies in the private git directory.
func (p *PrivateGit) holds(path string) bool {
	return p != nil && superqode.Within(path, string(p.Dir))
}

// PrivateEnv leads git in the workspace to the session's own git directory, unless
// the program has named another one.
func (st *SessionState) PrivateEnv(env []string) []string {
	if superqode.Getenv(env, "GIT_DIR") != "" {
		return env
	}
	return superqode.Override(env, []string{"GIT_DIR=" + string(st.Private.Dir), "GIT_WORK_TREE=" +
		string(st.Workspace)})
}
