package superqode

import "fmt"

// Visible makes a name fit for one line of text: as it is where it is printable,
// quoted otherwise.
func Visible(s string) string {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}
