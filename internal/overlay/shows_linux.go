package overlay

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// escapes are how mountinfo writes what would end a field (proc_pid_mountinfo(5)).
var escapes = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)

// Shows reports whether a process of a session sees at the folder at the overlay over
// upper, and nothing else there or below but for own, which superqode mounts itself. It is
// false where a program mounted something there for its own children.
func Shows(upper, at, own string) bool {
	var st unix.Stat_t
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || unix.Stat(at, &st) != nil {
		return false
	}
	point := escapes.Replace(at)
	dev := fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	found := false
	for line := range strings.Lines(string(table)) {
		mount, kind, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		switch {
		case len(f) < 5:
			return false
		case f[4] == point:
			if f[2] != dev || f[3] != "/" || !strings.HasPrefix(kind, "overlay "+Source(upper)+" ") {
				return false
			}
			found = true
		case strings.HasPrefix(f[4], point+"/") && f[4] != escapes.Replace(own):
			return false
		}
	}
	return found
}
