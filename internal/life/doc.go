// Package life is the life of a session: open, run, collect, report, revert, remove.
//
// It is the only package that knows all others. A Manager stands for one
// SUPERQODE_HOME; a Session is one bounded piece of work on one origin. What a
// session is, and how far it came, lies in its session.json; that it lives is known
// from the flock on its lock file, never from a PID.
//
// The program in a session cannot write the session's state: it talks to the
// supervisor (the process that started it) over a unix socket. The supervisor
// puts back, and reports, whatever state file was changed behind its back while the
// program ran.
//
// Package session is the door to it for programs that import the module.
package life
