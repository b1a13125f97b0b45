package term

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// minLast is the least width of a table's last column on a terminal, minText that
// of one with text, and minCell that of the others.
const (
	minLast = 12
	minText = 20
	minCell = 6
)

// Table prints rows in columns. On a terminal the last column is cut, a path at its
// left end and a text at its right one, and where that is not enough the widest
// others at their right end, so that a row fits in one line; elsewhere nothing is
// cut, and never what people type: ids.
func (t *Terminal) Table(header []string, rows [][]string) error {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], displayWidth(cell))
		}
	}
	room, cut, least := 0, cutLeft, minLast
	switch header[len(header)-1] {
	case "TITLE", "WHY", "COMMAND":
		cut, least = cutEnd, minText
	}
	if t.OutTTY {
		room = fit(width, typed(header), t.TerminalWidth(), least)
	}
	w := bufio.NewWriter(t.Out)
	last := func(s string) string { return cut(s, room) }
	fmt.Fprintln(w, t.PaintOut(rowLine(header, width, last), Bold))
	for _, row := range rows {
		fmt.Fprintln(w, rowLine(row, width, last))
	}
	return w.Flush()
}

// typed tells which columns hold what people type.
func typed(header []string) []bool {
	list := make([]bool, len(header))
	for i, name := range header {
		list[i] = slices.Contains([]string{"SESSION", "ID", "FINGERPRINT", "SALVAGE", "FENCE", "RUN", "KEY"}, name)
	}
	return list
}

// fit narrows the columns that are not kept until the last one has room, least where it
// needs as much, and returns its width.
func fit(width []int, kept []bool, total, least int) (room int) {
	others := width[:len(width)-1]
	left := func() int {
		n := total
		for _, w := range others {
			n -= w + 2
		}
		return n
	}
	for left() < min(least, width[len(width)-1]) {
		widest := -1
		for i, w := range others {
			if !kept[i] && (widest < 0 || w > others[widest]) {
				widest = i
			}
		}
		if widest < 0 || others[widest] <= minCell {
			break
		}
		others[widest]--
	}
	return max(left(), minCell)
}

func rowLine(row []string, width []int, last func(string) string) string {
	var b strings.Builder
	for i, cell := range row {
		if i == len(row)-1 {
			b.WriteString(last(cell))
			break
		}
		b.WriteString(CutRight(cell, width[i]) + "  ")
	}
	return strings.TrimRight(b.String(), " ")
}

// displayWidth is how many columns of a terminal s takes: two for wide characters,
// none for what combines.
func displayWidth(s string) int { return runewidth.StringWidth(s) }

// CutRight keeps what fits into room columns of s, and fills up to them.
func CutRight(s string, room int) string {
	return runewidth.FillRight(runewidth.Truncate(s, room, "…"), room)
}

// cutEnd keeps the beginning of s that fits into room columns; 0 means that there
// is room for all.
func cutEnd(s string, room int) string {
	if room == 0 {
		return s
	}
	return runewidth.Truncate(s, room, "…")
}

// cutLeft keeps the end of s that fits into room columns; 0 means that there is
// room for all.
func cutLeft(s string, room int) string {
	n := displayWidth(s)
	if room == 0 || n <= room {
		return s
	}
	return runewidth.TruncateLeft(s, n-room+1, "…")
}
