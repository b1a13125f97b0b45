package session

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/program"
)

// inheritRuns takes over the records of an agent's runs, with their output, under
// numbers that follow on the session's own.
func (s *Session) inheritRuns(c *Session) error {
	mark := filepath.Join(c.Folder, "runs.taken")
	if atomicfile.Exists(mark) {
		return nil
	}
	own, err := program.ReadRuns(s.Folder)
	if err != nil {
		return err
	}
	theirs, err := program.ReadRuns(c.Folder)
	if err != nil || len(theirs) == 0 {
		return err
	}
	next := 1
	for _, r := range own {
		next = max(next, r.Run+1)
	}
	for _, r := range theirs {
		from := runLog(c.Folder, r.Run)
		r.Run, r.SessionID, r.Agent = next, s.Rec.ID, c.Rec.Agent
		next++
		if err := copyLog(runLog(s.Folder, r.Run), from); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := s.AppendRun(r); err != nil {
			return err
		}
	}
	return atomicfile.Write(mark, nil, 0o600)
}

func copyLog(dst, src string) (err error) {
	in, err := atomicfile.Open(src)
	if err != nil {
		return err
	}
	defer in.Close() // read only
	return atomicfile.WriteFunc(dst, 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// runLog is the output of one run.
func runLog(dir string, run int) string {
	return filepath.Join(dir, "log", "run-"+strconv.Itoa(run)+".log")
}
