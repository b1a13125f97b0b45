package frozen_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestGroupOfTheFolderAbove holds that layers belong to the process's own group, whatever
// the folder above gives to new files: the kernel writes over nothing of another group.
func TestGroupOfTheFolderAbove(t *testing.T) {
	t.Parallel()
	group := -1
	groups, err := os.Getgroups()
	must(t, err)
	if os.Geteuid() == 0 {
		groups = append(groups, 4242)
	}
	for _, g := range groups {
		if g != os.Getegid() {
			group = g
		}
	}
	if group < 0 {
		t.Skip("this user is in one group only")
	}
	opt := options(t)
	home := filepath.Dir(opt.Dir)
	must(t, os.Chown(home, -1, group), os.Chmod(home, 0o775|os.ModeSetgid))
	must(t, os.MkdirAll(filepath.Join(opt.Top, "d/e"), 0o755), os.WriteFile(filepath.Join(opt.Top, "d/f"), nil, 0o644))
	st := current(t, opt)
	must(t, filepath.WalkDir(st.Lower[0], func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && int(info.Sys().(*syscall.Stat_t).Gid) != os.Getegid() {
			t.Errorf("%s belongs to group %d", path, info.Sys().(*syscall.Stat_t).Gid)
		}
		return err
	}))
}
