package mode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot"
	"github.com/seed-2d964004/superqode/internal/state"
)

// A sixthKind stands for a mode that is yet to be written: one type, one entry.
type sixthKind struct{ copyKind }

const sixth superqode.Mode = "sixth"

func (sixthKind) Check(_ context.Context, _ *site.Host, _ *site.Origin, opt Options) (Options, error) {
	return opt, checkCopy(opt)
}

func (sixthKind) Make(ctx context.Context, s *site.Site, opt Options) ([]snapshot.Entry, error) {
	return fillCopy(ctx, s, opt, func(unread []snapshot.Problem) (*snapshot.Snapshot, []snapshot.Problem, error) {
		return s.OriginBase, unread, nil
	})
}

// TestSixthKind takes a mode that is known by one entry in the table through the
// life of a session: checked, made, looked at, taken away, the origin compared.
func TestSixthKind(t *testing.T) {
	old := kinds
	t.Cleanup(func() { kinds = old })
	kinds = append(kinds[:len(kinds):len(kinds)], sixthKind{copyKind{plain{Facts{Mode: sixth, Restores: true, Making: "making the sixth"}}}})

	ctx, dir := context.Background(), t.TempDir()
	origin := filepath.Join(dir, "origin")
	write(t, filepath.Join(origin, "a.txt"), "one\n")
	h := &site.Host{Home: filepath.Join(dir, "home"), Now: time.Now, Tell: func(string) {}}
	o := &site.Origin{Top: origin, Format: "sha1"}
	if _, err := Check(ctx, h, o, Options{Mode: sixth, From: "HEAD"}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("--from HEAD: %v, want ErrUsage", err)
	}
	opt, err := Check(ctx, h, o, Options{Mode: sixth})
	if err != nil || opt.Mode != sixth || opt.From != FromWorking {
		t.Fatalf("Check = %+v, %v", opt, err)
	}
	p := h.ProjectOf(o)
	if err := p.Create(o.Key(), time.Now()); err != nil {
		t.Fatal(err)
	}
	id := superqode.NewSessionID(time.Now())
	s := &site.Site{Host: h, Project: p, Source: o, Folder: p.SessionPath(id.String()), Rec: state.Record{
		ID: id, Mode: sixth, Origin: state.HostPath(origin), Workspace: state.HostPath(p.WorkspacePath(id.String())), ObjectFormat: "sha1",
	}}
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	k := For(sixth)
	if missing, err := k.Make(ctx, s, opt); err != nil || len(missing) != 1 {
		t.Fatalf("Make = %v, %v, want one entry to store", missing, err)
	}
	if err := SaveBase(ctx, s); err != nil {
		t.Fatal(err)
	}
	if s.OriginBase != nil {
		t.Error("a list of the whole origin stays in memory while the session's programs run")
	}
	write(t, filepath.Join(string(s.Rec.Workspace), "b.txt"), "two\n")
	l, err := LookRaw(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if l.Final.Find("a.txt") == nil || l.Final.Find("b.txt") == nil || l.Base.Find("b.txt") != nil {
		t.Errorf("the look found %v, the base has %v", l.Final.Entries, l.Base.Entries)
	}
	if err := TakeAway(ctx, s, false); err != nil {
		t.Fatal(err)
	}
	if gone, err := WorkspaceGone(s); err != nil || gone == "" {
		t.Errorf("after the removal: %q, %v", gone, err)
	}
	if err := TakeAway(ctx, s, false); err != nil {
		t.Errorf("a second removal: %v", err)
	}
	if diffs, err := k.Origin(ctx, s, nil); err != nil || len(diffs.Differences) > 0 {
		t.Errorf("the origin differs: %q, %v", diffs.Differences, err)
	}
}

// TestFacts holds what the rest of the program relies on.
func TestFacts(t *testing.T) {
	for _, tt := range []struct {
		mode                                   superqode.Mode
		inPlace, restores, workTree, exclusive bool
	}{
		{superqode.ModeWorktree, false, true, true, false},
		{superqode.ModeSnapshot, false, true, false, false},
		{superqode.ModeGitSnapshot, true, true, true, true},
		{superqode.ModeDirectory, false, true, false, false},
		{superqode.ModeShared, true, false, true, false},
		{superqode.ModeAuto, false, false, false, false},
		{"", false, false, false, false},
	} {
		f := Of(tt.mode)
		if f.InPlace != tt.inPlace || f.Restores != tt.restores || f.WorkTree != tt.workTree || f.Exclusive() != tt.exclusive {
			t.Errorf("%q: %+v", tt.mode, f)
		}
	}
	for _, m := range superqode.Modes() {
		if For(m).About().Mode != m && m != superqode.ModeAuto {
			t.Errorf("%s has no entry in the table", m)
		}
	}
	if _, err := Check(context.Background(), &site.Host{}, &site.Origin{Format: "sha1"}, Options{Mode: "unheard-of"}); !errors.Is(err, superqode.ErrUsage) {
		t.Errorf("an unknown mode: %v, want ErrUsage", err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
