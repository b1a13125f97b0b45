package store

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/snaptest"
)

// A context that ended before the call ends the call, however little there is to
// do.
func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	st := testStore(t, "", snapshot.SHA1)
	s := snaptest.Scan(t, snaptest.Tree(t, map[string]string{"a": "1"}), snapshot.ScanOptions{})
	snaptest.Must(t, st.WriteBlobs(t.Context(), s.Root, s.Entries))
	id, err := superqode.ParseSessionID("qe-20260101-000000-aaaaaa")
	snaptest.Must(t, err)
	const ref = "refs/superqode/s/base"
	commit, err := st.Commit(t.Context(), ref, s, CommitOptions{When: time.Unix(1, 0)})
	snaptest.Must(t, err)
	diff := DiffOptions{Base: commit, Final: commit}
	for name, call := range map[string]func() error{
		"open":             func() error { _, err := Open(ctx, st.git, st.dir, "", st.format); return err },
		"write":            func() error { return st.WriteBlobs(ctx, s.Root, s.Entries) },
		"write nothing":    func() error { return st.WriteBlobs(ctx, s.Root, nil) },
		"commit again":     func() error { _, err := st.Commit(ctx, ref, s, CommitOptions{When: time.Unix(1, 0)}); return err },
		"copy commits":     func() error { _, err := st.CopyCommits(ctx, CopyCommits{Ref: ref, Head: commit}); return err },
		"delete ref":       func() error { return st.DeleteRef(ctx, ref) },
		"delete refs":      func() error { return st.DeleteRefs(ctx, id) },
		"rev-list":         func() error { _, err := st.RevList(ctx, nil, commit, nil); return err },
		"mails":            func() error { _, err := st.WriteMails(ctx, nil, &bytes.Buffer{}); return err },
		"diff":             func() error { return st.Diff(ctx, diff, &bytes.Buffer{}) },
		"diff-tree":        func() error { _, err := st.DiffTree(ctx, diff); return err },
		"describe nothing": func() error { _, err := st.Describe(ctx, s, s, nil); return err },
		"describe stored":  func() error { _, err := st.DescribeStored(ctx, commit, commit, nil); return err },
		"read":             func() error { return st.ReadBlob(ctx, s.Entries[0].ID, &bytes.Buffer{}) },
		"entry":            func() error { _, err := st.EntryAt(ctx, commit, "a"); return err },
		"tree":             func() error { _, err := st.Tree(ctx, commit); return err },
		"empty patch":      func() error { _, err := st.CheckApply(ctx, CheckApplyOptions{Commit: commit}); return err },
		"check out": func() error {
			return st.Checkout(ctx, CheckApplyOptions{Commit: commit, Scratch: t.TempDir()}, t.TempDir(), "")
		},
		"pack":            func() error { _, err := st.Pack(ctx, PackOptions{Now: time.Now()}); return err },
		"list refs":       func() error { _, err := st.ListRefs(ctx, ref); return err },
		"blob":            func() error { _, err := st.Blob(ctx, commit, "a"); return err },
		"missing nothing": func() error { _, err := st.Missing(ctx, nil); return err },
		"missing":         func() error { _, err := st.Missing(ctx, s.Entries); return err },
		"write ref":       func() error { return st.WriteRef(ctx, ref, commit) },
		"load":            func() error { _, err := st.LoadSnapshot(ctx, s.Entries[0].ID); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
