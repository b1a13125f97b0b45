// Package report renders a session's report in the forms that people and other
// tools look at. Whatever stands in a report came from a session, and is data:
// each renderer has one place where a string becomes part of its output, and
// makes it harmless and visible there.
package report
