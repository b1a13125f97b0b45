package merge

// LineRange is a range of lines, counted from 1, both ends included. A place
// between two lines is the range after the first of them: End is Start-1.
type LineRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Hunk is one place where two versions of a file differ, without context.
type Hunk struct{ OldStart, OldLines, NewStart, NewLines int }

// Old is the hunk's lines in the old version.
func (h Hunk) Old() LineRange {
	if h.OldLines == 0 { // diff names the line before
		return LineRange{h.OldStart + 1, h.OldStart}
	}
	return LineRange{h.OldStart, h.OldStart + h.OldLines - 1}
}

// New is the hunk's lines in the new version.
func (h Hunk) New() LineRange { return Hunk{OldStart: h.NewStart, OldLines: h.NewLines}.Old() }

// Touches reports whether two hunks of the same old version meet, as in git's
// merge: hunks one line apart do not.
func (h Hunk) Touches(o Hunk) bool {
	a, b := h.Old(), o.Old()
	return a.Start <= b.End+1 && b.Start <= a.End+1
}

// overlaps returns the lines of a file that two sides changed.
func overlaps(a, b []Hunk) []LineRange {
	var list []LineRange
	for _, h := range a {
		for _, o := range b {
			if !h.Touches(o) {
				continue
			}
			x, y := h.Old(), o.Old()
			r := LineRange{min(x.Start, y.Start), max(x.End, y.End)}
			if n := len(list); n > 0 && r.Start <= list[n-1].End+1 {
				list[n-1] = LineRange{min(list[n-1].Start, r.Start), max(list[n-1].End, r.End)}
			} else {
				list = append(list, r)
			}
		}
	}
	return list
}

// HunkCollector collects the hunks of a patch without context that is written
// to it, by file.
type HunkCollector struct {
	reader HunkReader
	line   lineSplitter
	Files  [][]Hunk
}

// Write takes pieces of any size.
func (c *HunkCollector) Write(b []byte) (int, error) {
	c.line.split(b, func(line []byte) {
		switch c.reader.Next(line) {
		case LineFile:
			c.Files = append(c.Files, nil)
		case LineHunk:
			if n := len(c.Files); n > 0 {
				h, _ := parseHunk(line)
				c.Files[n-1] = append(c.Files[n-1], h)
			}
		}
	})
	return len(b), nil
}

// hunks are those of the only file.
func (c *HunkCollector) hunks() []Hunk {
	if len(c.Files) == 0 {
		return nil
	}
	return c.Files[0]
}
