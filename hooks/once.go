package hooks

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/internal/installation"
	"github.com/seed-2d964004/superqode/internal/proctable"
)

// letThrough reports whether a person has let this command through, and uses that
// up. A word that was used holds for the process that used it and for those that it
// starts.
func (i *installedCall) letThrough(a *answer, s subject) bool {
	dir := filepath.Join(i.state, installation.OnceFolder)
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
		if !found || strings.HasPrefix(name, usedPrefix) || op != string(s.verdict.Operation) &&
			!strings.HasPrefix(string(s.verdict.Operation), op+".") {
			continue
		}
		if !ok || !installation.Holds(filepath.Join(dir, name)) {
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

func usedName(p proctable.Process) string { return usedPrefix + p.Name() + ".json" }

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
