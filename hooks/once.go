package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// onceFor is how long a person's word for one operation holds.
const onceFor = 15 * time.Minute

// onceFolder holds, in an installation's state, one file for each operation that a
// person has let through once, NAME.json, and one for each that was used,
// used-PID-START.json: git calls several hooks for one command.
const onceFolder = "once"

// once is a person's word for one operation.
type once struct {
	Operation guard.Operation `json:"operation"`
	Until     time.Time       `json:"until"`
}

// AllowOnce lets the next command through that does this operation in the
// repository, or one that the name covers ("stash" covers "stash.drop"), within the
// time that it returns. The guard must be installed there.
func (i *Installer) AllowOnce(repo *git.Repo, op guard.Operation) (until time.Time, err error) {
	l := layoutOf(repo.CommonDir)
	if _, err := loadInstallation(l.state); errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "the guard is not installed in %s", repoDir(repo)), "superqode guard install, or name a session: superqode guard allow --session S --once %s", op)
	} else if err != nil {
		return time.Time{}, err
	}
	if _, err := guard.NewPolicy([]string{string(op)}, nil); err != nil {
		return time.Time{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "unknown operation %q", op), "superqode guard status --operations")
	}
	dir := filepath.Join(l.state, onceFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return time.Time{}, err
	}
	until = i.Now().Add(onceFor).UTC().Truncate(time.Second)
	return until, atomicfile.WriteJSON(filepath.Join(dir, string(op)+".json"), once{op, until})
}

// letThrough reports whether a person has let this command through, and uses that
// up. A word that was used holds for the process that used it and for those that it
// starts.
func (i *installedCall) letThrough(a *answer, s subject) bool {
	dir := filepath.Join(i.state, onceFolder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	chain := a.commands()
	for _, c := range chain {
		if slices.Contains(names, usedName(c.Process)) {
			return true
		}
	}
	outermost, ok := a.caller()
	if len(chain) > 0 {
		outermost, ok = chain[len(chain)-1].Process, true
	}
	for _, name := range names {
		op, found := strings.CutSuffix(name, ".json")
		if !found || strings.HasPrefix(name, usedPrefix) || op != string(s.verdict.Operation) && !strings.HasPrefix(string(s.verdict.Operation), op+".") {
			continue
		}
		if !ok || !valid(filepath.Join(dir, name)) {
			continue
		}
		// The rename is what uses it up: of two commands at once, one wins.
		if os.Rename(filepath.Join(dir, name), filepath.Join(dir, usedName(outermost))) == nil {
			sweepUsed(dir, names)
			return true
		}
	}
	return false
}

const usedPrefix = "used-"

func usedName(p proctable.Process) string {
	return fmt.Sprintf("%s%d-%d.json", usedPrefix, p.PID, p.Start)
}

func valid(path string) bool {
	data, err := atomicfile.Read(path)
	var o once
	return err == nil && json.Unmarshal(data, &o) == nil && time.Now().Before(o.Until)
}

// sweepUsed forgets the words whose command has ended.
func sweepUsed(dir string, names []string) {
	for _, name := range names {
		pid, start, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, usedPrefix), ".json"), "-")
		if !ok || !strings.HasPrefix(name, usedPrefix) {
			continue
		}
		n, _ := strconv.Atoi(pid)
		if p, alive := proctable.Read(n); !alive || strconv.FormatUint(p.Start, 10) != start {
			_ = os.Remove(filepath.Join(dir, name)) // the next sweep tries again
		}
	}
}
