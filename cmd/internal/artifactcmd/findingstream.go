package artifactcmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/text"
)

const (
	maxFinding = 1 << 20   // bytes of one line of stdin
	batchBytes = 256 << 10 // a request to the supervisor holds at most 1 MiB, a finding alone nearly that
	batchSize  = 200
)

// findingStream adds the findings of a stream in batches and remembers which
// lines were none.
type findingStream struct {
	a     *app.App
	to    findingAdder
	lines []int
	raws  []json.RawMessage
	bytes int
	added int
	bad   []badFinding
}

// badFinding is a line that was left out.
type badFinding struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// addStream adds every line that is a finding; the others are named.
func addStream(ctx context.Context, a *app.App, to findingAdder) error {
	s := &findingStream{a: a, to: to}
	in := bufio.NewReaderSize(a.In, 64<<10)
	for n := 1; ; n++ {
		line, long, err := readLine(in, maxFinding-1024)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(s.flush(ctx), err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		line = bytes.TrimSpace(line)
		switch {
		case long:
			s.refuse(n, "longer than "+text.Size(maxFinding-1024))
		case len(line) > 0 && !json.Valid(line):
			var v any
			s.refuse(n, "not JSON: "+json.Unmarshal(line, &v).Error())
		case len(line) > 0:
			if ferr := s.take(ctx, n, line); ferr != nil {
				return ferr
			}
		}
		if err != nil { // the end
			return s.finish(ctx)
		}
	}
}

// readLine returns a line without its end; one that is longer than limit is read
// to its end and dropped.
func readLine(in *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), long, err
		}
	}
}

func (s *findingStream) refuse(line int, why string) {
	s.bad = append(s.bad, badFinding{line, why})
	s.a.Warn(fmt.Sprintf("line %d: %s", line, why))
}

func (s *findingStream) take(ctx context.Context, n int, text []byte) error {
	if s.bytes+len(text) > batchBytes || len(s.raws) == batchSize {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.lines, s.raws, s.bytes = append(s.lines, n), append(s.raws, bytes.Clone(text)), s.bytes+len(text)
	return nil
}

func (s *findingStream) flush(ctx context.Context) error {
	if len(s.raws) == 0 {
		return nil
	}
	list, err := s.to.add(ctx, s.raws)
	if err != nil {
		return err
	}
	for i, f := range list {
		if f.Err != nil {
			s.refuse(s.lines[i], f.Err.Error())
			continue
		}
		if len(f.Ignored) > 0 {
			s.a.Warn(fmt.Sprintf("line %d: unknown fields are left out: %s", s.lines[i], strings.Join(f.Ignored, ", ")))
		}
		s.added++
		if err := printAdded(s.a, f.ID); err != nil {
			return err
		}
	}
	s.lines, s.raws, s.bytes = nil, nil, 0
	return nil
}

// finish tells how many lines were left out.
func (s *findingStream) finish(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	if len(s.bad) == 0 {
		return nil
	}
	first := s.bad[0]
	return superqode.Errorf(superqode.ErrUsage, "%s of stdin skipped, %s added; line %d: %s",
		text.Plural(len(s.bad), "line"), text.Plural(s.added, "finding"), first.Line, first.Message)
}
