// Package workspace gives programs, and the agents that they run, a bounded directory.
//
//	dir, err := workspace.Open("/srv/agent/job-7") // made if it is missing
//	files := workspace.Scoped(dir,
//		workspace.WithAllowWrite("src/**", "out/**"),
//		workspace.WithMandatoryDeny("**/.env", ".git/**"))
//	err = files.Write(ctx, "src/main.go", code)
//	list, err := workspace.Glob(ctx, files, "**/*.go")
//
// FS is the API. Dir is a directory of this machine, Mem a tree in memory, Sub a part of
// another FS, and Scoped one with rules; one conformance suite holds all four to the same
// behaviour, that of os and io/fs where there is a doubt. AtomicWrite, Copy, Walk and Glob
// work on every FS, and IOFS lets standard tools read one.
//
// # What is promised
//
// No path leads out of a Dir or a Sub: not "..", not a link, and not a link that another
// process swaps while a call runs. A Dir goes through an os.Root, and where rules have to
// know where a path leads, through directories that it opens one by one and compares with
// what it saw. The rules of Scoped hold for the calls of its FS only. A program that runs
// in the directory (see Runner) is a process of its user, and reads and writes what that
// user may.
//
// # Whose words
//
// A missing file is superqode.ErrNotFound and fs.ErrNotExist, a path that leaves the
// workspace ErrPathTraversal, and a rule's refusal ErrAccessDenied; *Error has the
// operation, the path and the rule. What this machine cannot do is ErrNotAvailable, and
// never done by halves.
package workspace
