package supervisor

import (
	"os"
	"testing"
)

func TestDescends(t *testing.T) {
	t.Parallel()
	if !Descends(os.Getpid(), os.Getpid()) || !Descends(os.Getpid(), os.Getppid()) {
		t.Error("a process descends from itself and from its parent")
	}
	if Descends(os.Getppid(), os.Getpid()) {
		t.Error("a parent descends from no child")
	}
}
