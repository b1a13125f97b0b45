package snapshot

import (
	"testing"

	"github.com/seed-2d964004/superqode"
)

// TestNameUnlike holds which files nobody reads: those that are large, and the largest
// of the others beyond MostRead, but for what may be the base's own content.
func TestNameUnlike(t *testing.T) {
	t.Parallel()
	read := SHA1.HashBlob([]byte("read"))
	file := func(path superqode.RelPath, size int64, id ID) Entry {
		return Entry{Path: path, Kind: File, Size: size, ID: id}
	}
	base := &Snapshot{Format: SHA1, Entries: []Entry{
		file("huge", LargeFile+1, read), file("touched", LargeFile, read), file("written", 1, read),
	}}
	now := &Snapshot{Format: SHA1, Entries: []Entry{
		file("a", LargeFile-1, ID{}), file("huge", LargeFile+1, ID{}), file("huger", LargeFile+2, ID{}),
		file("known", LargeFile, read), file("small", 10, ID{}), file("touched", LargeFile, ID{}), file("written", LargeFile-2, ID{}),
	}}
	for range 10 {
		now.Entries = append(now.Entries, file(superqode.RelPath("z"+string(rune('0'+len(now.Entries)))), 99<<20, ID{}))
	}
	now.NameUnlike(base)
	unread := 0
	for i := range now.Entries {
		e := &now.Entries[i]
		if e.ID.isUnlike() {
			unread++
		}
		if e.ID.isUnlike() && !e.IsLarge() {
			t.Errorf("%s was not read and is not large", e.Path)
		}
	}
	for path, want := range map[superqode.RelPath]bool{
		"a": true, "huge": false, "huger": true, "known": false, "small": false, "touched": false, "written": true,
	} {
		if got := now.Find(path).ID.isUnlike(); got != want {
			t.Errorf("%s: not to be read is %v", path, got)
		}
	}
	if unread != 3 { // 10 times 99 MiB fit
		t.Errorf("%d files are not read", unread)
	}
}
