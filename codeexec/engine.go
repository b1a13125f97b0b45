package codeexec

import (
	"context"

	"github.com/seed-2d964004/superqode/artifacts"
)

// Manager hands out workspaces. A Registry is one.
type Manager interface {
	Acquire(ctx context.Context, id string) (*Workspace, error)
	Release(ctx context.Context, id string) error
	Close(ctx context.Context, id string) error
}

// FS brings files into a workspace and out of it.
type FS interface {
	Put(ctx context.Context, w *Workspace, files ...File) error
	StageDirectory(ctx context.Context, w *Workspace, source, to string, readOnly bool) error
	StageInputs(ctx context.Context, w *Workspace, inputs ...Input) ([]Staged, error)
	Collect(ctx context.Context, w *Workspace, patterns ...string) (*Collection, error)
	CollectOutputs(ctx context.Context, w *Workspace, spec Spec) (*Collection, error)
}

// Runner runs programs in a workspace.
type Runner interface {
	Run(ctx context.Context, w *Workspace, p Program) (Result, error)
	RunBlocks(ctx context.Context, w *Workspace, blocks []Block, more map[string][]string) ([]BlockResult, error)
	StartProgram(ctx context.Context, w *Workspace, p Program) (*ProgramSession, error)
}

// Engine is all that a code-execution service needs, in parts that it can replace or wrap.
type Engine struct {
	Manager
	FS
	Runner
	Describe func(w *Workspace) Capabilities
}

// NewEngine returns the engine of a registry: each part does what the Workspace's method of
// that name does.
func NewEngine(r *Registry) Engine {
	return Engine{r, parts{}, parts{}, (*Workspace).Describe}
}

type parts struct{}

// Put is Workspace.Put.
func (parts) Put(ctx context.Context, w *Workspace, files ...File) error {
	return w.Put(ctx, files...)
}

// StageDirectory is Workspace.StageDirectory.
func (parts) StageDirectory(ctx context.Context, w *Workspace, source, to string, readOnly bool) error {
	return w.StageDirectory(ctx, source, to, readOnly)
}

// StageInputs is Workspace.StageInputs.
func (parts) StageInputs(ctx context.Context, w *Workspace, inputs ...Input) ([]Staged, error) {
	return w.StageInputs(ctx, inputs...)
}

// Collect is Workspace.Collect.
func (parts) Collect(ctx context.Context, w *Workspace, patterns ...string) (*Collection, error) {
	return w.Collect(ctx, patterns...)
}

// CollectOutputs is Workspace.CollectOutputs.
func (parts) CollectOutputs(ctx context.Context, w *Workspace, spec Spec) (*Collection, error) {
	return w.CollectOutputs(ctx, spec)
}

// Run is Workspace.Run.
func (parts) Run(ctx context.Context, w *Workspace, p Program) (Result, error) { return w.Run(ctx, p) }

// RunBlocks is Workspace.RunBlocks.
func (parts) RunBlocks(ctx context.Context, w *Workspace, blocks []Block, more map[string][]string) ([]BlockResult, error) {
	return w.RunBlocks(ctx, blocks, more)
}

// StartProgram is Workspace.StartProgram.
func (parts) StartProgram(ctx context.Context, w *Workspace, p Program) (*ProgramSession, error) {
	return w.StartProgram(ctx, p)
}

// Capabilities say what holds for the programs of a workspace, as it was tried when its
// session was opened.
type Capabilities struct {
	Kernel      artifacts.Kernel `json:"kernel"`      // what keeps them from the rest of the machine
	Network     bool             `json:"network"`     // they reach it
	Interactive bool             `json:"interactive"` // StartProgram
	Persistent  bool             `json:"persistent"`  // the workspace outlives this process
}

// Describe returns what holds for the workspace's programs.
func (w *Workspace) Describe() Capabilities { return w.able }
