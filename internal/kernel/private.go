package kernel

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Private are the folders that a session's programs see at /tmp and at XDG_RUNTIME_DIR. A
// service outside, which knows places by their paths and listens on a socket there, is out
// of their reach, as are the sockets of container engines.
type Private struct {
	Tmp, Run string
	Keep     []string // what else stays where it is
	Sockets  []string // --allow-socket: what stays all the same
}

// engines are the sockets of services that start containers, with any folder of the machine
// in them. "~" and "@run" are as in needs.
var engines = []need{
	{path: "/run/docker.sock"}, {path: "/var/run/docker.sock"}, {path: "~/.docker/run/docker.sock"}, {path: "~/.docker/desktop/docker.sock"},
	{path: "~/.rd/docker.sock"}, {path: "~/.colima/default/docker.sock"}, {path: "/run/podman/podman.sock"},
	{path: "/run/containerd/containerd.sock"}, {path: "/run/k3s/containerd/containerd.sock"}, {path: "/run/crio/crio.sock"},
	{path: "/run/buildkit/buildkitd.sock"}, {path: "/run/snap.docker/docker.sock"}, {path: "/var/snap/lxd/common/lxd/unix.socket"},
	{path: "/var/lib/incus/unix.socket"},
}

// socketVars name the socket of such a service, as unix://PATH or as a path.
var socketVars = []string{"DOCKER_HOST", "CONTAINER_HOST", "CONTAINERD_ADDRESS", "BUILDKIT_HOST", "NERDCTL_ADDRESS"}

// placed decides what the session has of its own. What lies in a folder that is covered, and
// that its programs work with, is placed in the new one, as it is for them outside.
func (o Options) placed(look view) []Mount {
	if o.Private.Tmp == "" {
		return nil
	}
	list := o.covers(look)
	covers := slices.Clone(list)
	covered := func(path string) bool {
		return slices.ContainsFunc(covers, func(m Mount) bool { return path != m.Path && superqode.Within(path, m.Path) })
	}
	kept := outermost(slices.DeleteFunc(o.kept(look), func(p string) bool { return !covered(p) || look.kind(p) == missing }))
	for _, path := range kept {
		list = append(list, Mount{Path: path, As: placed, From: path})
	}
	for _, path := range o.engines(look) {
		shown := !covered(path) || slices.ContainsFunc(kept, func(k string) bool { return superqode.Within(path, k) })
		if shown && look.kind(path) == file && !slices.Contains(o.Private.Sockets, path) {
			list = append(list, Mount{Path: path, As: placed, From: "/dev/null"})
		}
	}
	return list
}

// covers are the two folders, where they are.
func (o Options) covers(look view) (list []Mount) {
	for _, m := range []Mount{{Path: "/tmp", From: o.Private.Tmp}, {Path: superqode.Getenv(o.User, "XDG_RUNTIME_DIR"), From: o.Private.Run}} {
		for _, real := range resolved([]string{m.Path}, look) {
			if look.kind(real) == folder && !slices.ContainsFunc(list, func(c Mount) bool { return c.Path == real }) {
				list = append(list, Mount{Path: real, As: placed, From: m.From})
			}
		}
	}
	return list
}

// checkPrivate refuses to cover what the session works on.
func (o Options) checkPrivate(look view) error {
	if o.Private.Tmp == "" {
		return nil
	}
	for _, c := range o.covers(look) {
		for _, path := range slices.Concat([]string{o.Home, o.Origin}, o.GitDirs, o.Own, o.Allow) {
			if superqode.Within(c.Path, path) && c.From != path {
				return superqode.Errorf(superqode.ErrUsage, "--private-tmp would cover %s, in which the session works", path)
			}
		}
	}
	return nil
}

// kept lists what the programs of a session work with, wherever it lies. An agent for ssh
// does nothing with paths.
func (o Options) kept(look view) []string {
	list := slices.Concat([]string{o.Home, o.Origin, o.Helper}, o.GitDirs, o.Trees, o.Own, o.Allow, o.Private.Sockets, o.Private.Keep)
	list = append(list, superqode.Getenv(o.User, "HOME"), superqode.Getenv(o.Env, "HOME"), superqode.Getenv(o.Env, "SSH_AUTH_SOCK"))
	for _, dir := range filepath.SplitList(superqode.Getenv(o.Env, "PATH")) {
		list = append(list, dir)
		if base := filepath.Base(dir); base == "bin" || base == ".bin" { // of a virtual environment, of node_modules
			if prefix := filepath.Dir(dir); strings.Count(prefix, "/") > 1 {
				list = append(list, prefix)
			}
		}
	}
	return resolved(list, look)
}

func (o Options) engines(look view) []string {
	at, list := newPlaces(o.User, look), []string(nil)
	for _, n := range engines {
		list = append(list, at.of(n)...)
	}
	for _, name := range socketVars {
		list = append(list, strings.TrimPrefix(superqode.Getenv(o.Env, name), "unix://"))
	}
	return slices.Compact(slices.Sorted(slices.Values(resolved(list, look))))
}

// resolved follows the links of absolute paths and leaves out what is none.
func resolved(list []string, look view) []string {
	var out []string
	for _, path := range list {
		if real, _, err := look.resolve(path); err == nil && filepath.IsAbs(path) {
			out = append(out, real)
		}
	}
	return out
}

// AllowSocket resolves one --allow-socket. The error wraps ErrNotFound.
func (o Options) AllowSocket(path string) (string, error) {
	look := diskView()
	real, _, err := look.resolve(path)
	if err != nil || look.kind(real) != file {
		return "", superqode.Errorf(superqode.ErrNotFound, "--allow-socket %s: there is no socket", path)
	}
	return real, nil
}
