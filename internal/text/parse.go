package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseSize reads a number of bytes greater than zero, with k, M, G or T for
// powers of 1024; "B" and "iB" may follow. With such a letter it may be a decimal
// fraction.
func ParseSize(text string) (int64, error) {
	s := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text), "b"), "i")
	shift := 0
	if i := strings.IndexAny(s, "kmgt"); i >= 0 && i == len(s)-1 {
		shift = 10 * (strings.IndexByte("kmgt", s[i]) + 1)
		s = s[:i]
	}
	whole, part, fraction := strings.Cut(s, ".")
	if fraction && shift > 0 { // 1.5G
		f, err := strconv.ParseFloat(s, 64)
		if _, perr := strconv.ParseUint(whole+part, 10, 64); err == nil && perr == nil && f < 1<<20 {
			if n := int64(f * float64(int64(1)<<shift)); n > 0 {
				return n, nil
			}
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("%q is not a size such as 512k, 10M or 2G", text)
	}
	return n << shift, nil
}

// ParseDuration reads a duration greater than zero: what time.ParseDuration
// accepts, or a whole number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	s := text
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		s = strconv.FormatUint(n, 10) + "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s or 15m", text)
	}
	return d, nil
}
