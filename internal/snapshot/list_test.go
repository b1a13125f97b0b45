package snapshot_test

import (
	"slices"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

func entries(paths ...superqode.RelPath) []snapshot.Entry {
	var list []snapshot.Entry
	for _, p := range paths {
		list = append(list, snapshot.Entry{Path: p, Kind: snapshot.File})
	}
	return list
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want []superqode.RelPath }{
		{nil, nil, nil},
		{[]superqode.RelPath{"a"}, nil, []superqode.RelPath{"a-"}},
		{nil, []superqode.RelPath{"a"}, []superqode.RelPath{"-a"}},
		{[]superqode.RelPath{"a", "a-b", "a/c", "d"}, []superqode.RelPath{"a", "a/b", "d", "e"}, []superqode.RelPath{"aa", "a-b-", "-a/b", "a/c-", "dd", "-e"}},
	} {
		var got []superqode.RelPath
		for x, y := range snapshot.Join(entries(c.a...), entries(c.b...)) {
			switch {
			case x == nil:
				got = append(got, "-"+y.Path)
			case y == nil:
				got = append(got, x.Path+"-")
			default:
				got = append(got, x.Path+y.Path)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q and %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
	list := entries("a", "b")
	for x := range snapshot.Join(list, nil) {
		x.Perm = 0o600
		break
	}
	if list[0].Perm != 0o600 || list[1].Perm != 0 {
		t.Errorf("%+v", list)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	s := &snapshot.Snapshot{Entries: entries("a", "a-b", "a/b", "a/b/c", "a0", "b")}
	for dir, want := range map[superqode.RelPath][]superqode.RelPath{"": {"a", "a-b", "a/b", "a/b/c", "a0", "b"}, "a": {"a/b", "a/b/c"}, "a/b": {"a/b/c"}, "b": nil, "c": nil} {
		var got []superqode.RelPath
		for _, e := range s.Below(dir) {
			got = append(got, e.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("below %q: %q", dir, got)
		}
	}
}

// What counts when two entries are compared, and what does not.
func TestSame(t *testing.T) {
	t.Parallel()
	id := snapshot.SHA1.HashBlob([]byte("x"))
	file := snapshot.Entry{Path: "f", Kind: snapshot.File, Perm: 0o644, Size: 1, ID: id, Stat: snapshot.Stat{Dev: 1, Ino: 2, Mtime: 3, Ctime: 4}}
	link := snapshot.Entry{Path: "f", Kind: snapshot.Link, Perm: 0o777, Size: 1, Link: "x"}
	unread := file
	unread.ID = snapshot.ID{}
	with := func(e snapshot.Entry, change func(*snapshot.Entry)) snapshot.Entry { change(&e); return e }
	for name, c := range map[string]struct {
		a, b                                 snapshot.Entry
		same, content, state, asFile, copied bool
	}{
		"itself":                            {file, file, true, true, true, true, true},
		"bits":                              {file, with(file, func(e *snapshot.Entry) { e.Perm = 0o600 }), false, true, true, true, true},
		"bits of a link":                    {link, with(link, func(e *snapshot.Entry) { e.Perm = 0o755 }), true, true, true, true, true},
		"target":                            {link, with(link, func(e *snapshot.Entry) { e.Link = "y" }), false, false, true, true, false},
		"contents":                          {file, with(file, func(e *snapshot.Entry) { e.ID = snapshot.SHA1.HashBlob(nil) }), false, false, true, true, true},
		"another file":                      {file, with(file, func(e *snapshot.Entry) { e.Stat.Ino++; e.Stat.Ctime++ }), true, true, false, false, true},
		"not read":                          {file, unread, true, true, true, true, true},
		"not read, changed at another time": {file, with(unread, func(e *snapshot.Entry) { e.Stat.Ctime++ }), false, false, false, true, true},
		"kind":                              {file, link, false, false, false, false, false},
	} {
		got := [5]bool{c.a.Same(&c.b), c.a.SameContent(&c.b), c.a.SameState(&c.b), c.a.SameFile(&c.b), c.a.LooksCopied(&c.b)}
		if want := [5]bool{c.same, c.content, c.state, c.asFile, c.copied}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if back := [5]bool{c.b.Same(&c.a), c.b.SameContent(&c.a), c.b.SameState(&c.a), c.b.SameFile(&c.a), c.b.LooksCopied(&c.a)}; back != got {
			t.Errorf("%s: %v the other way round", name, back)
		}
	}
}
