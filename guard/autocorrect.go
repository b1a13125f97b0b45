package guard

import (
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/internal/cmdline"
)

// commonCommands get git's bonus in the search for a misspelled command
// (command-list.txt, the commands that "git help" lists).
const commonCommands = `add backfill bisect branch clone commit diff fetch grep init log merge mv pull push rebase
 reset restore rm show sparse-checkout status switch tag`

// autocorrect returns the command that git would run in place of a misspelled
// one, or "". It follows help_unknown_cmd of git's help.c (2.39 to 2.55): it runs
// only a single best candidate, near enough, and only when help.autocorrect is a
// delay or "immediate".
func (k *call) autocorrect() string {
	value, ok := k.setting("help.autocorrect")
	if !ok || !correcting(value) {
		return ""
	}
	best, count, to := 1<<30, 0, ""
	for cand := range strings.FieldsSeq(gitCommands) {
		if strings.Contains(cand, "--") {
			continue
		}
		d := 0
		if !strings.HasPrefix(cand, k.name) || !cmdline.In(commonCommands, cand) {
			d = editDistance(k.name, cand) + 1
		}
		switch {
		case d == 0: // several prefixes are as good as one for us: the first runs when it is alone
			if best == 0 {
				count++
			} else {
				best, count, to = 0, 1, cand
			}
		case d < best:
			best, count, to = d, 1, cand
		case d == best:
			count++
		}
	}
	if count != 1 || best > 7 {
		return ""
	}
	return to
}

func correcting(value string) bool {
	switch strings.ToLower(value) {
	case "never", "show", "prompt", "false", "no", "off", "0", "":
		return false
	case "immediate", "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && n != 0
}

// editDistance is git's levenshtein(a, b, swap 0, substitution 2, insertion 1,
// deletion 3).
func editDistance(a, b string) int {
	const swap, subst, ins, del = 0, 2, 1, 3
	if len(a) > 64 {
		return 1 << 20
	}
	row0, row1, row2 := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row1 {
		row1[j] = j * ins
	}
	for i := range len(a) {
		row2[0] = (i + 1) * del
		for j := range len(b) {
			row2[j+1] = row1[j]
			if a[i] != b[j] {
				row2[j+1] += subst
			}
			if i > 0 && j > 0 && a[i-1] == b[j] && a[i] == b[j-1] {
				row2[j+1] = min(row2[j+1], row0[j-1]+swap)
			}
			row2[j+1] = min(row2[j+1], row1[j+1]+del, row2[j]+ins)
		}
		row0, row1, row2 = row1, row2, row0
	}
	return row1[len(b)]
}
