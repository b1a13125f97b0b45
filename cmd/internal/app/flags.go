package app

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/merge"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Mappers parse the values of flags: by their Go type, or by the tag type:"…" where that says more.
func Mappers() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.String, parsed(verbatim)),
		typed(text.ParseDuration),
		typed(ParseAgent),
		typed(merge.ParseHunks),
		typed(parseKeep),
		kong.NamedMapper("age", parsed(parseAge)),
		kong.NamedMapper("count", parsed(parseCount)),
		kong.NamedMapper("grace", parsed(parseGrace)),
		kong.NamedMapper("names", kong.MapperFunc(addNames)),
		kong.NamedMapper("run", parsed(parseRun)),
		kong.NamedMapper("size", parsed(text.ParseSize)),
		kong.NamedMapper("somepath", parsed(parsePath)),
		kong.NamedMapper("stdin", kong.MapperFunc(stdinPath)),
	}
}

// ParseAgent returns the id of an agent of any name: the name itself if it is an id, else
// one made of it, always the same.
func ParseAgent(name string) (superqode.AgentID, error) {
	id, err := superqode.ParseAgentID(name)
	if err == nil || name == "" {
		return id, err
	}
	notFirst := func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return superqode.ParseAgentID(text.Segment(name, strings.TrimLeftFunc(name, notFirst)))
}

// typed parses every flag of type T.
func typed[T any](parse func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), parsed(parse))
}

// parsed is a mapper that takes a value as the bytes that it is. kong's own mapper of strings sends it
// through JSON, where each byte that is not UTF-8 becomes U+FFFD: a program's argument, or a folder's
// name, would be another one.
func parsed[T any](parse func(string) (T, error)) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		s, err := value(ctx)
		if err != nil {
			return err
		}
		v, err := parse(s)
		if err == nil {
			target.Set(reflect.ValueOf(v).Convert(target.Type()))
		}
		return err
	})
}

// stdinPath is a path, or "-" where the flag stands without a value.
func stdinPath(ctx *kong.DecodeContext, target reflect.Value) error {
	next := ctx.Scan.Peek()
	if arg, ok := next.Value.(string); next.IsEOL() || ok && next.Type == kong.UntypedToken && len(arg) > 1 && arg[0] == '-' {
		target.SetString("-")
		return nil
	}
	return parsed(parsePath).Decode(ctx, target)
}

func value(ctx *kong.DecodeContext) (string, error) {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return "", err
	}
	s, ok := t.Value.(string)
	if !ok {
		return "", fmt.Errorf("expected a string but got %q", t)
	}
	return s, nil
}

func verbatim(s string) (string, error) { return s, nil }

// parsePath refuses an empty path: that is a variable that was not set, say, and must not quietly mean
// something else.
func parsePath(s string) (string, error) {
	if s == "" || strings.ContainsRune(s, 0) {
		return "", fmt.Errorf("expected a path, not %q", s)
	}
	return s, nil
}

func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a whole number greater than zero", s)
	}
	return int(n), nil
}

// parseRun reads a run's number; "run-3" is 3.
func parseRun(s string) (int, error) {
	n, err := parseCount(strings.TrimPrefix(s, "run-"))
	if err != nil {
		err = fmt.Errorf("%q is not the number of a run", s)
	}
	return n, err
}

// parseAge reads a time span with a unit, days included. No time at all, 0s, is the shortest there is: zero
// says that the flag was not given.
func parseAge(s string) (time.Duration, error) {
	v, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		if n, err = strconv.ParseUint(days, 10, 16); err == nil {
			v = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not an age such as 24h, 90m or 7d", s)
	}
	return max(v, 1), nil
}

// parseGrace reads a duration of at most an hour, which may be zero.
func parseGrace(s string) (time.Duration, error) {
	if s == "0" || s == "0s" {
		return 0, nil
	}
	d, err := text.ParseDuration(s)
	if err == nil && d > time.Hour {
		err = errors.New("more than an hour")
	}
	return d, err
}

func parseKeep(s string) (superqode.Keep, error) {
	switch keep := superqode.Keep(s); keep {
	case superqode.KeepAlways, superqode.KeepFailure, superqode.KeepNever:
		return keep, nil
	}
	return "", fmt.Errorf("must be always, failure or never, not %q", s)
}

// addNames adds a list of names, separated by commas or given by several flags. An empty text is a name
// that nothing has: a list that was given is never no list.
func addNames(ctx *kong.DecodeContext, target reflect.Value) error {
	s, err := value(ctx)
	if err == nil {
		target.Set(reflect.AppendSlice(target, reflect.ValueOf(strings.Split(s, ","))))
	}
	return err
}
