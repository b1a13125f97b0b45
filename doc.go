// Package superqode holds the words that every other package of this module
// shares: identifiers, modes, changes and the errors that callers branch on.
//
// superqode runs a program in a session on a git repository and, when the
// program has ended, leaves the repository as it was. Two rules stand above
// every feature: nothing of the user's is lost, and nothing is claimed that was
// not checked.
//
// This package stands on floor 0 of the house: it imports the standard library
// only. Identifiers are made by their Parse functions alone, print themselves
// with String, and their zero values are invalid, so that an unchecked string
// can not be taken for one.
package superqode
