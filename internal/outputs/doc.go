// Package outputs selects the files that a session was asked to give back.
//
//	sel, err := outputs.Select(ctx, outputs.Options{
//		Roots:    outputs.Roots{Workspace: ws, Output: out, Artifacts: staging},
//		Patterns: []string{"dist/**/*.{js,css}", "$OUTPUT_DIR/report.json"},
//	})
//
// A pattern is one of doublestar: `*` stays within a folder, `**` does not,
// `{a,b}` are alternatives. A pattern without any of these that names a folder, or
// one that ends in "/", stands for all files below it. It counts from the
// workspace unless it begins with a folder's name: $WORKSPACE, $OUTPUT_DIR or
// $ARTIFACT_DIR, also as ${OUTPUT_DIR} and with SUPERQODE_ before it.
//
// The files were written by a program that nobody trusts. Select opens
// everything through an os.Root: it never follows a link that leads out of its
// folder, but lists it with the reason, like everything that is not a regular
// file. The files are sorted by path; limits cut the list at its end, and the
// Selection says so.
package outputs
