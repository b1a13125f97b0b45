package session

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/state"
)

// KernelOptions say what is asked of the guard's kernel layer.
type KernelOptions struct {
	Enforce    kernel.Enforce // "" is kernel.EnforceAuto when a session is opened, and what it was opened with later
	AllowWrite []string       // absolute: what the program may write to beside the session's own folders
	NoNetwork  bool           // no TCP
}

// checkKernel decides what the session's programs will be held to, and tries it,
// before anything is made of the origin.
func (s *Session) checkKernel(opt KernelOptions) error {
	rec := &s.Rec
	if rec.Enforce = opt.Enforce; rec.Enforce == "" {
		rec.Enforce = kernel.EnforceAuto
	}
	rec.NoNetwork = opt.NoNetwork
	o := s.kernelOptions(KernelOptions{}, s.Env)
	var err error
	if rec.AllowWrite, err = allowWrite(o, opt.AllowWrite); err != nil {
		return err
	}
	o.Allow, o.Own = hostPaths(rec.AllowWrite), []string{s.ArtifactDir(), o.Scratch} // there is no workspace yet
	k, err := kernel.Open(o)
	if err != nil {
		return err
	}
	rec.Kernel, rec.GitReadOnly = k.Layer.State, rec.CommonDir != "" && k.GuardsGit()
	return k.Close()
}

// openKernel prepares the kernel layer for one program; close it.
func (s *Session) openKernel(opt KernelOptions, env []string) (*kernel.Confiner, error) {
	o := s.kernelOptions(opt, env)
	more, err := allowWrite(o, opt.AllowWrite)
	if err != nil {
		return nil, err
	}
	o.Allow = append(o.Allow, hostPaths(more)...)
	k, err := kernel.Open(o)
	if err != nil {
		return nil, err
	}
	for _, d := range k.Plan.Dropped {
		s.Log.Debug().Stringer("session", s.Rec.ID).Msg(d.String())
	}
	return k, nil
}

func (s *Session) kernelOptions(opt KernelOptions, env []string) kernel.Options {
	rec := &s.Rec
	o := kernel.Options{
		Enforce: opt.Enforce, Env: env, Home: superqode.RealPrefix(s.Home), Origin: string(rec.Origin), InPlace: rec.Mode.InPlace(),
		Own: []string{s.ArtifactDir(), filepath.Join(s.Folder, "tmp")}, Scratch: filepath.Join(s.Folder, "tmp"),
		Allow: hostPaths(rec.AllowWrite), NoNetwork: rec.NoNetwork || opt.NoNetwork,
	}
	if o.Enforce == "" {
		o.Enforce = rec.Enforce
	}
	if o.InPlace {
		o.Helper, _ = s.m.Helper() // without one .git needs root's right to mount
	}
	if !o.InPlace {
		o.Own = append(o.Own, string(rec.Workspace))
	}
	for i, dir := range o.Own {
		o.Own[i] = superqode.RealPrefix(dir)
	}
	o.Scratch = superqode.RealPrefix(o.Scratch)
	if rec.CommonDir != "" {
		o.GitDirs = slices.Compact([]string{string(rec.CommonDir), string(rec.GitDir)})
		o.Trees = relatedTrees(string(rec.CommonDir), string(rec.Origin))
	}
	return o
}

// allowWrite checks what a person allows.
func allowWrite(o kernel.Options, asked []string) ([]state.HostPath, error) {
	list := []state.HostPath{}
	for _, path := range asked {
		real, err := o.AllowWrite(path)
		if err != nil {
			return nil, err
		}
		list = append(list, state.HostPath(real))
	}
	return list, nil
}

func hostPaths(list []state.HostPath) []string {
	out := make([]string, 0, len(list))
	for _, p := range list {
		out = append(out, string(p))
	}
	return out
}

// relatedTrees returns the other work trees of a repository, those of sessions
// left out, and the object stores that it borrows from.
func relatedTrees(commonDir, origin string) []string {
	var list []string
	add := func(path string) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != origin {
			list = append(list, real)
		}
	}
	if filepath.Base(commonDir) == ".git" {
		add(filepath.Dir(commonDir))
	}
	admins, _ := state.Names(filepath.Join(commonDir, "worktrees")) // none, mostly
	for _, name := range admins {
		if _, err := superqode.ParseSessionID(name); err == nil {
			continue // lies in SUPERQODE_HOME, which is guarded whole
		}
		if file := readLine(filepath.Join(commonDir, "worktrees", name, "gitdir")); file != "" {
			add(filepath.Dir(under(filepath.Join(commonDir, "worktrees", name), file)))
		}
	}
	objects := filepath.Join(commonDir, "objects")
	for line := range strings.Lines(readLine(filepath.Join(objects, "info", "alternates"))) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			add(under(objects, line))
		}
	}
	return list
}
