package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
)

// TestSummaryIsShort holds the block that ends a session to its size, and to
// text that a terminal only shows.
func TestSummaryIsShort(t *testing.T) {
	t.Parallel()
	id, err := superqode.ParseSessionID("qe-20260101-000000-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	res := &artifacts.Result{SessionID: id, Mode: superqode.ModeWorktree, Origin: "/or\x1bigin", ExitCode: 1, Workspace: artifacts.Workspace{Path: "/w\x1b", Preserved: true}}
	for i := range 1000 {
		p, err := superqode.ParseRelPath(fmt.Sprintf("evil\x1b]0;%d", i))
		if err != nil {
			t.Fatal(err)
		}
		res.Changes = append(res.Changes, superqode.Change{Path: p, Type: superqode.ChangeCreated, LinesAdded: 1})
	}
	patch, err := superqode.ParseRelPath("patches/x.patch")
	if err != nil {
		t.Fatal(err)
	}
	res.Artifacts = []artifacts.Ref{{Type: artifacts.TypePatch, Path: patch}}
	var out bytes.Buffer
	if err := Terminal(&out, res, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n > 20 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("escapes in %q", out.String())
	}
}
