package term

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// TestProgressLine holds that a line of progress counts and is gone afterwards.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	src, dst := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(src+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sn, _, err := snapshot.Scan(context.Background(), src, snapshot.ScanOptions{Format: snapshot.SHA1})
	if err != nil {
		t.Fatal(err)
	}
	var meter treecopy.Meter
	if _, _, err := treecopy.Copy(context.Background(), sn, dst, treecopy.CopyOptions{Existing: true, Meter: &meter}); err != nil {
		t.Fatal(err)
	}
	if done, total := meter.Count(); done != 3 || total != 3 {
		t.Errorf("the meter counts %d of %d, want 3 of 3", done, total)
	}
	for _, m := range []*treecopy.Meter{nil, {}, &meter} {
		var out bytes.Buffer
		p := &Progress{W: &out}
		p.show("making the workspace", m)
		if !strings.Contains(out.String(), "superqode: making the workspace") {
			t.Errorf("the line is %q", out.String())
		}
		if m == &meter && !strings.Contains(out.String(), "2/3") {
			t.Errorf("the line does not count: %q", out.String())
		}
		p.clear()
		last := out.String()[strings.LastIndex(strings.TrimRight(out.String(), "\r"), "\r")+1:]
		if strings.TrimSpace(strings.ReplaceAll(last, "\x1b[2K", "")) != "" {
			t.Errorf("the line stays: %q", last)
		}
	}
}
