package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/outputs"
)

// HostPath is an absolute path of this machine, see superqode.HostPath.
type HostPath = superqode.HostPath

// Record is a session's session.json: what the session is and how far it came.
// Only the supervisor writes it.
type Record struct {
	SchemaVersion int                 `json:"schema_version"`
	ID            superqode.SessionID `json:"session_id"`
	Name          string              `json:"name"`
	Mode          superqode.Mode      `json:"mode"`
	State         superqode.State     `json:"state"`
	Owned         bool                `json:"owned"` // opened by `run`: its process ends it
	Keep          superqode.Keep      `json:"keep"`
	Agent         superqode.AgentID   `json:"agent_id"`
	Runner        HostPath            `json:"runner_id,omitempty"` // the name that Agent was made of, any bytes
	Case          HostPath            `json:"case_id"`             // any bytes

	Origin       HostPath `json:"origin"`
	Prefix       HostPath `json:"prefix"`
	CommonDir    HostPath `json:"common_dir"`
	GitDir       HostPath `json:"git_dir"`
	Workspace    HostPath `json:"workspace"`
	Tmp          HostPath `json:"tmp"` // TMPDIR, where it does not lie in the session's folder, see site.MakeTmp
	AdminDir     HostPath `json:"admin_dir"`
	Overlay      *Overlay `json:"overlay,omitempty"` // the workspace is seen elsewhere, through a mount
	ObjectFormat string   `json:"object_format"`
	From         string   `json:"from"`
	Exclude      []string `json:"exclude"` // patterns that are no part of the session's snapshots

	Guard  GuardRecord `json:"guard"`
	Claims string      `json:"claims"` // advisory or enforced
	Given  GivenSetup  `json:"setup"`  // on the command line

	Parent superqode.SessionID `json:"parent,omitzero"`            // of the workspace of one agent of several: the session that it is part of
	Agents []AgentRecord       `json:"agents,omitempty"`           // of a session of several agents, in the order given
	Shared bool                `json:"shared_workspace,omitempty"` // the agents work in one workspace
	Merged bool                `json:"merged,omitempty"`           // the workspace holds what the agents' own ones held

	Watcher WatcherOptions `json:"watcher"`

	NoRevert  bool       `json:"no_revert"`        // in place: the changes stay in the end
	TopFolder folderInfo `json:"top_folder"`       // in place: the origin's own folder
	GitFolder folderInfo `json:"git_folder"`       // git_snapshot: the git common dir's own folder
	LeftOut   []HostPath `json:"left_out"`         // in place: paths of the origin that are not protected, and left alone
	Included  []HostPath `json:"included_ignored"` // paths of the workspace that git ignores and that came along; a folder for several of its files
	Beside    []string   `json:"beside,omitempty"` // branches, tags and stashes of the session that the store keeps beside its HEAD's commits
	Step      string     `json:"step,omitempty"`   // of the way down: StepBringBack or StepRemove once it has begun, "" before

	Enforce     kernel.Enforce `json:"enforce"`
	AllowWrite  []HostPath     `json:"allow_write"` // links resolved
	Remotes     []HostPath     `json:"remotes"`     // repositories of this machine that the origin is pushed to
	GitReads    []HostPath     `json:"git_reads"`   // what the user's git reads outside of it: configuration, hooks, templates
	NoNetwork   bool           `json:"no_network"`
	OwnNetwork  bool           `json:"own_network"`
	PrivateTmp  bool           `json:"private_tmp"`
	Sockets     []HostPath     `json:"sockets"`       // of container engines, which stay in reach of a session with PrivateTmp
	GitReadOnly bool           `json:"git_read_only"` // the kernel layer keeps the repository from the session's programs
	Kernel      string         `json:"kernel"`        // the kernel layer's state, the weakest under which a program ran
	Confine     bool           `json:"confine"`       // only what is named is writable
	KernelBy    string         `json:"kernel_by"`     // kernel.Mounts, kernel.Landlock or kernel.None
	// KernelMissing are sentences on what it does not cover, see kernel.Layer.
	KernelMissing []string `json:"kernel_missing"`

	Reports  []string `json:"reports"`   // formats that are written beside json, md and html
	NoRedact bool     `json:"no_redact"` // secrets stay in logs and reports
	Trial    bool     `json:"trial"`     // verify-fix opened it: it is nobody's last session

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at"`

	Base  artifacts.Base  `json:"base"`
	Final artifacts.Final `json:"final"`

	Template HostPath `json:"template"` // directory mode: what the workspace was copied from
	Port     int      `json:"port"`     // SUPERQODE_PORT, the first of a block; 0: there is none
	Defaults Defaults `json:"defaults"` // what programs run in the session get when they are given nothing else

	Outputs      []string       `json:"outputs"` // patterns of files that become artifacts
	OutputLimits outputs.Limits `json:"output_limits"`

	Command     []string `json:"command"` // the last command run
	Runs        int      `json:"runs"`
	ExitCode    *int     `json:"exit_code"`
	TimedOut    bool     `json:"timed_out"`
	Limit       string   `json:"limit"`        // the limit that ended it, or ""
	Truncated   bool     `json:"truncated"`    // some run's output was cut
	ChangeCount int      `json:"change_count"` // as last collected; -1 while nobody looked
	HasFinal    bool     `json:"has_final"`    // refs/superqode/<id>/final stands
	Collected   bool     `json:"collected"`    // all that the workspace held when its digest was Final.Digest is stored
	Pinned      bool     `json:"pinned"`
	Warnings    []string `json:"warnings"`
	Tampered    []string `json:"tampered"` // state files that were changed behind the supervisor's back, and put back
}

// Overlay is a workspace that the session's programs see through a mount at another
// path, where each of them has what lies there outside. The folder Workspace holds what
// they write.
type Overlay struct {
	At    HostPath   `json:"at"`    // where they see it
	Lower []HostPath `json:"lower"` // what lies below, the topmost first
}

// Lowers are the layers as paths.
func (o *Overlay) Lowers() []string {
	list := make([]string, 0, len(o.Lower))
	for _, dir := range o.Lower {
		list = append(list, string(dir))
	}
	return list
}

// Inside is the path at which the session's programs see the workspace.
func (r *Record) Inside() HostPath {
	if r.Overlay != nil {
		return r.Overlay.At
	}
	return r.Workspace
}

// WorkspaceResult is the workspace as a result tells of it.
func (r *Record) WorkspaceResult() artifacts.Workspace {
	w := artifacts.Workspace{Path: string(r.Workspace)}
	if r.Overlay != nil {
		w.Inside = string(r.Overlay.At)
	}
	return w
}

// The steps of a session's end after which its workspace tells no more what the
// programs changed: an end that was cut short goes on from there.
const (
	StepBringBack = "bring_back" // in place: the work tree is brought back
	StepRemove    = "remove"     // the workspace is taken away
)

// RecordPath is the record of the session whose folder is sessionDir.
func RecordPath(sessionDir string) string { return filepath.Join(sessionDir, "session.json") }

// A record is held twice. The copy begins with the SHA-256 of what follows, so it
// says itself whether it is whole, and it is written first: where the two differ
// and session.json is not the later one, session.json was damaged, or its writing
// was cut short.
func copyPath(sessionDir string) string { return filepath.Join(sessionDir, "session.copy") }

// ReadRecord reads the record in a session folder, from session.json or from its
// copy, and checks that it belongs there.
func ReadRecord(sessionDir string) (*Record, error) {
	r, _, err := readRecord(sessionDir)
	return r, err
}

// readRecord also reports that session.json is not what was written.
func readRecord(sessionDir string) (r *Record, damaged bool, err error) {
	name := filepath.Base(sessionDir)
	data, err := atomicfile.Read(RecordPath(sessionDir))
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	} else {
		r, err = parseRecord(data, name)
	}
	sealed, _ := atomicfile.Read(copyPath(sessionDir)) // what cannot be read has no sum either
	sum, twin, _ := bytes.Cut(sealed, []byte("\n"))
	if bytes.Equal(twin, data) || string(sum) != sumOf(twin) {
		return r, false, err
	}
	kept, kerr := parseRecord(twin, name)
	if kerr != nil || err == nil && (r.UpdatedAt.After(kept.UpdatedAt) || same(*r, *kept)) { // written since, by who knew no copy
		return r, false, err
	}
	return kept, true, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func parseRecord(data []byte, name string) (*Record, error) {
	var r Record
	old := struct {
		*Record
		Reverting bool `json:"reverting"` // what superqode wrote before there was a step
	}{Record: &r}
	if err := json.Unmarshal(data, &old); err != nil {
		return nil, fmt.Errorf("%w: session.json: %w", ErrBroken, err)
	}
	switch {
	case old.Reverting:
		r.Step = StepBringBack
	case r.State == superqode.StateReverting && r.Step == "":
		r.Step = StepRemove
	}
	switch {
	case r.SchemaVersion > SchemaVersion:
		return nil, fmt.Errorf("%w: session.json has schema_version %d, this superqode knows %d", ErrBroken, r.SchemaVersion, SchemaVersion)
	case r.ID.String() != name:
		return nil, fmt.Errorf("%w: session.json names session %q", ErrBroken, r.ID)
	case r.State == "" || r.Mode == "":
		return nil, fmt.Errorf("%w: session.json lacks state or mode", ErrBroken)
	}
	return &r, nil
}

// RunnerID is the name of the session's agent as it was given.
func (r *Record) RunnerID() string { return cmp.Or(string(r.Runner), r.Agent.String()) }

// AgentNames are the names of those who work in the session.
func (r *Record) AgentNames() []string {
	var names []string
	if !r.Agent.IsZero() {
		names = append(names, r.RunnerID())
	}
	for _, a := range r.Agents {
		names = append(names, a.Agent.String())
	}
	return names
}

// WriteRecord replaces a session's record: after a power cut it is the old one or the
// new one. Before a point of no return its folder is to be flushed, see
// atomicfile.SyncDir. What stands in the way of session.json, or may not be read, is
// removed: its copy holds the record by then.
func WriteRecord(sessionDir string, r *Record) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if err := atomicfile.ClearWay(copyPath(sessionDir)); err != nil {
		return err
	}
	if err := atomicfile.Replace(copyPath(sessionDir), append([]byte(sumOf(data)+"\n"), data...), 0o600); err != nil {
		return err
	}
	path := RecordPath(sessionDir)
	if _, err := atomicfile.Read(path); errors.Is(err, atomicfile.ErrNotRegular) || errors.Is(err, os.ErrPermission) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return atomicfile.Whole.WriteJSON(path, r)
}

// Layers tells what guards the session, as far as it is known: the kernel layer's
// state is the weakest under which a program ran.
func (r Record) Layers() artifacts.Layers {
	l := artifacts.Layers{Shim: r.Guard.Shim, Hooks: r.Guard.Hooks, Kernel: r.Kernel}
	for _, state := range []*string{&l.Shim, &l.Hooks, &l.Kernel} {
		if *state == "" {
			*state = "unavailable: the session was opened by a superqode without this layer"
		}
	}
	return l
}

// KernelLayer says what the kernel layer was made of, none where a program ran without.
func (r Record) KernelLayer() artifacts.Kernel {
	k := artifacts.Kernel{Layer: r.KernelBy, Missing: append([]string{}, r.KernelMissing...)}
	if k.Layer == "" || r.Kernel == kernel.Off {
		k = artifacts.Kernel{Layer: kernel.None, Missing: []string{}}
	}
	return k
}
