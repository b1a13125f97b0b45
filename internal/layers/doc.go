// Package layers is the guard of one session. A Guard puts the shim and the hooks into
// the session's folder (Open), makes sure before and after each program that they are
// what they were (Seal, Unseal), asks the kernel to hold the program to what it may write
// (OpenKernel), and answers the layers while the program runs (Handle): what was refused
// is logged, and a person's allowance serves once.
//
// A Machine knows what the layers are made of on this machine: the helper that stands in
// the place of git and of git's hooks, what must be known of the user's git, and a Probe
// in a scratch repository, whose result is kept for as long as git and helper stay the
// same.
//
// What is allowed and what is denied is package guard's, what a hook's file holds is
// package hooks'.
package layers
