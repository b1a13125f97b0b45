package snapshot

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/dirfd"
)

// readBuffer is how much of a file is in memory at a time.
const readBuffer = 128 << 10

// fileReader hashes files, one after the other, with the same memory.
type fileReader struct {
	format Format
	hasher hash.Hash
	buf    []byte
}

// hash reads the regular file name in an open directory and records the state
// and content id that it found. It returns ErrChangedWhileRead when that was not
// one state, or the name is no regular file any more.
//
// Only what lstat called a regular file comes here. Should it have been replaced
// since, O_NOFOLLOW and O_NONBLOCK see to it that no link is followed and no
// FIFO waited for.
func (r *fileReader) hash(ctx context.Context, dir int, name string, e *Entry) error {
	var fd int
	err := dirfd.Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if err == unix.ELOOP || err == unix.ENXIO { // a link, or a socket, by now
		return ErrChangedWhileRead
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading only
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	before := Entry{Path: e.Path}
	before.fill(&st)
	if before.Kind != File {
		return ErrChangedWhileRead
	}
	if before.ID, err = r.sum(ctx, fd, before.Size); err != nil {
		return err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	after := Entry{}
	after.fill(&st)
	if before.Perm != after.Perm || !before.SameState(&after) {
		return ErrChangedWhileRead
	}
	*e = before
	return nil
}

// sum hashes an open file that has size bytes.
func (r *fileReader) sum(ctx context.Context, fd int, size int64) (ID, error) {
	if r.buf == nil {
		r.buf, r.hasher = make([]byte, readBuffer), r.format.NewBlobHash(0)
	}
	r.hasher.Reset()
	r.hasher.Write(append(strconv.AppendInt(append(r.buf[:0], "blob "...), size, 10), 0))
	for left := size; ; {
		n, err := unix.Read(fd, r.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return ID{}, err
		case n > 0 && int64(n) <= left:
			r.hasher.Write(r.buf[:n])
			left -= int64(n)
		case n > 0 || left > 0:
			return ID{}, ErrChangedWhileRead // it has grown, or shrunk
		default:
			return IDFrom(r.hasher.Sum(r.buf[:0])), nil
		}
		if left == 0 && n < len(r.buf) {
			return IDFrom(r.hasher.Sum(r.buf[:0])), nil // a short read is the end; fstat follows
		}
		if ctx.Err() != nil {
			return ID{}, context.Cause(ctx)
		}
	}
}

// HashMissing reads below s.Root the files of s whose content ids are not known
// and fills them in. A file that is in another state than s says gets the entry
// of the state that was read. Those that could not be read are named in the
// problems, sorted by path, and stay as they were; the error is not nil only
// when s.Root cannot be opened or ctx has ended.
func HashMissing(ctx context.Context, s *Snapshot) ([]Problem, error) {
	var todo []int32
	for i := range s.Entries {
		if e := &s.Entries[i]; e.ID.IsZero() && e.Kind == File {
			todo = append(todo, int32(i))
		}
	}
	if len(todo) == 0 {
		return nil, context.Cause(ctx)
	}
	root, err := dirfd.OpenRoot(s.Root)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Root, err)
	}
	defer unix.Close(root) //nolint:errcheck // opened for reading only
	const batch = 16       // files of one directory stand together, so it is opened once for some of them
	var next atomic.Int64
	var mu sync.Mutex
	var problems []Problem
	var wg sync.WaitGroup
	for range min(runtime.NumCPU(), 4, (len(todo)+batch-1)/batch) {
		wg.Go(func() {
			m := missingReader{root: root, dir: -1, snap: s, reader: fileReader{format: s.Format}}
			defer m.close()
			for from := int(next.Add(batch)) - batch; from < len(todo) && ctx.Err() == nil; from = int(next.Add(batch)) - batch {
				m.read(ctx, todo[from:min(from+batch, len(todo))])
			}
			mu.Lock()
			problems = append(problems, m.problems...)
			mu.Unlock()
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Root, err)
	}
	SortProblems(problems)
	return problems, nil
}

// missingReader is one goroutine of HashMissing. It keeps the directory of the
// last file open.
type missingReader struct {
	root, dir int
	path      superqode.RelPath // of dir
	snap      *Snapshot
	reader    fileReader
	problems  []Problem
}

func (m *missingReader) close() {
	if m.dir >= 0 {
		_ = unix.Close(m.dir) // opened for reading only
	}
	m.dir = -1
}

func (m *missingReader) read(ctx context.Context, todo []int32) {
	for _, i := range todo {
		e := &m.snap.Entries[i]
		dir, name := dirfd.Split(e.Path)
		var err error
		if m.dir < 0 || dir != m.path {
			m.close()
			m.path = dir
			m.dir, err = dirfd.OpenPath(m.root, string(dir), dirfd.DirFlags)
		}
		for try := 1; err == nil; try++ {
			err = m.reader.hash(ctx, m.dir, name, e)
			if !errors.Is(err, ErrChangedWhileRead) || try == walkTries {
				break
			}
			err = nil
		}
		if err != nil && ctx.Err() == nil {
			m.problems = append(m.problems, Problem{e.Path, err})
		}
	}
}
