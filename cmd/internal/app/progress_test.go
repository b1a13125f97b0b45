package app

import "testing"

func TestProgressIsForPeople(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags Globals
		tty   bool
		term  string
		want  bool
	}{
		{Globals{}, true, "xterm", true},
		{Globals{}, false, "xterm", false},
		{Globals{JSON: true}, true, "xterm", false},
		{Globals{Quiet: true}, true, "xterm", false},
		{Globals{}, true, "dumb", false},
	} {
		a := New(IO{Env: []string{"TERM=" + tt.term}})
		a.Flags, a.ErrTTY = tt.flags, tt.tty
		if got := a.showsProgress(); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
