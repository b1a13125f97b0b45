package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// Reopen gives the owner back the right to use superqode's home, the project's own
// folders and its lock, which a session's program can take away where no kernel layer
// holds it. Only modes are changed, through open folders; no link is followed.
func (p Project) Reopen() error {
	working := filepath.Dir(p.Dir)
	project := filepath.Join(filepath.Base(working), filepath.Base(p.Dir))
	names := []string{"", filepath.Base(working), project}
	for _, name := range []string{"project.json", "lock", "sessions", "qe", "leases", "leases.lock", "trash", "store.git"} {
		names = append(names, filepath.Join(project, name))
	}
	return Reopen(superqode.RealPrefix(filepath.Dir(working)), names...)
}

// ReopenSession is Reopen for the folder of a session and what tells of it.
func ReopenSession(dir string) error {
	err := errors.Join(Project{Dir: filepath.Dir(filepath.Dir(dir))}.Reopen(), Reopen(dir, ""))
	names, nerr := Names(dir)
	return errors.Join(err, nerr, Reopen(dir, names...))
}

// ReopenTree is Reopen for a folder with all that is in it.
func ReopenTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, Reopen(filepath.Dir(path), filepath.Base(path)))
	})
}

// Reopen gives the owner the right to use names below dir, "" for dir itself, in that
// order. What is not there, or no file and no folder, is passed over.
func Reopen(dir string, names ...string) error {
	parent, err := dirfd.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil // nothing of ours closed it
	}
	defer unix.Close(parent)
	for _, name := range names {
		folder, last := dirfd.Split(filepath.Join(filepath.Base(dir), name))
		in, oerr := dirfd.OpenPath(parent, folder, dirfd.PassFlags)
		if oerr != nil {
			continue
		}
		err = errors.Join(err, reopenAt(in, last))
		_ = unix.Close(in) // opened to be looked into only
	}
	return err
}

func reopenAt(dir int, name string) error {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil
	}
	var need uint32
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		need = 0o700
	case unix.S_IFREG:
		need = 0o600
	}
	if uint32(st.Mode)&need == need {
		return nil
	}
	return dirfd.Chmod(dir, name, os.FileMode(uint32(st.Mode)&0o777|need))
}
