package hooks

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/overlay"
)

// MonitorToken stands in the index of a session's own git directory in an overlay. With
// it git's question is answered by what the overlay's upper folder holds: whatever git
// found clean under this token, and is not named then, is as git found it. To every other
// monitor it is a token that it does not know, or the beginning of time.
const MonitorToken = "0:superqode"

// touched answers version 2 of git's question what has changed. It names every tracked
// path of which the upper folder could know, however long ago it changed: a folder is in
// there from the moment on that something in it is written, made or deleted, and stays
// there. What was made and deleted again leaves no other trace; therefore all tracked
// files of such a folder are named, whether the upper folder has them or not.
//
// Nothing but the lower layers, which nobody changes, decides about what is not named. On
// any doubt the answer is that everything may have changed.
func (a *answer) touched() string {
	top := ""
	if a.st != nil && a.st.Private != nil && a.st.Private.Overlay != "" {
		top = filepath.Dir(string(a.st.Private.Dir))
	}
	if top == "" || a.repo.GitDir != string(a.st.Private.Dir) || realPath(a.Dir) != top || superqode.Getenv(a.Env, "GIT_INDEX_FILE") != "" ||
		!overlay.Shows(string(a.st.Private.Overlay), top, filepath.Join(top, ".superqode")) {
		return fsmonitorReply2
	}
	if len(a.Args) < 2 || a.Args[1] != MonitorToken {
		return MonitorToken + "\x00/\x00"
	}
	index, err := git.ReadIndex(a.st.Private.Index(), a.st.Private.ObjectFormat)
	if err != nil || index.Sparse {
		return fsmonitorReply2
	}
	t := &upperWalk{index: index, upper: string(a.st.Private.Overlay), top: top}
	t.reply.WriteString(MonitorToken + "\x00")
	if err := t.folder("", 0, index.Len()); err != nil {
		return fsmonitorReply2
	}
	return t.reply.String()
}

// upperWalk walks the tracked folders that an overlay's upper folder has.
type upperWalk struct {
	index *git.Index
	upper string
	top   string // what the overlay shows
	reply strings.Builder
}

// folder names what may have changed below a folder that the upper one has, "" or ending
// in a slash, in which the entries from from to to lie.
func (t *upperWalk) folder(dir superqode.RelPath, from, to int) error {
	for i := from; i < to; {
		path := t.index.Path(i)
		slash := strings.IndexByte(string(path[len(dir):]), '/')
		if slash < 0 {
			t.name(i, i+1)
			i++
			continue
		}
		sub := path[:len(dir)+slash]
		after := sub + "0" // the byte after the slash
		end := i + sort.Search(to-i, func(k int) bool { return t.index.Path(i+k) >= after })
		deeper, all, err := t.look(sub)
		switch {
		case err != nil:
			return err
		case all:
			t.name(i, end)
		case deeper:
			if err := t.folder(sub+"/", i, end); err != nil {
				return err
			}
		}
		i = end
	}
	return nil
}

// look reports of a folder with tracked files whether the upper folder has it, too, and
// whether it is gone. Of one that took the place of a lower one, whose folders are gone, the
// upper folder has whatever is there.
func (t *upperWalk) look(sub superqode.RelPath) (deeper, all bool, err error) {
	var st unix.Stat_t
	switch err := unix.Lstat(sub.In(t.upper), &st); {
	case err == nil: // a folder; or deleted, or something else by now
		dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		return dir, !dir, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, false, err
	}
	err = unix.Lstat(sub.In(t.top), &st)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, true, nil // it was made, and deleted again
	}
	return false, false, err
}

func (t *upperWalk) name(from, to int) {
	for i := from; i < to; i++ {
		t.reply.WriteString(string(t.index.Path(i)))
		t.reply.WriteByte(0)
	}
}
