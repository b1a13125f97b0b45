// Package overlay mounts a session's workspace: read-only layers with a folder over
// them that takes what is written. The mount hangs nowhere. A small process of ours, the
// mounter, made it in namespaces of its own, and hands out copies of it as descriptors:
// one to superqode, which works in it by /proc/<pid>/fd/<n>, and one for each program's
// mounts, see kernel.Options.Overlay.
//
// The mounter belongs to no session and is no daemon: it ends when nobody holds a Mount
// any more. What runs in a session cannot ask it: it does not see the socket, see
// kernel.SocketsDir, and cannot prove that it is outside, see answer.
//
// Inside, nothing reaches the origin by itself (TestAttacks says what was tried). What is
// outside can let a program in, and nobody here can prevent that: a process that hands it
// a descriptor of the origin through a socket, or a service that knows the origin by its
// path and writes there. Therefore the origin is compared at the end of every session.
package overlay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// Layers are the folders of one overlay, absolute and free of links.
type Layers struct {
	Lower  []string // what is only read, the topmost first
	Upper  string   // what was written, as a folder
	Work   string   // the file system's own scratch, beside Upper; the boot is noted in it, too
	Socket string   // where the mounter is asked
}

var (
	// ErrBusy means that a process still has the upper folder mounted whose mounter is gone.
	ErrBusy = errors.New("another process has the workspace mounted")
	// ErrLost means that the machine was started anew before what an upper folder holds
	// was waited for, see Sync: it may lack anything.
	ErrLost = errors.New("the machine was started anew before the workspace was on the disk")
)

// MounterCommand is the word with which superqode starts its helper as a mounter:
//
//	HELPER MounterCommand SOCKET UPPER WORK LOWER…
//
// It tells on descriptor 3 that it is ready, or why not.
const MounterCommand = "overlay-mounter"

// Source is what mount tables show as an overlay's device: it tells one upper folder from
// others, and says nothing of where it is.
func Source(upper string) string {
	return fmt.Sprintf("superqode:%x", sha256.Sum256([]byte(upper)))[:26]
}

const (
	patience = 5 * time.Second // with a mount that is being taken down
	pause    = 20 * time.Millisecond
)
