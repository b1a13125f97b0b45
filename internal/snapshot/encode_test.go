package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func sample() *Snapshot {
	return &Snapshot{Root: "/r\xff", Format: SHA1, Taken: time.Unix(5, 7), Entries: []Entry{
		{Path: "a", Kind: Dir, Perm: 0o755, Stat: Stat{1, 2, 3, 4, 5, 6, 7}},
		{Path: "a/b", Kind: File, Perm: 0o4644, Size: 3, ID: SHA1.HashBlob([]byte("abc")), Stat: Stat{1 << 63, 2, -3, 4, 5, 6, 7}},
		{Path: "a/c", Kind: Link, Perm: 0o777, Size: 1, Link: "b", ID: SHA1.HashBlob([]byte("b"))},
		{Path: "a/\xff", Kind: Other},
	}}
}

func TestSaveLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	want := sample()
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err := err; err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	data, err := os.ReadFile(path)
	if err := err; err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for _, broken := range [][]byte{data[:i], flip(data, i)} {
			if _, err := Decode(broken); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("broken at %d: %v", i, err)
			}
		}
	}
}

func flip(data []byte, i int) []byte {
	c := bytes.Clone(data)
	c[i] ^= 0x10
	return c
}

// Whatever the bytes are, decode gives an error or a snapshot that is written as
// the same bytes again.
func FuzzDecode(f *testing.F) {
	encoded := func(s *Snapshot) []byte {
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		if err := s.encode(w); err != nil {
			f.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(encoded(sample()))
	f.Add(encoded(&Snapshot{}))
	f.Add([]byte(fileMagic))
	f.Fuzz(func(t *testing.T, body []byte) {
		sealed := binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		s, err := Decode(sealed)
		if err != nil {
			return
		}
		again, err := Decode(append(encoded(s), binary.BigEndian.AppendUint32(nil, crc32.Checksum(encoded(s), crc32.MakeTable(crc32.Castagnoli)))...))
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("decoded %+v, again %+v (%v)", s, again, err)
		}
	})
}

// The digest's input is documented; this value must never change.
func TestDigestGolden(t *testing.T) {
	t.Parallel()
	s := sample()
	const want = "sha256:c996e0bbc6c4c71aa4a82152f83b60a958bb863f470e3f48f770735cd2894eeb"
	if got := digest(t, s); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	s.Entries[1].Stat = Stat{}
	s.Entries[2].Perm = 0o755
	s.Root, s.Taken = "/elsewhere", time.Unix(9, 9)
	if got := digest(t, s); got != want {
		t.Error("stat data, a link's bits, root or time count in the digest")
	}
	for name, change := range map[string]func(*Entry){
		"path": func(e *Entry) { e.Path = "a/d" }, "kind": func(e *Entry) { e.Kind = Other }, "perm": func(e *Entry) { e.Perm = 0o600 },
		"size": func(e *Entry) { e.Size++ }, "link": func(e *Entry) { e.Link = "x" }, "id": func(e *Entry) { e.ID = SHA1.HashBlob(nil) },
	} {
		s := sample()
		change(&s.Entries[1])
		if digest(t, s) == want {
			t.Errorf("%s does not count in the digest", name)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	file := func(p superqode.RelPath, data string) Entry {
		return Entry{Path: p, Kind: File, Perm: 0o644, Size: int64(len(data)), ID: SHA1.HashBlob([]byte(data))}
	}
	base := &Snapshot{Entries: []Entry{file("deleted", "d"), {Path: "dir", Kind: Dir, Perm: 0o755}, file("dir/moved", "m"), file("mode", "x"), file("mod", "1"), file("same", "s"), file("type", "t")}}
	mode := file("mode", "x")
	mode.Perm = 0o755
	final := &Snapshot{Entries: []Entry{file("created", "c"), mode, file("mod", "2"), {Path: "new", Kind: Dir, Perm: 0o755}, file("new/moved", "m"), file("new/other", "m"), file("same", "s"), {Path: "type", Kind: Link, Link: "x", Size: 1, ID: SHA1.HashBlob([]byte("x"))}}}
	sortEntries(base, final)
	want := map[superqode.RelPath]superqode.ChangeType{
		"created": superqode.ChangeCreated, "deleted": superqode.ChangeDeleted, "mod": superqode.ChangeModified, "mode": superqode.ChangeMode,
		"new/moved": superqode.ChangeRenamed, "new/other": superqode.ChangeCreated, "type": superqode.ChangeKind,
	}
	got := Compare(base, final, CompareOptions{Renames: true})
	if len(got) != len(want) {
		t.Errorf("%d changes, want %d: %+v", len(got), len(want), got)
	}
	for _, c := range got {
		if want[c.Path] != c.Type {
			t.Errorf("%s: %s, want %s", c.Path, c.Type, want[c.Path])
		}
		if c.Type == superqode.ChangeRenamed && c.OldPath.String() != "dir/moved" {
			t.Errorf("renamed from %q", c.OldPath)
		}
	}
	if n := len(Compare(base, final, CompareOptions{Dirs: true})); n != len(want)+1+2 {
		t.Errorf("%d changes with folders and without renames", n)
	}
	if n := len(Compare(base, base, CompareOptions{Dirs: true, Renames: true})); n != 0 {
		t.Errorf("%d changes against itself", n)
	}
}

func sortEntries(list ...*Snapshot) {
	for _, s := range list {
		slices.SortFunc(s.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	}
}

func digest(t *testing.T, s *Snapshot) string {
	t.Helper()
	d, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}
