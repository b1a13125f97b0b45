// Package bench measures superqode beside git on generated repositories and
// compares the numbers with the bounds of the project. It is a benchmark of the go
// command, so a plain go test does not run it.
//
// It times whole processes, superqode and git by turns in one run, after a
// warm-up that does not count, and prints medians with their ratio. It asserts
// nothing: it prints a missed bound as MISSED, and -strict makes that a failure.
//
//	make bench
//	make bench BENCH='-sizes 10000 -where tmpfs -only sessions'
package bench
