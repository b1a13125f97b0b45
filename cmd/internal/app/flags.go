package app

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// AgentFlag is an agent's name.
type AgentFlag superqode.AgentID

// UnmarshalText accepts what superqode.ParseAgentID accepts.
func (f *AgentFlag) UnmarshalText(b []byte) error {
	id, err := superqode.ParseAgentID(string(b))
	if err != nil {
		return superqode.Errorf(superqode.ErrUsage, "--agent: %s", err)
	}
	*f = AgentFlag(id)
	return nil
}

// PathFlag is a path. An empty one is a variable that was not set, say: it must not
// quietly mean something else.
type PathFlag string

// UnmarshalText accepts everything but nothing.
func (p *PathFlag) UnmarshalText(b []byte) error {
	if len(b) == 0 || bytes.IndexByte(b, 0) >= 0 {
		return fmt.Errorf("expected a path, not %q", b)
	}
	*p = PathFlag(b)
	return nil
}

// DurationFlag is a duration with a unit, or a whole number of seconds; it is
// more than zero.
type DurationFlag time.Duration

// UnmarshalText accepts what time.ParseDuration accepts, and whole seconds.
func (d *DurationFlag) UnmarshalText(b []byte) error {
	v, err := text.ParseDuration(string(b))
	*d = DurationFlag(v)
	return err
}

// SizeFlag is a number of bytes, see text.ParseSize.
type SizeFlag int64

// UnmarshalText parses a size greater than zero.
func (z *SizeFlag) UnmarshalText(b []byte) error {
	n, err := text.ParseSize(string(b))
	*z = SizeFlag(n)
	return err
}

// NamesFlag is a list of names, separated by commas or given by several flags. An
// empty text is a name that nothing has: a list that was given is never no list.
type NamesFlag []string

// UnmarshalText adds the names of one flag.
func (n *NamesFlag) UnmarshalText(b []byte) error {
	*n = append(*n, strings.Split(string(b), ",")...)
	return nil
}

// CountFlag is a whole number greater than zero.
type CountFlag int

// UnmarshalText parses a number.
func (c *CountFlag) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 31)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a whole number greater than zero", b)
	}
	*c = CountFlag(n)
	return nil
}

// AgeFlag is a time span with a unit, days included. Given as nothing at all, 0s, it
// is the shortest there is; its zero value says that it was not given.
type AgeFlag time.Duration

// UnmarshalText accepts what time.ParseDuration accepts, and whole days.
func (d *AgeFlag) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if days, ok := strings.CutSuffix(string(b), "d"); ok {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 16); err == nil {
			v = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not an age such as 24h, 90m or 7d", b)
	}
	*d = AgeFlag(max(v, 1)) // zero, everything, must differ from no flag
	return nil
}
