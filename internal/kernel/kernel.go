// Package kernel is the guard's kernel layer (Linux): it keeps a session's program, and
// everything that it starts, from writing to what is protected. Reading and running are
// not restricted. Open decides before anything is done:
//
//  1. Protected are the origin's tree, its git directories, its other linked worktrees,
//     the object stores that it borrows from, its remotes on this machine, and
//     SUPERQODE_HOME around the session's own folders, under whatever name a mount
//     makes them reachable. A person's --allow-write of one of them, or of what holds
//     one, is refused. In place the origin's tree is the workspace.
//  2. Mounts come first: each protected place, and what runs later in the user's name
//     (later), is mounted over itself, read-only. All else stays writable.
//     NoNetwork adds a network namespace, Private a /tmp.
//  3. Where no mounts can be had, Landlock opens everything beside what is protected.
//     It covers no metadata, and in place it cannot take away inside the origin what
//     it gave for it.
//  4. Confine is Landlock as an allow-list, together with the mounts where they can be
//     had: the session's own folders and what tools need (needs) are writable. A
//     default that lies in what is protected is dropped; one that holds it is narrowed
//     to its other entries, or dropped. A link that a program of an earlier session
//     could have made decides nothing: a default reached through a link in a writable
//     folder is dropped.
//
// Layer.State says "active" only after a confined program has tried to write, see Open.
package kernel

import (
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode"
)

// Enforce says whether the kernel layer is used.
type Enforce string

// The choices of --enforce. The zero value is EnforceAuto.
const (
	EnforceAuto     Enforce = "auto"     // if the machine supports it
	EnforceRequired Enforce = "required" // no program runs without it
	EnforceOff      Enforce = "off"
)

// The states of the layer; unavailableState makes the third one.
const (
	Active = "active"
	Off    = "off"
)

func unavailableState(why string) string { return "unavailable: " + why }

// Layer is the result of testing the kernel layer.
type Layer struct {
	// State is Active, Off or "unavailable: " with the reason. Active means
	// that nothing of rule 1 is writable.
	State string
	// ABI is the version of Landlock in this kernel; 0 is none.
	ABI int
	// Applied means that programs are confined, though not completely if State
	// says unavailable.
	Applied bool
	// By is what holds the programs: Mounts, Landlock or None.
	By string
	// Missing are sentences on what By does not cover, or closes although it should
	// be open.
	Missing []string
	// Network says how NoNetwork is held, OwnNetwork or OnlyTCP; "" where nobody asked.
	Network string
}

// The values of Layer.By.
const (
	Mounts   = "mounts"
	Landlock = "landlock"
	None     = "none"
)

// The values of Layer.Network.
const (
	OwnNetwork = "a network namespace of the program's own"
	OnlyTCP    = "TCP alone, by Landlock"
)

// Active reports whether the layer does everything that it promises.
func (l Layer) Active() bool { return l.State == Active }

// Options are the facts that decide a session's confinement. Every path is
// absolute and free of symbolic links, except those in Env.
type Options struct {
	Enforce Enforce
	Confine bool     // --confine: only what is named is writable
	Env     []string // the program's whole environment: HOME, GOCACHE, …
	User    []string // the user's own: where shells' start files are, …
	Later   []string // what git runs and reads outside of the repository
	Home    string   // SUPERQODE_HOME

	Origin  string   // the user's work tree or directory
	InPlace bool     // the origin is the workspace
	GitDirs []string // the origin's git directories; none outside git
	Trees   []string // the origin's other linked worktrees and borrowed object stores

	// Overlay returns a mount that hangs nowhere and takes the origin's place where the
	// program runs, each time another one; nil is none. Binds are folders of the origin
	// that are still to be read then, by the folders of Own at which they appear.
	Overlay func() (*os.File, error)
	Binds   map[string]string

	Own       []string // the session's folders that its program may write
	Scratch   string   // one of Own (or below one), where the check may create and remove a folder
	Allow     []string // --allow-write
	NoNetwork bool     // no network but one of its own; by Landlock, no TCP
	Shared    bool     // no network but one that the session's programs share
	Beside    []int    // the numbers of those that are running
	Private   Private  // folders of its own at places that all share; mounts alone can give them

	// Tried is Layer.By of an earlier confinement with these options: mounts are then
	// not tried before the program is started, but still checked in it.
	Tried string

	// Helper is a program that implements ConfineCommand; "" is none, and then there
	// are no mounts.
	Helper string
}

// Writable is one file or folder that a confined program may write to.
type Writable struct {
	Path string
	Dir  bool
	// Own marks the session's folders and what a person allowed: these must
	// exist, while a default that has disappeared is left out.
	Own bool
}

// Confinement is the decision, made before anything is done.
type Confinement struct {
	ABI      int
	Writable []Writable
	// Mounts are made before anything else.
	Mounts []Mount
	// Deny are folders in which the check must fail to create something.
	Deny []string
	// Make are folders of tools to create, since they do not exist yet.
	Make      []string
	NoNetwork bool
	Shared    bool // the network is the session's
	Dropped   []Dropped
	// Closed are folders in which no name can be changed, since they hold what is
	// protected.
	Closed []string
}

// Dropped is a default that a confinement leaves out.
type Dropped struct{ Path, Why string }

// String returns one line for a log.
func (d Dropped) String() string { return d.Path + " stays read-only: it " + d.Why }

// abiWanted is the first version of Landlock that stops every write (Linux
// 6.2): version 1 does not let files move between folders, which builds need,
// and version 2 does not know truncate(2).
const (
	abiRefer    = 2
	abiTruncate = 3
	abiTCP      = 4
	abiScope    = 6
)

// stateOf says what a version of Landlock can do.
func stateOf(abi int) (state string, apply bool) {
	switch {
	case abi < abiRefer:
		return unavailableState(fmt.Sprintf("Landlock version %d (Linux 5.13 to 5.18) lets no file move between folders, version 3 (Linux 6.2) is needed", abi)), false
	case abi < abiTruncate:
		return unavailableState(fmt.Sprintf("Landlock version %d (before Linux 6.2) does not stop truncate(2); every other write is stopped", abi)), true
	}
	return Active, true
}

// AllowWrite resolves and checks one --allow-write against what must never be
// writable. The error wraps ErrUsage, or ErrNotFound when path does not exist.
func (o Options) AllowWrite(path string) (string, error) {
	look := diskView()
	real, _, err := look.resolve(path)
	if err != nil || look.kind(real) == missing {
		return "", superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "--allow-write %s: it does not exist",
			path), "mkdir %s", path)
	}
	return real, checkAllowed(path, real, o.protected(look))
}

func checkAllowed(asked, real string, protected []protectedDir) error {
	for _, p := range protected {
		if superqode.Within(real, p.path) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage,
				"--allow-write %s: it is in %s, which a session's program never writes to", asked, p.what),
				"superqode run -- CMD works on a copy; superqode workspace apply brings changes into the origin")
		}
	}
	for _, p := range protected {
		if superqode.Within(p.path, real) {
			return superqode.WithHint(superqode.Errorf(superqode.ErrUsage,
				"--allow-write %s: it holds %s (%s), which a session's program never writes to", asked, p.what, p.path),
				"name a folder in it that does not hold %s", p.path)
		}
	}
	return nil
}

// guarded is one folder that is never writable.
type protectedDir struct {
	path string
	what string // for messages
	git  bool   // what the mount has to protect if the origin is the workspace
}

// ConfineCommand is the word with which superqode starts its helper before a
// program that needs mounts of its own and is not root's:
//
//	HELPER ConfineCommand FOLDER… -- [PATH ARGV0 ARG…]
//
// The folders become read-only, then the Landlock ruleset in descriptor
// confineRules is applied, then the helper becomes the program. Without a
// program it exits with 0, which means that all of this works.
const ConfineCommand = "confined-program"

// confineRules is the descriptor of the ruleset: the first after the streams.
const confineRules = 3
