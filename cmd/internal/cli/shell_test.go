package cli_test

import "testing"

// TestShellInASession: a person's shell in a session has the terminal, and job control
// of its own.
func TestShellInASession(t *testing.T) {
	t.Parallel()
	s := openShell(t)
	s.types(t, "SHELL=$BASH; export SHELL; superqode -q workspace create --name s; superqode workspace shell -s s\r")
	s.sees(t, "in session s; exit leaves it open")
	s.types(t, "PS1='inside> '\r")
	s.sees(t, "\ninside> ")
	s.types(t, "sleep 100\r")
	s.sees(t, "sleep 100\r\n")
	s.types(t, "\x1a")
	s.sees(t, "Stopped")
	s.sees(t, "inside> ")
	s.types(t, "fg\r")
	s.sees(t, "fg\r\nsleep 100\r\n")
	s.types(t, "\x03")
	s.sees(t, "inside> ")
	s.types(t, "echo $SUPERQODE_MODE $((1+1)); exit 3\r")
	s.sees(t, "\nsnapshot 2")
	s.sees(t, "prompt> ")
	s.types(t, "echo code $?\r")
	s.sees(t, "\ncode 3")
}
