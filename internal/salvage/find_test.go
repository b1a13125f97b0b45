package salvage

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
)

func TestPickSalvage(t *testing.T) {
	t.Parallel()
	var list []Found
	for _, id := range []string{"qe-20260101-000000-aaaaaa/1", "qe-20260101-000000-aaaaaa/12", "qe-20260202-000000-bbbaaa/1"} {
		session, n, _ := strings.Cut(id, "/")
		sid, err := superqode.ParseSessionID(session)
		if err != nil {
			t.Fatal(err)
		}
		sv := Record{Session: sid}
		number, _ := Number(n, "")
		sv.number(number)
		list = append(list, Found{Record: sv})
	}
	for name, want := range map[string]any{
		"qe-20260101-000000-aaaaaa/1": "qe-20260101-000000-aaaaaa/1",
		"aaaaaa/12":                   "qe-20260101-000000-aaaaaa/12",
		"qe-20260202":                 "qe-20260202-000000-bbbaaa/1",
		"bbbaaa/1":                    "qe-20260202-000000-bbbaaa/1",
		"refs/superqode/qe-20260101-000000-aaaaaa/salvage/1": "qe-20260101-000000-aaaaaa/1",
		"refs/superqode/qe-20260101-000000-aaaaaa/salvage/2": superqode.ErrNotFound,
		"aaa/1":      superqode.ErrUsage,
		"aaaaaa":     superqode.ErrUsage,
		"aaaaaa/":    superqode.ErrNotFound,
		"aaaaaa/01":  superqode.ErrNotFound,
		"aaaaaa/1/1": superqode.ErrNotFound,
		"/1":         superqode.ErrNotFound,
		"":           superqode.ErrNotFound,
		"zzz":        superqode.ErrNotFound,
	} {
		got, err := Pick(list, name)
		if id, ok := want.(string); ok && (err != nil || got.ID != id) {
			t.Errorf("%q: got %v, %v; want %s", name, got, err, id)
		}
		if werr, ok := want.(error); ok && !errors.Is(err, werr) {
			t.Errorf("%q: got %v, %v; want %v", name, got, err, werr)
		}
	}
}
