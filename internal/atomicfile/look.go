package atomicfile

import (
	"os"
	"strings"
)

// Exists reports whether something is at path; a dangling link counts.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SameFile reports whether two names belong to one file.
func SameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// ReadBelow reads a small file below a folder without following any link, and
// returns its text without the white space around it, "" for none.
func ReadBelow(dir, name string) string {
	if st, err := os.Lstat(dir); err != nil || !st.IsDir() { // a FIFO that the program put there would never open
		return ""
	}
	root, err := OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	st, err := root.Lstat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 8<<10 {
		return ""
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
