// Package ignore decides which paths of a tree git ignores, see gitignore(5), in
// process: git opens every file of that name that it meets, a FIFO too, and what a
// program left behind must not keep us waiting. (go-git's matcher differs from
// git's: it also matches a folder's pattern with everything in it, and so "!/a/x"
// brings back "/a/x/x", too.)
package ignore
