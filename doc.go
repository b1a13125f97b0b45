// Package superqode holds what every other package of this module shares:
// identifiers, modes, changes and the errors that callers branch on.
//
// superqode runs a program in a session on a git repository and, when the
// program has ended, leaves the repository as it was. Two rules stand above
// every feature: nothing of the user's is lost, and nothing is claimed that was
// not checked.
//
// This package is on floor 0: it imports the standard library only. Only its
// Parse function makes an identifier, String prints it, and the zero value is
// invalid, so that nobody takes an unchecked string for one.
package superqode
