package site

import "fmt"

// Megabytes prints a number of bytes for a person.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
