// Package guard decides whether a git command may run.
//
// It answers two questions. Check takes the argument list of one git command,
// as a shim sees it. CheckLine takes a line of shell text, as a coding agent's
// pre-tool hook sees it, reads it with a real shell parser, follows it through
// pipes, wrappers, nested shells and one-line scripts to the git commands that it
// would run, and decides on those. Words that are not executed (commit
// messages, search patterns, prose in a here-document) are not commands.
//
// A decision goes in two steps. The command is classified into operations
// (Operation, "reset.hard"), by git's own option rules: unique prefixes, bundled
// and glued short options, "--", aliases from every configuration source. Then a
// Policy says allow or deny for each operation. The operations are data, see
// Operations.
//
// The classification is pure. What only the repository knows (is X a branch or
// a file? what does this alias stand for?) is asked of a Resolver; GitResolver
// asks the real git with the same global options, directory and environment.
// It is asked only when the words leave the answer open.
//
// What this package promises is small: it reads text. A script on disk, a
// variable from outside or a program that calls libgit2 passes with
// Certainty Unknown; hooks and the kernel layer stand behind it. When the text
// says that work is lost or history changes, the answer is a denial even if git
// would happen to fail.
package guard
