package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/runner"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Matrix runs: a session may belong to a case and to a runner, which is its agent.
// Every attempt is a session of its own, so a retry never touches the workspace
// that an earlier one left; it is found by cases/<case>/<runner>/<session>, a link
// to the workspace in the project's folder.

// noName stands in a path for a session without a case, or without an agent.
const noName = "none"

// caseSegment makes one path segment of a case's or a runner's id.
func caseSegment(id string) string {
	if id == "" {
		return noName
	}
	return text.Segment(id, id)
}

func (s *Program) hasCase() bool { return s.Rec.Case != "" || !s.Rec.Agent.IsZero() }

// caseLink is the link that names the session's workspace by case and runner.
func (s *Program) caseLink() string {
	return filepath.Join(s.Project.Dir, "cases", caseSegment(string(s.Rec.Case)), caseSegment(s.Rec.RunnerID()),
		s.Rec.ID.String())
}

// NameWorkspace gives a workspace that was just made its ports, its place among the
// cases and its description.
func (s *Program) NameWorkspace(ctx context.Context) error {
	s.takePorts(ctx)
	return errors.Join(s.nameCase(), s.WriteWorkspaceInfo())
}

// nameCase makes the link.
func (s *Program) nameCase() error {
	if !s.hasCase() {
		return nil
	}
	link := s.caseLink()
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	err := os.Symlink(string(s.Rec.Workspace), link)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// UnnameCase removes the link, and the folders that are empty then.
func (s *Program) UnnameCase() error {
	if !s.hasCase() {
		return nil
	}
	link := s.caseLink()
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(link); dir != s.Project.Dir; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // another session's link is there
		}
	}
	return nil
}

// workspaceInfo is the content of workspace.json.
type workspaceInfo struct {
	SchemaVersion int                   `json:"schema_version"`
	SessionID     superqode.SessionID   `json:"session_id"`
	Mode          superqode.Mode        `json:"mode"`
	State         superqode.State       `json:"state"`
	Origin        state.HostPath        `json:"origin"`
	Path          state.HostPath        `json:"path"`
	Cwd           state.HostPath        `json:"cwd"`
	Template      state.HostPath        `json:"template"`
	Case          state.HostPath        `json:"case_id"`
	CaseSegment   string                `json:"case_segment"`
	Runner        state.HostPath        `json:"runner_id"`
	RunnerSegment string                `json:"runner_segment"`
	Port          int                   `json:"port"`
	Limits        []runner.Holding      `json:"limits"` // how the session's limits are held here
	Setup         []artifacts.SetupStep `json:"setup"`
	CreatedAt     time.Time             `json:"created_at"`
	EndedAt       *time.Time            `json:"ended_at"`
	ExitCode      *int                  `json:"exit_code"`
	Preserved     bool                  `json:"preserved"`
	CleanupError  string                `json:"cleanup_error"`
}

func (s *Program) workspaceInfo() workspaceInfo {
	r := &s.Rec
	info := workspaceInfo{
		SchemaVersion: state.SchemaVersion, SessionID: r.ID, Mode: r.Mode, State: r.State, Origin: r.Origin,
		Path: r.Workspace, Template: r.Template,
		Case: r.Case, Runner: state.HostPath(r.RunnerID()), Port: r.Port, CreatedAt: r.CreatedAt, ExitCode: r.ExitCode,
		Limits: []runner.Holding{}, Setup: s.SetupMasked(),
	}
	if r.Case != "" {
		info.CaseSegment = caseSegment(string(r.Case))
	}
	if !r.Agent.IsZero() {
		info.RunnerSegment = caseSegment(r.RunnerID())
	}
	if cwd, err := s.startFolder(string(r.Defaults.Cwd)); err == nil {
		info.Cwd = state.HostPath(cwd)
	} else {
		info.Cwd = r.Workspace
	}
	if held, err := CheckLimits(r.Defaults); err == nil && len(held) > 0 {
		info.Limits = held
	}
	return info
}

// WriteWorkspaceInfo describes a workspace that is there to be used. The end writes
// it anew, so this one need not outlive a power cut: opening a session waits for
// the disk often enough.
func (s *Program) WriteWorkspaceInfo() error {
	info := s.workspaceInfo()
	if info.State == superqode.StateCreated { // it is not reported before it is active
		info.State = superqode.StateActive
	}
	data, err := json.MarshalIndent(info, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Folder, state.WorkspaceFile), append(data, '\n'), 0o600)
}

// KeepWorkspaceInfo describes the workspace as the session's end leaves it; cleanup
// is what its removal said. In a matrix run the description is an artifact, too.
func (s *Program) KeepWorkspaceInfo(ctx context.Context, res *artifacts.Result) ([]artifacts.Artifact, error) {
	info := s.workspaceInfo()
	info.State, info.Preserved = res.State, res.Workspace.Preserved
	ended := s.Now().UTC()
	info.EndedAt = &ended
	if len(res.Revert.Differences) > 0 {
		info.CleanupError = res.Revert.Differences[0]
	}
	if err := atomicfile.Loose.WriteJSON(filepath.Join(s.Folder, state.WorkspaceFile), info); err != nil || !s.hasCase() {
		return nil, err
	}
	store, err := artifacts.Open(string(s.Rec.Origin))
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(info, "", " ")
	if err != nil {
		return nil, err
	}
	a, err := store.Add(ctx, artifacts.New{
		Type: artifacts.TypeSummary, Path: "evidence/" + s.Rec.ID.String() + "/" + state.WorkspaceFile,
		Description: "the workspace of the session's case and runner",
		Data:        append(data, '\n'), Session: s.Rec.ID, Agent: s.Rec.Agent,
	})
	if err != nil {
		return nil, err
	}
	return []artifacts.Artifact{a}, nil
}

// Each session has a block of ports of its own, SUPERQODE_PORT and the nine after
// it. Below $SUPERQODE_HOME/ports a symbolic link named like the block's first port
// leads to the session that has it: making a link either works or finds one there,
// so no two sessions of one home get the same block. That no other program uses the
// ports is tried by listening on them.
const (
	portBlock = 10
	firstPort = 20000 // below the ranges from which systems take ports for clients
	portSlots = 1200
)

// takePorts gives the session a block. Without one a session works as well, so
// if there is none it reports that and returns 0.
func (s *Program) takePorts(ctx context.Context) {
	port, err := blockOf(ctx, s.Host, s.Folder, s.Rec.ID)
	if err != nil {
		s.Warn(fmt.Sprintf("there is no SUPERQODE_PORT: %v", err))
	}
	s.Rec.Port = port
}

func portsPath(m *site.Host) string { return filepath.Join(m.Home, "ports") }

func blockOf(ctx context.Context, m *site.Host, sessionDir string, id superqode.SessionID) (int, error) {
	if err := os.MkdirAll(portsPath(m), 0o700); err != nil {
		return 0, err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id.String())) // never fails
	from := int(h.Sum32() % portSlots)
	for round := range 2 {
		for i := range portSlots {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			port := firstPort + (from+i)%portSlots*portBlock
			link := filepath.Join(portsPath(m), strconv.Itoa(port))
			err := os.Symlink(sessionDir, link)
			if errors.Is(err, os.ErrExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			if portsFree(port) {
				return port, nil
			}
			if err := os.Remove(link); err != nil {
				return 0, err
			}
		}
		if round == 0 {
			if err := freeStalePorts(ctx, m); err != nil {
				return 0, err
			}
		}
	}
	return 0, fmt.Errorf("all %d blocks from %d on are taken", portSlots, firstPort)
}

// freeStalePorts takes back the blocks of sessions that are gone or done, for whom
// nobody did it. The lock keeps two processes from taking back the same block when
// one of them has just given it away again.
func freeStalePorts(ctx context.Context, m *site.Host) (err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(m.Home, "ports.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	names, err := state.Names(portsPath(m))
	for _, name := range names {
		link := filepath.Join(portsPath(m), name)
		dir, lerr := os.Readlink(link)
		if lerr != nil {
			continue // given back meanwhile
		}
		l, lerr := state.Load(dir)
		if atomicfile.Exists(dir) && (lerr != nil || l.State != superqode.StateDone) {
			continue
		}
		if rerr := os.Remove(link); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// FreePorts gives the session's block back.
func (s *Program) FreePorts() error {
	if s.Rec.Port == 0 {
		return nil
	}
	link := filepath.Join(portsPath(s.Host), strconv.Itoa(s.Rec.Port))
	if dir, err := os.Readlink(link); err != nil || dir != s.Folder {
		return nil // given back before
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// portsFree tries to listen on each port of a block, which also fails where
// somebody listens on all addresses.
func portsFree(first int) bool {
	for port := first; port < first+portBlock; port++ {
		for _, host := range []string{"127.0.0.1", "::1"} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil {
				_ = l.Close() // nobody was there
			} else if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
				return false
			}
		}
	}
	return true
}
