// Package mode makes, looks at, brings back and takes away the workspace of a
// session, in the way of the session's mode. Nothing outside of this package asks
// which mode a session has.
package mode
