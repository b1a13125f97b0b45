// Package state knows where superqode keeps its state: below $SUPERQODE_HOME/working
// a Project for each origin, in it a folder for each session, and in that the
// session's Journal. It makes these folders and reads their names; what is in a
// session's own files is package session's business.
package state
