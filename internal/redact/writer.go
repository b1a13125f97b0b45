package redact

import "io"

const (
	// chunk is how much a Writer looks at at once.
	chunk = 256 << 10
	// held is how much of the end of a chunk waits for what follows: more than
	// the longest secret that the rules know.
	held = 32 << 10
	// contextSize is how much of what was written out stays as the beginning of the
	// next look, for rules that want a name before a value.
	contextSize = lookBehind + 256
)

// Writer returns a writer that passes everything on to w with secrets masked.
// It keeps what could be the beginning of a secret in a buffer of bounded size
// until more comes, or Close; Close does not close w. A nil Redactor passes
// everything on at once.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	if r == nil {
		return passing{w}
	}
	return &writer{r: r, w: w, spent: map[*rule]int{}}
}

type passing struct{ io.Writer }

func (passing) Close() error { return nil }

type writer struct {
	r     *Redactor
	w     io.Writer
	buf   []byte
	done  int // so many bytes of buf are written out
	lower []byte
	spent map[*rule]int
	out   []byte
	err   error
}

// Write takes all of b, or returns the error of the underlying writer.
func (w *writer) Write(b []byte) (int, error) {
	n := 0
	for len(b) > 0 && w.err == nil {
		k := min(len(b), chunk+held-(len(w.buf)-w.done))
		w.buf = append(w.buf, b[:k]...)
		b, n = b[k:], n+k
		if len(w.buf)-w.done >= chunk+held {
			w.flush(len(w.buf) - held)
		}
	}
	return n, w.err
}

// Close writes out what waits.
func (w *writer) Close() error {
	if w.err == nil {
		w.flush(len(w.buf))
	}
	return w.err
}

// flush writes out the buffer up to limit, or to the beginning of a secret that
// spans it.
func (w *writer) flush(limit int) {
	if cap(w.lower) < len(w.buf) {
		w.lower = make([]byte, 0, cap(w.buf))
	}
	found := w.r.find(w.buf, w.lower, w.spent)
	at := w.done
	w.out = w.out[:0]
	for _, m := range found {
		if m.End <= w.done {
			continue
		}
		if m.Start >= limit {
			break
		}
		if m.End > limit && m.Start > w.done && limit < len(w.buf) { // it waits for its end
			limit = m.Start
			break
		}
		m.Start = max(m.Start, at)
		w.out = masked(append(w.out, w.buf[at:m.Start]...), w.buf[m.Start:m.End], []Match{{0, m.End - m.Start, m.Name}})
		at = m.End
	}
	if at < limit {
		w.out = append(w.out, w.buf[at:limit]...)
		at = limit
	}
	_, w.err = w.w.Write(w.out)
	keep := max(at-contextSize, 0)
	w.buf = append(w.buf[:0], w.buf[keep:]...)
	w.done = at - keep
}

// IfText returns a Writer that masks text and passes everything else on as it is; a
// nil Redactor passes everything on.
func (r *Redactor) IfText(w io.Writer) io.WriteCloser { return &textMask{r: r, w: w} }

// textMask masks text and passes everything else on as it is: a screenshot, a
// trace, a database would be broken. The first bytes tell.
type textMask struct {
	r    *Redactor
	w    io.Writer
	head []byte
	out  io.WriteCloser // nil until it is known
}

const textProbe = 8 << 10

// Write takes b whole.
func (t *textMask) Write(b []byte) (int, error) {
	if t.out != nil {
		return t.out.Write(b)
	}
	if t.head = append(t.head, b...); len(t.head) >= textProbe {
		if err := t.decide(); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (t *textMask) decide() error {
	r := t.r
	if !IsText(t.head) {
		r = nil
	}
	t.out = r.Writer(t.w)
	_, err := t.out.Write(t.head)
	t.head = nil
	return err
}

// Close completes the content.
func (t *textMask) Close() error {
	if t.out == nil {
		if err := t.decide(); err != nil {
			return err
		}
	}
	return t.out.Close()
}
