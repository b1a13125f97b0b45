package kernel

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/seed-2d964004/superqode"
)

// Mount is a folder or a file that is covered where only the session's programs see it,
// mostly by itself.
type Mount struct {
	Path string
	As   byte
	From string // what appears there, of one that is another or placed
}

// SocketsDir is the folder of SUPERQODE_HOME that no program sees into: who asks at a
// socket in it gets the workspace of a session.
func SocketsDir(home string) string { return filepath.Join(home, "mounts") }

// What a mount does to what it covers. None of them can be renamed or removed.
const (
	readOnly  = 'r' // with everything that is mounted in it
	writable  = 'w' // in a read-only one
	pinned    = 'p' // stays where it is, since it holds one of the others
	noDevices = 'd' // is no device
	copied    = 'c' // holds copies that belong to the program's user
	overlaid  = 'o' // is the overlay that takes the origin's place
	another   = 'a' // is another folder, read-only
	hidden    = 'h' // is empty
	placed    = 'b' // shows what lies elsewhere, or outside below another one that is placed
)

// strict are folders of files that ssh refuses to read when they belong to neither root
// nor the user (readconf.c): in a user namespace root's files are nobody's.
var strict = []string{"/etc/ssh/ssh_config.d", "/etc/crypto-policies/back-ends"}

// ReadOnly returns what mounts keep from being written.
func (c Confinement) ReadOnly() []string {
	var list []string
	for _, m := range c.Mounts {
		if m.As == readOnly {
			list = append(list, m.Path)
		}
	}
	return list
}

// later are the places in which a program leaves what runs later in the user's name
// outside of any session, or what decides what git does there: read-only where they
// exist, unless a person allows them. "~" and "@config" are as in needs.
var later = []need{
	{path: "@config/superqode"}, // it may switch the guard off
	{path: "@config/git/attributes"}, {path: "@config/git/ignore"}, {path: "@config/git/hooks"},
	{path: "~/.bashrc"}, {path: "~/.bash_profile"}, {path: "~/.bash_login"}, {path: "~/.bash_logout"},
	{path: "~/.bash_aliases"}, {path: "~/.profile"}, {path: "~/.inputrc"}, {path: "~/.kshrc"}, {path: "~/.mkshrc"},
	{vars: []string{"ZDOTDIR"}, path: "~", sub: ".zshrc"}, {vars: []string{"ZDOTDIR"}, path: "~", sub: ".zshenv"},
	{vars: []string{"ZDOTDIR"}, path: "~", sub: ".zprofile"}, {vars: []string{"ZDOTDIR"}, path: "~", sub: ".zlogin"},
	{vars: []string{"ZDOTDIR"}, path: "~", sub: ".zlogout"}, {path: "~/.cshrc"}, {path: "~/.tcshrc"}, {path: "~/.login"},
	{path: "@config/fish/config.fish"}, {path: "@config/fish/conf.d"}, {path: "@config/fish/functions"},
	{path: "@config/nushell/config.nu"}, {path: "@config/nushell/env.nu"},
	{path: "~/.xprofile"}, {path: "~/.xsession"}, {path: "~/.xsessionrc"}, {path: "~/.xinitrc"}, {path: "~/.pam_environment"},
	{path: "~/.ssh/config"}, {path: "~/.ssh/config.d"}, {path: "~/.ssh/rc"}, {path: "~/.ssh/environment"},
	{path: "~/.ssh/authorized_keys"}, {path: "~/.ssh/authorized_keys2"}, {path: "~/.ssh/id_*"},
	{path: "@config/systemd/user"}, {path: "@data/systemd/user"}, {path: "@config/environment.d"},
	{path: "@config/autostart"}, {path: "@config/autostart-scripts"}, {path: "@config/plasma-workspace/env"},
	{path: "/var/spool/cron"}, {path: "/etc/crontab"}, {path: "/etc/cron.d"},
}

// mounted decides what is mounted over itself. Own folders lie in superqode's home,
// which is read-only; everything that nothing here names stays as it is.
func (o Options) mounted(root bool, look view) []Mount {
	var list []Mount
	add := func(as byte, path string) {
		if look.kind(path) != missing && !slices.ContainsFunc(list, func(m Mount) bool { return m.Path == path }) {
			list = append(list, Mount{Path: path, As: as})
		}
	}
	closed := o.closed(look)
	for _, path := range closed {
		add(readOnly, path)
	}
	add(hidden, SocketsDir(o.Home))
	if o.Overlay != nil {
		add(overlaid, o.Origin)
		closed = append(closed, o.Origin)
		for to, from := range o.Binds {
			list = append(list, Mount{to, another, from})
		}
	}
	for _, path := range o.Own {
		if slices.ContainsFunc(closed, func(p string) bool { return superqode.Within(path, p) }) {
			add(writable, path)
		}
	}
	if root {
		add(readOnly, "/sys")
		for _, dev := range look.disks() {
			add(noDevices, dev)
		}
	}
	for _, dir := range strict {
		if !root {
			add(copied, dir)
		}
	}
	points := look.mounts()
	for _, path := range closed {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			if !slices.ContainsFunc(points, func(m mount) bool { return m.point == dir }) &&
				!slices.ContainsFunc(closed, func(p string) bool { return superqode.Within(dir, p) }) &&
				look.writable(filepath.Dir(dir)) {
				add(pinned, dir)
			}
		}
	}
	list = append(list, o.placed(look)...)
	slices.SortFunc(list, func(a, b Mount) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(b.As, a.As)) }) // what holds another one first
	return list
}

// closed returns what must be read-only and exists, without what lies in another one.
func (o Options) closed(look view) []string {
	var list []string
	for _, p := range o.protected(look) {
		inside := superqode.Within(p.path, o.Origin)
		if look.kind(p.path) != missing && !(inside && (o.Overlay != nil || o.InPlace && !p.git)) {
			list = append(list, p.path)
		}
	}
	at, places := newPlaces(o.User, look), slices.Clone(o.Later)
	for _, n := range later {
		for _, path := range at.of(n) {
			places = append(places, filepath.Join(path, n.sub))
		}
	}
	for _, path := range places {
		real, _, err := look.resolve(path)
		mine := func(dir string) bool { return superqode.Within(real, dir) }
		if err == nil && look.kind(real) != missing && !slices.ContainsFunc(o.Own, mine) &&
			!slices.ContainsFunc(o.Allow, mine) && !((o.InPlace || o.Overlay != nil) && mine(o.Origin)) {
			list = append(list, real)
		}
	}
	return outermost(list)
}
