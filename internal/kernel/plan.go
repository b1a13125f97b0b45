package kernel

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// confinement decides what a session's program may write to; has reports whether
// a tool is in the program's PATH.
func (o Options) confinement(abi int, root bool, look view, has func(tool string) bool) (Confinement, error) {
	c := Confinement{ABI: abi, NoNetwork: o.NoNetwork || o.Shared, Shared: o.Shared}
	protected := o.protected(look)
	own := append(slices.Clone(o.Own), o.Allow...)
	if o.InPlace {
		own = append(own, o.Origin)
		protected = slices.DeleteFunc(protected, func(p protectedDir) bool {
			return !p.git && superqode.Within(p.path, o.Origin)
		})
	}
	for _, path := range own {
		c.Writable = append(c.Writable, Writable{Path: path, Dir: look.kind(path) == folder, Own: true})
	}
	for _, p := range protected {
		if look.kind(p.path) == folder && (!o.InPlace || !superqode.Within(p.path, o.Origin)) {
			c.Deny = append(c.Deny, p.path)
		}
	}
	c.Deny, c.Mounts = outermost(c.Deny), o.mounted(root, look)
	if !o.Confine {
		c.open(root, protected, look)
		return c, nil
	}
	c.addNeeds(candidates(o.Env, root, look), protected, look, has)
	return c, nil
}

// open opens everything beside what is protected. Root would reach the whole machine
// through its devices and settings, and gets those that tools need.
func (c *Confinement) open(root bool, protected []protectedDir, look view) {
	if root {
		devices := slices.DeleteFunc(candidates(nil, root, look), func(n candidate) bool { return !superqode.Within(n.real, "/dev") })
		for i := range devices {
			devices[i].whole = false // of /dev/shm, too, all that is not protected
		}
		c.addNeeds(devices, protected, look, func(string) bool { return false })
		protected = slices.Concat(protected, []protectedDir{{path: "/dev"}, {path: "/proc"}, {path: "/sys"}})
	}
	c.narrow("/", protected, look)
}

// checkAllows checks again what a person allowed: mounts may have changed since.
func (o Options) checkAllows(look view) error {
	protected := o.protected(look)
	for _, path := range o.Allow {
		if err := checkAllowed(path, path, protected); err != nil {
			return err
		}
	}
	return nil
}

// protected lists what is never writable, under each of its names.
func (o Options) protected(look view) []protectedDir {
	var list []protectedDir
	add := func(git bool, what string, paths ...string) {
		for _, path := range paths {
			list = append(list, protectedDir{path, what, git})
		}
	}
	add(true, "SUPERQODE_HOME", o.Home)
	add(false, "the origin", o.Origin)
	add(true, "the origin's git directory", o.GitDirs...)
	if o.InPlace && len(o.GitDirs) > 0 { // one more mount where there is one anyway
		add(true, "superqode's folder in the origin", filepath.Join(o.Origin, ".superqode"))
	}
	add(false, "another worktree, an object store or a remote of the origin", o.Trees...)
	mounts := look.mounts()
	for _, p := range list {
		for _, name := range aliases(mounts, p.path) {
			list = append(list, protectedDir{name, p.what, p.git})
		}
	}
	return list
}

// candidate is a default with the folders of the links on the way to it.
type candidate struct {
	need
	asked, real string
	hops        []string
	wide        bool
}

// candidates resolves the table of needs for one environment.
func candidates(env []string, root bool, look view) []candidate {
	at := newPlaces(env, look)
	home, _, _ := look.resolve(at.home) // "" if there is none: nothing is above it
	var list []candidate
	for _, n := range needs(root) {
		for _, path := range at.of(n) {
			real, hops, err := look.resolve(path)
			if err != nil {
				continue
			}
			wide := real == "/" || at.home != "" && superqode.Within(home, real)
			list = append(list, candidate{n, path, real, hops, wide})
		}
	}
	return list
}

// addNeeds adds the defaults that rule 2 and rule 4 leave.
func (c *Confinement) addNeeds(list []candidate, protected []protectedDir, look view, has func(string) bool) {
	drop := func(n candidate, why string) { c.Dropped = append(c.Dropped, Dropped{n.asked, why}) }
	for _, n := range list {
		if i := slices.IndexFunc(protected, func(p protectedDir) bool {
			return superqode.Within(n.real, p.path)
		}); i >= 0 {
			drop(n, "is in "+protected[i].what)
			continue
		}
		if n.wide {
			drop(n, "holds the home folder")
			continue
		}
		if through(n, list) {
			drop(n, "is reached through a link in a folder that sessions write to")
			continue
		}
		inside := slices.ContainsFunc(protected, func(p protectedDir) bool { return superqode.Within(p.path, n.real) })
		switch k := look.kind(n.real); {
		case k == missing && n.tool != "" && has(n.tool):
			c.Make = append(c.Make, n.real)
			c.add(n.real, true)
		case k == missing:
		case inside && n.whole:
			drop(n, "holds what a session's program never writes to")
		case inside:
			drop(n, "holds what a session's program never writes to; everything beside that is writable")
			c.narrow(n.real, protected, look)
		default:
			c.add(n.real, k == folder)
		}
	}
}

// through reports whether one of the links on the way to n is in a folder that
// another default opens: a program could have put it there.
func through(n candidate, list []candidate) bool {
	return slices.ContainsFunc(n.hops, func(hop string) bool {
		return slices.ContainsFunc(list, func(o candidate) bool { return !o.wide && superqode.Within(hop, o.real) })
	})
}

func (c *Confinement) add(path string, dir bool) {
	if !slices.ContainsFunc(c.Writable, func(w Writable) bool {
		return w.Dir && superqode.Within(path, w.Path) || w.Path == path
	}) {
		c.Writable = append(c.Writable, Writable{Path: path, Dir: dir})
	}
}

// narrow opens what is in dir beside the protected folders.
func (c *Confinement) narrow(dir string, protected []protectedDir, look view) {
	if look.writable(dir) {
		c.Closed = append(c.Closed, dir)
	}
	for _, name := range look.names(dir) {
		path := filepath.Join(dir, name)
		holds := false
		covered := slices.ContainsFunc(protected, func(p protectedDir) bool {
			holds = holds || superqode.Within(p.path, path)
			return superqode.Within(path, p.path)
		})
		switch k := look.kind(path); {
		case covered || k == link || k == missing:
		case holds && k == folder:
			c.narrow(path, protected, look)
		default:
			c.add(path, k == folder)
		}
	}
}

// outermost leaves out what is inside another entry.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var out []string
	for _, p := range slices.Compact(paths) {
		if !slices.ContainsFunc(out, func(o string) bool { return superqode.Within(p, o) }) {
			out = append(out, p)
		}
	}
	return out
}

// inPath finds tools in the PATH of an environment.
func inPath(env []string, look view) func(string) bool {
	return func(tool string) bool {
		return slices.ContainsFunc(strings.Split(superqode.Getenv(env, "PATH"), ":"), func(dir string) bool {
			return filepath.IsAbs(dir) && look.kind(filepath.Join(dir, tool)) != missing
		})
	}
}
