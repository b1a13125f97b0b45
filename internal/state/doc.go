// Package state knows where superqode keeps its state: below $SUPERQODE_HOME/working
// a Project for each origin, and in it a folder for each session. It makes these
// folders and reads their names; what is in a session's own files is package
// session's business.
package state
