// Package artifacts keeps what a session leaves behind: patches, reports,
// generated tests, logs, evidence and coverage, in
// <origin>/.superqode/qe-artifacts/, each one listed in manifest.json with its
// SHA-256 and size.
//
// Open returns the Store of an origin. Add, AddAll and AddEach add files; List, Get,
// Read, OpenArtifact and Verify read and check them; Remove and Prune delete them.
// NewReport makes a quality report of a session's Result and its findings, as data:
// Report.JSON is what qr-*.json holds, and ParseReport reads it back.
//
// # What is promised
//
//   - A change of the manifest holds a lock that every process takes, writes a new
//     file in the same folder, syncs it and renames it. N processes lose no entry,
//     and a crash leaves the old manifest or the new one.
//   - A content file is complete and on disk before the manifest names it.
//   - Fields that this version does not know survive every rewrite, at the top and
//     inside entries; entries that it cannot read are kept as they are.
//   - The store follows no symbolic link: it opens folders one component at a time
//     through os.Root, and compares what it opened with what it saw before.
//   - The store never overwrites or removes a file that someone else put in its
//     place, or changed since it was recorded: it renames the file or leaves it,
//     and names it in the problems.
//
// # What is not
//
// The store protects against accidents and against links, not against a program
// that rewrites both a file and the manifest: where a session works in the origin
// itself, such a program can forge entries. To detect that, compare with the sums
// in the session's own state.
package artifacts
