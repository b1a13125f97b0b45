// Package artifacts keeps what a session leaves behind: patches, reports,
// generated tests, logs, evidence and coverage, in
// <origin>/.superqode/qe-artifacts/, each one listed in manifest.json with its
// SHA-256 and size.
//
// Open gives the Store of an origin. Add, AddAll and Collect bring files in,
// List, Get, OpenArtifact and Verify look at them, Remove and Prune take them
// away. NewReport turns a session's Result and its findings into a quality
// report; Report writes itself as JSON and Markdown, and Store.WriteReport files
// both.
//
// # What is promised
//
//   - The manifest is changed under a lock that every process takes, by writing a
//     new file beside it, fsync and rename. N processes lose no entry, and a crash
//     leaves the old manifest or the new one.
//   - A content file is complete and on disk before the manifest names it.
//   - Fields that this version does not know survive every rewrite, at the top and
//     inside entries; entries that it cannot read are kept as they are.
//   - No symbolic link is followed, in the store or in what a program left to be
//     collected: folders are opened one component at a time through os.Root, and
//     what was opened is compared with what was looked at.
//   - A file that somebody else put in the way, or changed since it was recorded,
//     is never overwritten or removed: it is set aside or spared, and named.
//
// # What is not
//
// The store defends itself against accidents and against links, not against a
// program that rewrites both a file and the manifest: in the modes that work in
// the origin itself such a program can forge entries. Who must know compares
// with the sums in the session's own state.
package artifacts
