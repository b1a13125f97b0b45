package coordinator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

func owner(name string) Owner {
	id, err := superqode.ParseAgentID(name)
	if err != nil {
		panic(err)
	}
	return Owner{Agent: id}
}

func at(seconds int) moment {
	return moment{wall: time.Unix(int64(seconds), 0).UTC(), boot: "b", up: time.Duration(seconds) * time.Second}
}

// show prints what is held and who waits, sorted.
func show(b *book) string {
	var out []string
	for _, l := range b.Leases {
		out = append(out, l.Agent.String()+"="+l.Target.String())
	}
	slices.Sort(out)
	for _, w := range b.Waiters {
		state := "?"
		if !w.pending() {
			state = "!"
		}
		out = append(out, w.Agent.String()+state+targetList(w.Targets))
	}
	return strings.Join(out, " ")
}

// TestBook plays scripts: "alice a:1-2" asks at once, "alice? a" waits if it must,
// "alice- a" releases, and " no" expects a refusal.
func TestBook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, script, want string }{
		{"apart", "alice a:10-20; bob a:50-60", "alice=a:10-20 bob=a:50-60"},
		{"overlap", "alice a:10-20; bob a:15-25 no", "alice=a:10-20"},
		{"extends", "alice a:10-20; alice a:15-30", "alice=a:10-30"},
		{"adjacent", "alice a:10-20; alice a:21-30", "alice=a:10-30"},
		{"bridges", "alice a:10-20; alice a:30-40; alice a:18-31", "alice=a:10-40"},
		{"whole swallows", "alice a:10-20; alice a", "alice=a"},
		{"extends into another's", "alice a:10-20; bob a:21-30; alice a:15-25 no", "alice=a:10-20 bob=a:21-30"},
		{"part released", "alice a:10-20; alice- a:14-16", "alice=a:10-13 alice=a:17-20"},
		{"released by name", "alice a:10-20; alice a:30-40; alice- a", ""},
		{"released by folder", "alice s/a:10-20; alice s/b; alice- s/", ""},
		{"folder stays", "alice s/; alice- s/a no", "alice=s/"},
		{"another's release", "alice a; bob- a no", "alice=a"},
		{"waits and gets", "alice a; bob? a; alice- a", `bob=a bob!a`},
		{"first come", "alice a; bob? a; carol? a; alice- a", `bob=a bob!a carol?a`},
		{"no overtaking", "alice a:1-10; bob? a:5-20; carol a:15-18 no", "alice=a:1-10 bob?a:5-20"},
		{"compatible passes", "alice a:1-10; bob? a:5-20; carol a:30-40", "alice=a:1-10 carol=a:30-40 bob?a:5-20"},
		{"renewal passes", "alice a:1-10; bob? a; alice a:2-5", "alice=a:1-10 bob?a"},
		{"growing does not", "alice a:1-10; bob? a; alice a:5-15 no", "alice=a:1-10 bob?a"},
		{"circle of two", "alice a; bob b; alice? b; bob? a no", "alice=a bob=b alice?b"},
		{"circle of three", "alice a; bob b; carol c; alice? b; bob? c; carol? a no", "alice=a bob=b carol=c alice?b bob?c"},
		{"no circle", "alice a; bob b; alice? b; carol? a", "alice=a bob=b alice?b carol?a"},
		{"all or nothing", "alice a; bob b,a no; carol b", "alice=a carol=b"},
	} {
		b := &book{}
		for step := range strings.SplitSeq(tt.script, "; ") {
			play(t, b, tt.name, step)
			check(t, b)
		}
		if got := show(b); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func play(t *testing.T, b *book, name, step string) {
	t.Helper()
	words := strings.Fields(step)
	who := strings.TrimRight(words[0], "?-")
	r := Request{Owner: owner(who)}
	for text := range strings.SplitSeq(words[1], ",") {
		r.Targets = append(r.Targets, target(t, text))
	}
	ok := true
	switch {
	case strings.HasSuffix(words[0], "-"):
		ok = len(b.release(r.Owner, r.Targets)) > 0
	default:
		_, conflict, err := b.request(&r, at(1))
		if err != nil {
			t.Fatal(err)
		}
		ok = conflict == nil
		if strings.HasSuffix(words[0], "?") && conflict != nil {
			ticket, circle, _ := b.enqueue(r, at(1))
			ok = ticket != 0
			if !ok && (len(circle) == 0 || circle[0].From != r.Owner || circle[len(circle)-1].To != r.Owner) {
				t.Errorf("%s: %q: circle %v", name, step, circle)
			}
		}
	}
	b.promote(at(1))
	if refused := len(words) > 2; ok == refused {
		t.Errorf("%s: %q: granted %v", name, step, ok)
	}
}

// check holds the laws of a book.
func check(t *testing.T, b *book) {
	t.Helper()
	for i, l := range b.Leases {
		if l.Fence == 0 || l.Fence > b.Fence {
			t.Fatalf("fence %d of %d", l.Fence, b.Fence)
		}
		for _, m := range b.Leases[:i] {
			if l.Owner != m.Owner && l.Target.Overlaps(m.Target) {
				t.Fatalf("%s of %s overlaps %s of %s", l.Target, l.Owner, m.Target, m.Owner)
			}
		}
	}
	for i := range b.Waiters {
		w := &b.Waiters[i]
		if i > 0 && w.Ticket <= b.Waiters[i-1].Ticket {
			t.Fatal("the queue is out of order")
		}
		if held, ahead := b.obstacles(&w.Request, w.Ticket); w.pending() && len(held)+len(ahead) == 0 {
			t.Fatalf("ticket %d waits for nobody", w.Ticket)
		}
	}
	for i := range b.Waiters { // nobody waits for himself through others
		w := b.Waiters[i]
		if !w.pending() {
			continue
		}
		rest := &book{Leases: b.Leases, Waiters: slices.Delete(slices.Clone(b.Waiters), i, len(b.Waiters))}
		if circle := rest.circle(&w.Request); circle != nil {
			t.Fatalf("a circle stands: %s", circleText(circle))
		}
	}
}

func randomTarget(r *rand.Rand) Target {
	switch r.IntN(12) {
	case 0:
		return Target{KindDir, "d", Lines{}}
	case 1:
		return Target{KindGlob, "d/*.go", Lines{}}
	case 2:
		return Target{KindFile, "a", Lines{}}
	case 3:
		return Target{KindFile, "d/x.go", Lines{}}
	}
	start := 1 + r.IntN(40)
	return Target{KindFile, []string{"a", "d/x.go", "d/y"}[r.IntN(3)], Lines{start, start + r.IntN(12)}}
}

// FuzzBook plays random requests, waits, releases, ends of time and deaths; the
// laws hold after each, fences only grow, and whoever waits alone is served.
func FuzzBook(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(200))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := &book{}
		for step := range int(steps % 400) {
			now, o, fence := at(step), owner(fmt.Sprintf("a%d", r.IntN(5))), b.Fence
			q := Request{Owner: o, Targets: []Target{randomTarget(r)}, TTL: time.Duration(r.IntN(3)) * 10 * time.Second}
			if r.IntN(4) == 0 {
				q.Targets = append(q.Targets, randomTarget(r))
			}
			b.expire(now)
			switch r.IntN(8) {
			case 0, 1, 2:
				if _, conflict, _ := b.request(&q, now); conflict == nil && b.Fence != fence+uint64(len(q.Targets)) {
					t.Fatal("a grant without a number of its own")
				}
			case 3, 4:
				if _, conflict, _ := b.request(&q, now); conflict != nil {
					_, _, _ = b.enqueue(q, now)
				}
			case 5:
				b.release(o, q.Targets)
			case 6:
				b.release(o, []Target{{KindDir, ".", Lines{}}})
			case 7:
				if len(b.Waiters) > 0 {
					b.leave(b.Waiters[r.IntN(len(b.Waiters))].Ticket, r.IntN(2) == 0)
				}
			}
			b.promote(now)
			if b.Fence < fence {
				t.Fatal("the fence went back")
			}
			check(t, b)
		}
		for range 10 * (len(b.Waiters) + 1) { // when owners release, everybody gets his turn
			for i := range 5 {
				b.release(owner(fmt.Sprintf("a%d", i)), []Target{{KindDir, ".", Lines{}}})
			}
			b.promote(at(1 << 20))
			check(t, b)
		}
		for _, w := range b.Waiters {
			if w.pending() {
				t.Fatalf("ticket %d was never served", w.Ticket)
			}
		}
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	b := &book{}
	r := Request{Owner: owner("alice"), Targets: []Target{{KindFile, "a", Lines{}}}, TTL: 10 * time.Second}
	if _, c, err := b.request(&r, at(100)); c != nil || err != nil {
		t.Fatal(c, err)
	}
	for _, tt := range []struct {
		name string
		now  moment
		gone bool
	}{
		{"before", at(109), false},
		{"at the end", at(110), true},
		{"the wall's clock put forward", moment{at(9000).wall, "b", 105 * time.Second}, false},
		{"and back", moment{at(1).wall, "b", 110 * time.Second}, true},
		{"another start of the machine", moment{at(109).wall, "c", time.Second}, false},
		{"another start, later", moment{at(110).wall, "c", time.Second}, true},
	} {
		if got := b.Leases[0].expired(tt.now); got != tt.gone {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	r.TTL = time.Second // asking again makes nothing shorter
	if _, _, err := b.request(&r, at(101)); err != nil || len(b.Leases) != 1 || b.Leases[0].expired(at(109)) {
		t.Errorf("%v %+v", err, b.Leases)
	}
	r.TTL = 0
	if _, _, err := b.request(&r, at(102)); err != nil || b.Leases[0].expired(at(1<<30)) {
		t.Errorf("%v %+v", err, b.Leases)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	claim := Lines{10, 20}
	for _, tt := range []struct {
		edit             Lines
		overlaps, covers bool
	}{
		{Lines{10, 20}, true, true}, {Lines{15, 16}, true, true}, {Lines{9, 10}, true, false}, {Lines{21, 22}, false, false},
		{Lines{10, 9}, false, true}, {Lines{11, 10}, true, true}, {Lines{20, 19}, true, true}, {Lines{21, 20}, false, true}, {Lines{22, 21}, false, false},
		{Lines{}, true, false},
	} {
		if got := claim.Overlaps(tt.edit); got != tt.overlaps {
			t.Errorf("%v overlaps %v: %v", claim, tt.edit, got)
		}
		if got := claim.Covers(tt.edit); got != tt.covers {
			t.Errorf("%v covers %v: %v", claim, tt.edit, got)
		}
	}
}
