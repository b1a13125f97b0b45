package snapshot

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// Known answers content ids of files without reading them. Lookup is called from
// several goroutines, with an entry whose Kind, Perm, Size and Stat are those of
// the file now; it must answer only when that proves the content.
type Known interface {
	Lookup(path superqode.RelPath, e *Entry) (ID, bool)
}

// Contents says what Scan does with files whose content id nobody knows.
type Contents uint8

// The choices.
const (
	ReadUnknown Contents = iota // read and hash them
	StatOnly                    // leave their ids zero; HashMissing can fill them in later
)

// Skip reports what to leave out, with everything below it. It is called from several
// goroutines, and may keep the path.
type Skip func(path superqode.RelPath, kind Kind) bool

// ScanOptions says what Scan looks at and what it may take from elsewhere. Only
// Format must be set.
type ScanOptions struct {
	Format  Format
	Workers int // goroutines; 0 means one per processor, at most 4
	// Previous is an earlier snapshot of the same directory. Files, and targets
	// of links, that its stat data prove unchanged are taken from it, and paths
	// share its memory. The result is the same without it, only later.
	Previous *Snapshot
	Known    Known // asked for files that Previous does not know; nil knows nothing
	Skip     Skip  // nil leaves nothing out
	Contents Contents
}

// Scan records what the directory dir (an absolute path) holds, without dir
// itself. It follows no link below dir, writes nothing, and opens nothing but
// directories and, to hash them, regular files.
//
// What cannot be read is named in the problems, sorted by path, and does not
// end the scan: a file that cannot be opened, or that changed each of three
// times while it was read (ErrChangedWhileRead), keeps its entry with a zero id;
// a directory that cannot be listed keeps its entry and seems empty. The error
// is not nil only when dir itself cannot be opened or ctx has ended.
func Scan(ctx context.Context, dir string, opt ScanOptions) (*Snapshot, []Problem, error) {
	s := &Snapshot{Root: dir, Format: opt.Format, Taken: time.Now()}
	fd, err := dirfd.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("scan %s: %w", dir, err)
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading only
	w := &walker{opt: opt, root: fd}
	w.cond.L = &w.mu
	if p := opt.Previous; p != nil {
		w.prev = p.Entries
		w.out = make([]Entry, len(w.prev), len(w.prev)+len(w.prev)/64+64)
	}
	top := &walkNode{hi: int32(len(w.prev))}
	w.stack = append(w.stack, walkTask{node: top})
	workers := opt.Workers
	if workers <= 0 {
		workers = min(runtime.NumCPU(), 4)
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { newWalkWorker(w).run(ctx) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, fmt.Errorf("scan %s: %w", dir, err)
	}
	if w.topErr != nil {
		return nil, nil, fmt.Errorf("scan %s: %w", dir, w.topErr)
	}
	s.Entries, s.Gits = w.collect(top), w.gits
	SortProblems(w.problems)
	return s, w.problems, nil
}
