package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   []time.Duration
		want time.Duration
	}{{nil, 0}, {[]time.Duration{3}, 3}, {[]time.Duration{9, 1, 5}, 5}, {[]time.Duration{4, 1, 2, 9}, 3}} {
		if got := median(tt.in); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	ms := func(n int) []time.Duration { return []time.Duration{time.Duration(n) * time.Millisecond} }
	for _, tt := range []struct {
		ours, git int
		b         bound
		want      string
	}{
		{40, 100, bound{ratio: 0.4, holds: true}, "<= 0.40 ok"},
		{41, 100, bound{ratio: 0.4, holds: true}, "<= 0.40 MISSED"},
		{110, 100, bound{ratio: 1, slack: 10 * time.Millisecond, holds: true}, "<= 1.00 + 10ms ok"},
		{111, 100, bound{ratio: 1, slack: 10 * time.Millisecond, holds: true}, "<= 1.00 + 10ms MISSED"},
		{900, 100, bound{ratio: 1}, "9.00  -\n"},
	} {
		var out bytes.Buffer
		r := &report{out: &out}
		r.ratio("x", ms(tt.ours), ms(tt.git), tt.b)
		if !strings.Contains(out.String(), tt.want) || (r.missed == 1) != strings.Contains(tt.want, "MISSED") {
			t.Errorf("%d : %d is %q, want %q", tt.ours, tt.git, out.String(), tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	o, err := parse(&bytes.Buffer{}, []string{"-sizes", "100,200", "-only", "changes|short"})
	if err != nil || len(o.sizes) != 2 || o.sizes[1] != 200 || !o.only.MatchString("short") {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-sizes", "x"}, {"-sizes", "0"}, {"-only", "("}, {"-nope"}} {
		if _, err := parse(&bytes.Buffer{}, bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}
