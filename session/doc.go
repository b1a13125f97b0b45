// Package session runs a program on a repository and brings the repository
// back: open, run, collect, report, revert, remove.
//
// It is the only package that knows all others. A Manager stands for one
// SUPERQODE_HOME; a Session is one bounded piece of work on one origin. What a
// session is, and how far it came, lies in its session.json, and that it lives is known from the flock on its lock file, never from a PID.
//
// The program in a session cannot write the session's state: it talks to the
// supervisor (the process that started it) over a unix socket, and the
// supervisor puts back, and reports, whatever state file was changed behind its
// back while the program ran.
package session
