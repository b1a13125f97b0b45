package merge

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// testFiles is a directory by path: each file in the words of testEntry.
type testFiles map[superqode.RelPath]string

// A file in these tables is one word: contents, "*" at its end for the x bit,
// "->" before a link's target, "DIR" for a folder, "FIFO" for one, "" for
// nothing there.
func testEntry(path superqode.RelPath, spec string) *snapshot.Entry {
	e := &snapshot.Entry{Path: path, Kind: snapshot.File, Perm: 0o644}
	switch {
	case spec == "":
		return nil
	case spec == "DIR":
		e.Kind, e.Perm = snapshot.Dir, 0o755
		return e
	case spec == "FIFO":
		e.Kind = snapshot.Other
		return e
	case strings.HasPrefix(spec, "->"):
		e.Kind, e.Perm, e.Link = snapshot.Link, 0, spec[2:]
		return e
	case strings.HasSuffix(spec, "*"):
		e.Perm, spec = 0o755, strings.TrimSuffix(spec, "*")
	}
	e.Size, e.ID = int64(len(spec)), snapshot.SHA1.HashBlob([]byte(spec))
	return e
}

func testTree(files testFiles) *snapshot.Snapshot {
	sn := &snapshot.Snapshot{Format: snapshot.SHA1}
	dirs := map[superqode.RelPath]bool{}
	for path, spec := range files {
		if e := testEntry(path, spec); e != nil {
			sn.Entries = append(sn.Entries, *e)
		}
		for dir := path.Parent(); dir != ""; dir = dir.Parent() {
			if !dirs[dir] && files[dir] == "" {
				dirs[dir] = true
				sn.Entries = append(sn.Entries, *testEntry(dir, "DIR"))
			}
		}
	}
	sort.Slice(sn.Entries, func(i, k int) bool { return sn.Entries[i].Path < sn.Entries[k].Path })
	return sn
}

// testMerge knows three texts: m1 and m2 both changed from m and merge to m12;
// anything else conflicts; bin… is binary.
func testMerge(base, ours, theirs *snapshot.Entry) (snapshot.Entry, bool, bool, error) {
	id := func(s string) snapshot.ID { return snapshot.SHA1.HashBlob([]byte(s)) }
	switch {
	case base.ID == id("broken"):
		return snapshot.Entry{}, false, false, errors.New("broken")
	case base.ID == id("bin"):
		return snapshot.Entry{}, false, true, nil
	case base.ID == id("m") && ours.ID != theirs.ID && (ours.ID == id("m1") || ours.ID == id("m12")) && theirs.ID == id("m2"):
		return snapshot.Entry{ID: id("m12"), Size: 3}, true, false, nil
	}
	return snapshot.Entry{}, false, false, nil
}

// testSimilar finds what begins alike similar.
func testSimilar(base, now *snapshot.Entry) (bool, error) {
	for _, b := range []string{"a", "b", "c", "m", "m1", "m2", "m12"} {
		if id := snapshot.SHA1.HashBlob([]byte(b)); id == base.ID {
			for _, n := range []string{b + "1", b + "2", b + "12"} {
				if snapshot.SHA1.HashBlob([]byte(n)) == now.ID {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// change is "path: old => new" or "old path, new path: old => new".
func testChange(s string) Change {
	names, sides, _ := strings.Cut(s, ": ")
	from, to, renamed := strings.Cut(names, ", ")
	if !renamed {
		to = from
	}
	old, fresh, _ := strings.Cut(sides, "=>")
	return Change{Old: testEntry(superqode.RelPath(from), strings.TrimSpace(old)), New: testEntry(superqode.RelPath(to), strings.TrimSpace(fresh))}
}

// describe is the inverse: what the step does.
func (s *Step) describe() string {
	if s.Conflict != nil {
		return "CONFLICT " + string(s.Conflict.Kind) + " " + string(s.Conflict.Path)
	}
	var out []string
	if s.Remove != nil {
		out = append(out, "remove "+string(s.Remove.Path))
	}
	if e := s.Put; e != nil {
		what := "put"
		if s.Bits {
			what = "bits"
		}
		if s.Merged {
			what = "merged"
		}
		content := "->" + e.Link
		if e.Kind == snapshot.File {
			content = "?"
			for _, known := range []string{"a", "b", "c", "m", "m1", "m2", "m12", "bin"} {
				if e.ID == snapshot.SHA1.HashBlob([]byte(known)) {
					content = known
				}
			}
			content += fmt.Sprintf(" %03o", e.Perm)
		}
		out = append(out, what+" "+string(e.Path)+" "+content)
	}
	if len(out) == 0 {
		return "already"
	}
	return strings.Join(out, ", ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		changes string    // separated by ";"
		now     testFiles // the origin
		want    string
	}{
		// made
		{"made", "f: => a", nil, "put f a 644"},
		{"made, there", "f: => a", testFiles{"f": "a"}, "already"},
		{"made, another there", "f: => a", testFiles{"f": "b"}, "CONFLICT add/add f"},
		{"made, other bit", "f: => a", testFiles{"f": "a*"}, "CONFLICT add/add f"},
		{"made, link there", "f: => a", testFiles{"f": "->x"}, "CONFLICT add/add f"},
		{"made, fifo there", "f: => a", testFiles{"f": "FIFO"}, "CONFLICT add/add f"},
		{"link made", "f: => ->x", nil, "put f ->x"},
		{"link made, there", "f: => ->x", testFiles{"f": "->x"}, "already"},
		{"link made, another there", "f: => ->x", testFiles{"f": "->y"}, "CONFLICT add/add f"},
		{"made, empty folder there", "f: => a", testFiles{"f": "DIR"}, "put f a 644"},
		{"made, empty folders there", "f: => a", testFiles{"f": "DIR", "f/g/h": "DIR"}, "put f a 644"},
		{"made, full folder there", "f: => a", testFiles{"f/x": "a"}, "CONFLICT file/directory f"},
		{"made, fifo in the folder there", "f: => a", testFiles{"f/x": "FIFO"}, "CONFLICT file/directory f"},
		{"made below", "d/e/f: => a", nil, "put d/e/f a 644"},
		{"made below a file", "d/f: => a", testFiles{"d": "a"}, "CONFLICT file/directory d/f"},
		{"made below a link", "d/f: => a", testFiles{"d": "->x"}, "CONFLICT link d/f"},
		{"made below a link further up", "d/e/f: => a", testFiles{"d": "->x"}, "CONFLICT link d/e/f"},
		{"made below a fifo", "d/f: => a", testFiles{"d": "FIFO"}, "CONFLICT file/directory d/f"},
		// deleted
		{"deleted", "f: a =>", testFiles{"f": "a"}, "remove f"},
		{"deleted, gone", "f: a =>", nil, "already"},
		{"deleted, edited", "f: a =>", testFiles{"f": "b"}, "CONFLICT modify/delete f"},
		{"deleted, bit changed", "f: a =>", testFiles{"f": "a*"}, "CONFLICT modify/delete f"},
		{"deleted, folder now", "f: a =>", testFiles{"f/x": "a"}, "already"},
		{"deleted, link now", "f: a =>", testFiles{"f": "->x"}, "CONFLICT modify/delete f"},
		{"deleted, folder above is a link now", "d/f: a =>", testFiles{"d": "->x"}, "already"},
		{"link deleted", "f: ->x =>", testFiles{"f": "->x"}, "remove f"},
		{"link deleted, changed", "f: ->x =>", testFiles{"f": "->y"}, "CONFLICT modify/delete f"},
		// edited
		{"edited", "f: a => b", testFiles{"f": "a"}, "put f b 644"},
		{"edited, the same there", "f: a => b", testFiles{"f": "b"}, "already"},
		{"edited, gone", "f: a => b", nil, "CONFLICT modify/delete f"},
		{"edited, folder now", "f: a => b", testFiles{"f/x": "a"}, "CONFLICT distinct types f"},
		{"edited, link now", "f: a => b", testFiles{"f": "->a"}, "CONFLICT distinct types f"},
		{"edited, fifo now", "f: a => b", testFiles{"f": "FIFO"}, "CONFLICT distinct types f"},
		{"edited, below a link now", "d/f: a => b", testFiles{"d": "->x"}, "CONFLICT modify/delete d/f"},
		{"both edited", "f: m => m2", testFiles{"f": "m1"}, "merged f m12 644"},
		{"both edited, merged before", "f: m => m2", testFiles{"f": "m12"}, "already"},
		{"both edited, conflict", "f: a => b", testFiles{"f": "c"}, "CONFLICT content f"},
		{"both edited, binary", "f: bin => b", testFiles{"f": "c"}, "CONFLICT binary f"},
		{"binary, one side", "f: bin => b", testFiles{"f": "bin"}, "put f b 644"},
		{"link changed", "f: ->x => ->y", testFiles{"f": "->x"}, "put f ->y"},
		{"link changed alike", "f: ->x => ->y", testFiles{"f": "->y"}, "already"},
		{"link changed otherwise", "f: ->x => ->y", testFiles{"f": "->z"}, "CONFLICT content f"},
		// bits
		{"bit set", "f: a => a*", testFiles{"f": "a"}, "bits f a 755"},
		{"bit set, set", "f: a => a*", testFiles{"f": "a*"}, "already"},
		{"bit set, edited", "f: a => a*", testFiles{"f": "b"}, "bits f b 755"},
		{"bit taken", "f: a* => a", testFiles{"f": "b*"}, "bits f b 644"},
		{"edit, bit set there", "f: a => b", testFiles{"f": "a*"}, "put f b 755"},
		{"edit and bit, edit there", "f: a => b*", testFiles{"f": "b"}, "bits f b 755"},
		{"edit and bit, gone", "f: a => b*", nil, "CONFLICT modify/delete f"},
		{"merge and bit", "f: m => m2*", testFiles{"f": "m1"}, "merged f m12 755"},
		{"bit, gone", "f: a => a*", nil, "CONFLICT modify/delete f"},
		// types
		{"file to link", "f: a => ->x", testFiles{"f": "a"}, "put f ->x"},
		{"file to link, done", "f: a => ->x", testFiles{"f": "->x"}, "already"},
		{"file to link, edited", "f: a => ->x", testFiles{"f": "b"}, "CONFLICT distinct types f"},
		{"file to link, gone", "f: a => ->x", nil, "CONFLICT modify/delete f"},
		{"link to file", "f: ->x => a*", testFiles{"f": "->x"}, "put f a 755"},
		{"file to folder", "f: a =>; f/x: => b", testFiles{"f": "a"}, "remove f; put f/x b 644"},
		{"file to folder, edited", "f: a =>; f/x: => b", testFiles{"f": "c"}, "CONFLICT modify/delete f; CONFLICT file/directory f/x"},
		{"folder to file", "f: => a; f/x: b =>", testFiles{"f/x": "b"}, "put f a 644; remove f/x"},
		{"folder to file, more in it", "f: => a; f/x: b =>", testFiles{"f/x": "b", "f/mine": "c"}, "CONFLICT file/directory f; remove f/x"},
		{"folder to file, folder in it", "f: => a; f/x: b =>", testFiles{"f/x": "b", "f/empty": "DIR"}, "put f a 644; remove f/x"},
		{"link to folder", "d: ->x =>; d/f: => a", testFiles{"d": "->x"}, "remove d; put d/f a 644"},
		{"link to folder, other link", "d: ->x =>; d/f: => a", testFiles{"d": "->y"}, "CONFLICT modify/delete d; CONFLICT link d/f"},
		// renames
		{"renamed", "f, g: a => a", testFiles{"f": "a"}, "remove f, put g a 644"},
		{"renamed with edit", "f, g: a => b", testFiles{"f": "a"}, "remove f, put g b 644"},
		{"renamed, edited there", "f, g: a => a", testFiles{"f": "c"}, "remove f, put g c 644"},
		{"renamed, bit there", "f, g: a => a", testFiles{"f": "a*"}, "remove f, put g a 755"},
		{"renamed with bit", "f, g: a => a*", testFiles{"f": "b"}, "remove f, put g b 755"},
		{"renamed with edit, edited there", "f, g: m => m2", testFiles{"f": "m1"}, "remove f, merged g m12 644"},
		{"renamed with edit, conflict", "f, g: a => b", testFiles{"f": "c"}, "CONFLICT content g"},
		{"renamed, deleted there", "f, g: a => b", nil, "CONFLICT rename/delete g"},
		{"renamed, folder there", "f, g: a => b", testFiles{"f/x": "a"}, "CONFLICT rename/delete g"},
		{"renamed, link there", "f, g: a => b", testFiles{"f": "->a"}, "CONFLICT distinct types g"},
		{"renamed, done", "f, g: a => b", testFiles{"g": "b"}, "already"},
		{"renamed, done with other edits", "f, g: m => m2", testFiles{"g": "m1"}, "merged g m12 644"},
		{"renamed, done with edits only here", "f, g: m => m2", testFiles{"g": "m"}, "put g m2 644"},
		{"renamed, done and edited since", "f, g: m => m", testFiles{"g": "m1"}, "already"},
		{"renamed with bit, done and edited since", "f, g: m => m*", testFiles{"g": "m1"}, "bits g m1 755"},
		{"renamed, done with edits in the way", "f, g: a => b", testFiles{"g": "a1"}, "CONFLICT content g"},
		{"link renamed, done", "f, g: ->x => ->x", testFiles{"g": "->x"}, "already"},
		{"link renamed, another there", "f, g: ->x => ->x", testFiles{"g": "->y"}, "CONFLICT rename/delete g"},
		{"renamed, something else there", "f, g: m => m2", testFiles{"g": "c"}, "CONFLICT rename/delete g"},
		{"renamed, deleted there, another there", "f, g: a => a", testFiles{"g": "c"}, "CONFLICT rename/delete g"},
		{"renamed, copied there", "f, g: a => a", testFiles{"f": "a", "g": "a"}, "remove f"},
		{"renamed, another there", "f, g: a => a", testFiles{"f": "a", "g": "c"}, "CONFLICT rename/add g"},
		{"renamed, empty folder there", "f, g: a => a", testFiles{"f": "a", "g": "DIR"}, "remove f, put g a 644"},
		{"renamed into its name", "f, f/f: a => a", testFiles{"f": "a"}, "remove f, put f/f a 644"},
		{"renamed out of its name", "f/f, f: a => a", testFiles{"f/f": "a"}, "remove f/f, put f a 644"},
		{"renamed out, more there", "f/f, f: a => a", testFiles{"f/f": "a", "f/x": "b"}, "CONFLICT file/directory f"},
		{"link renamed", "f, g: ->x => ->x", testFiles{"f": "->x"}, "remove f, put g ->x"},
		{"link renamed, changed there", "f, g: ->x => ->x", testFiles{"f": "->y"}, "remove f, put g ->y"},
		{"renamed below a link", "f, d/g: a => a", testFiles{"f": "a", "d": "->x"}, "CONFLICT link d/g"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var changes []Change
			for s := range strings.SplitSeq(tt.changes, "; ") {
				changes = append(changes, testChange(s))
			}
			steps, err := (&Decider{Now: testTree(tt.now), Merge: testMerge, Similar: testSimilar}).Decide(changes)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range steps {
				s := &steps[i]
				got = append(got, s.describe())
				if c := s.Conflict; c != nil && (s.Put != nil || s.Remove != nil || !strings.HasPrefix(c.Message, "CONFLICT (")) {
					t.Errorf("a conflict with something to do, or without a message: %+v", s)
				}
			}
			if g := strings.Join(got, "; "); g != tt.want {
				t.Errorf("got  %s\nwant %s", g, tt.want)
			}
		})
	}
	if _, err := (&Decider{Now: testTree(testFiles{"f": "c"}), Merge: testMerge, Similar: testSimilar}).Decide([]Change{testChange("f: broken => b")}); err == nil {
		t.Error("a merge that could not be made was passed over")
	}
}

// Bits that the session may not bring along, and those that it did not touch.
func TestDecideBits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base, final, origin uint32
		want                uint32
	}{
		{0o644, 0o600, 0o644, 0o600},
		{0o644, 0o755, 0o600, 0o711}, // what the session set is set; what the origin took stays taken
		{0o644, 0o4755, 0o644, 0o755},
		{0o664, 0o664, 0o640, 0o640},
		{0o755, 0o644, 0o4755, 0o644}, // of the file's nine bits; package swap keeps the others when only bits change
	} {
		c := testChange("f: a => a")
		c.Old.Perm, c.New.Perm = tt.base, tt.final
		now := testTree(testFiles{"f": "a"})
		now.Entries[0].Perm = tt.origin
		steps, err := (&Decider{Now: now, Merge: testMerge, Similar: testSimilar}).Decide([]Change{c})
		if err != nil {
			t.Fatal(err)
		}
		got := tt.origin
		if steps[0].Put != nil {
			got = steps[0].Put.Perm
		}
		if got&0o777 != tt.want {
			t.Errorf("%o → %o on %o: %o, want %o", tt.base, tt.final, tt.origin, got, tt.want)
		}
	}
	if c := testChange("f: => a"); c.New != nil {
		c.New.Perm = 0o6755
		steps, err := (&Decider{Now: testTree(nil)}).Decide([]Change{c})
		if err != nil || steps[0].Put.Perm != 0o755 {
			t.Errorf("a set-id bit came along: %v, %v", steps, err)
		}
	}
}

// The plan's order lets every step find what it needs.
func TestPlanSwap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		changes string
		now     testFiles
		others  superqode.RelPath // folders with something that was not looked at
		keep    string
		want    string
	}{
		{"folders made", "a/b/f: => a; a/g: => b", nil, "", "", "mkdir a; mkdir a/b; put a/b/f in .; put a/g in ."},
		{"folder there", "a/b/f: => a", testFiles{"a": "DIR"}, "", "", "mkdir a/b; put a/b/f in a"},
		{"emptied folders go", "a/b/f: a =>", testFiles{"a/b/f": "a"}, "", "", "remove a/b/f in .; rmdir? a/b; rmdir? a"},
		{"not those with more in them", "a/b/f: a =>", testFiles{"a/b/f": "a"}, "a", "", "remove a/b/f in a; rmdir? a/b"},
		{"not those with empty folders", "a/b/f: a =>", testFiles{"a/b/f": "a", "a/b/e": "DIR"}, "", "", "remove a/b/f in a/b"},
		{"not those with new files", "a/b/f: a =>; a/b/g: => b", testFiles{"a/b/f": "a"}, "", "", "remove a/b/f in a/b; put a/b/g in a/b"},
		{"not those with new folders", "a/b/f: a =>; a/c/g: => b", testFiles{"a/b/f": "a"}, "", "", "remove a/b/f in a; rmdir? a/b; mkdir a/c; put a/c/g in a"},
		{"not where the caller stands", "a/b/f: a =>", testFiles{"a/b/f": "a"}, "", "a/b", "remove a/b/f in a/b"},
		{"nor above", "a/b/f: a =>", testFiles{"a/b/f": "a"}, "", "a", "remove a/b/f in a; rmdir? a/b"},
		{"renamed out", "a/f, g: a => a", testFiles{"a/f": "a"}, "", "", "remove a/f in .; rmdir? a; put g in ."},
		{"file to folder", "f: a =>; f/x: => b", testFiles{"f": "a"}, "", "", "remove f in .; mkdir f; put f/x in ."},
		{"file to folder, deep", "d/f: a =>; d/f/x/y: => b", testFiles{"d/f": "a"}, "", "", "remove d/f in d; mkdir d/f; mkdir d/f/x; put d/f/x/y in d"},
		{"folder to file", "f: => a; f/x/y: b =>", testFiles{"f/x/y": "b"}, "", "", "remove f/x/y in .; rmdir f/x; rmdir f; put f in ."},
		{"folder to file, empty folders in it", "f: => a; f/x: b =>", testFiles{"f/x": "b", "f/e/e": "DIR"}, "", "", "remove f/x in .; rmdir f/e/e; rmdir f/e; rmdir f; put f in ."},
		{"file into a folder of its name", "f, f/f: a => a", testFiles{"f": "a"}, "", "", "remove f in .; mkdir f; put f/f in ."},
		{"bits", "f: a => a*", testFiles{"f": "a"}, "", "", "chmod f"},
		{"replaced", "f: a => b; l: ->x => ->y", testFiles{"f": "a", "l": "->x"}, "", "", "replace f in .; replace l in ."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var changes []Change
			for s := range strings.SplitSeq(tt.changes, "; ") {
				changes = append(changes, testChange(s))
			}
			view := &View{Now: testTree(tt.now), others: map[superqode.RelPath]bool{tt.others: true}}
			steps, err := (&Decider{Now: view.Now, Merge: testMerge, Similar: testSimilar}).Decide(changes)
			if err != nil {
				t.Fatal(err)
			}
			plan := Plan(view, steps, tt.keep)
			if err := plan.Check(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range plan.Steps {
				word := string(s.Op)
				if s.Op == "put" && s.Was != nil {
					word = "replace"
				}
				if s.Optional {
					word += "?"
				}
				word += " " + string(s.Path)
				if s.Op == "put" || s.Op == "remove" {
					side := string(s.Side)
					if side == "" {
						side = "."
					}
					word += " in " + side
				}
				got = append(got, word)
			}
			if g := strings.Join(got, "; "); g != tt.want {
				t.Errorf("got  %s\nwant %s", g, tt.want)
			}
		})
	}
}

// A new folder can be entered by those who may read what is in it.
func TestNewFolderBits(t *testing.T) {
	t.Parallel()
	view := &View{Now: testTree(nil), others: map[superqode.RelPath]bool{}}
	changes := []Change{testChange("a/secret: => a"), testChange("b/c/open: => a"), testChange("b/secret: => b"), testChange("d/link: => ->x"), testChange("e/group: => a")}
	changes[0].New.Perm, changes[2].New.Perm, changes[4].New.Perm = 0o600, 0o600, 0o664
	steps, err := (&Decider{Now: view.Now}).Decide(changes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range Plan(view, steps, "").Steps {
		if s.Op == "mkdir" {
			got = append(got, fmt.Sprintf("%s %o", s.Path, s.Perm))
		}
	}
	if want := []string{"a 700", "b 755", "b/c 755", "d 755", "e 775"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
