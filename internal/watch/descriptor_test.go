package watch

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// TestRootIsADescriptor: a mount that hangs nowhere has no other name.
func TestRootIsADescriptor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	both(t, func(t *testing.T, opt Options) {
		dir, err := os.Open(opt.Root)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		real := opt.Root
		if opt.Root, err = os.Readlink("/proc/self"); err != nil {
			t.Fatal(err)
		}
		opt.Root = fmt.Sprintf("/proc/%s/fd/%d", opt.Root, dir.Fd())
		if err := os.Mkdir(real+"/sub", 0o755); err != nil {
			t.Fatal(err)
		}
		w := begin(t, opt)
		w.write("a", "x")
		w.write("sub/b", "x")
		w.want("created a", "created sub/b")
	})
}
