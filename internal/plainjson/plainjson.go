// Package plainjson reads the JSON of superqode's own small files without
// reflection, for the programs that start with every git command: encoding/json
// spends more time on inspecting a struct's type than on the file.
//
// It reads what encoding/json writes for structs of strings, lists of strings,
// whole numbers and booleans, and nothing else. It gives up on a string with an
// escape in it, another type or an unknown field; the caller then asks
// encoding/json, so the result may be slow but is never wrong.
//
//	if plainjson.Read(data, plainjson.Fields{"name": &f.Name}) {
//		return nil
//	}
//	f = file{}
//	return json.Unmarshal(data, &f)
package plainjson

import (
	"encoding"
	"strconv"
	"unicode/utf8"

	"github.com/seed-2d964004/superqode"
)

// Fields says where the values of an object go, by the names of its fields: to a
// string, a HostPath, a list of these, a bool, an int that is not negative, or what
// reads itself from a text. Fields stands for an object, and a function that returns
// some for one that may be null.
type Fields map[string]any

// Read reads one document, an object. It reports whether it could read everything;
// otherwise what it has filled in means nothing. It uses into up.
func Read(data []byte, into Fields) bool {
	r := reader{rest: data}
	r.object(into)
	r.space()
	return !r.wrong && len(r.rest) == 0
}

// reader reads one document from its start to its end. After something that it
// cannot read every result is the zero value.
type reader struct {
	rest  []byte
	wrong bool
}

func (r *reader) giveUp() { r.wrong, r.rest = true, nil }

func (r *reader) space() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\n' || r.rest[0] == '\t' || r.rest[0] == '\r') {
		r.rest = r.rest[1:]
	}
}

// take skips a literal if it is next.
func (r *reader) take(literal string) bool {
	r.space()
	if len(r.rest) < len(literal) || string(r.rest[:len(literal)]) != literal {
		return false
	}
	r.rest = r.rest[len(literal):]
	return true
}

// each reads the elements of a list or an object up to its end.
func (r *reader) each(begin, end string, element func()) {
	if !r.take(begin) {
		r.giveUp()
		return
	}
	if r.take(end) {
		return
	}
	for !r.wrong {
		element()
		if r.take(end) {
			return
		}
		if !r.take(",") {
			r.giveUp()
		}
	}
}

// object reads an object. It gives up on a name that comes twice.
func (r *reader) object(into Fields) {
	r.each("{", "}", func() {
		name := r.text()
		if !r.take(":") {
			r.giveUp()
		}
		if !r.wrong {
			r.value(into[name])
			delete(into, name)
		}
	})
}

func (r *reader) value(into any) {
	switch v := into.(type) {
	case Fields:
		r.object(v)
	case func() Fields:
		if !r.take("null") {
			r.object(v())
		}
	case *string:
		*v = r.text()
	case *superqode.HostPath:
		*v = superqode.HostPath(r.text())
	case *[]string:
		*v = list[string](r)
	case *[]superqode.HostPath:
		*v = list[superqode.HostPath](r)
	case *bool:
		if *v = r.take("true"); !*v && !r.take("false") {
			r.giveUp()
		}
	case *int:
		*v = r.number()
	case encoding.TextUnmarshaler:
		if v.UnmarshalText([]byte(r.text())) != nil {
			r.giveUp()
		}
	default: // a name that the caller does not know
		r.giveUp()
	}
}

func (r *reader) text() string {
	if !r.take(`"`) {
		r.giveUp()
		return ""
	}
	for i, b := range r.rest {
		switch {
		case b == '"':
			text := string(r.rest[:i])
			r.rest = r.rest[i+1:]
			if !utf8.ValidString(text) {
				r.giveUp()
				return ""
			}
			return text
		case b == '\\' || b < ' ':
			r.giveUp()
			return ""
		}
	}
	r.giveUp()
	return ""
}

// list reads a list of texts; it is nil for null only.
func list[T ~string](r *reader) []T {
	if r.take("null") {
		return nil
	}
	all := []T{}
	r.each("[", "]", func() { all = append(all, T(r.text())) })
	return all
}

func (r *reader) number() int {
	r.space()
	i := 0
	for i < len(r.rest) && i < 9 && r.rest[i] >= '0' && r.rest[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(string(r.rest[:i]))
	if err != nil || i > 1 && r.rest[0] == '0' {
		r.giveUp()
		return 0
	}
	r.rest = r.rest[i:] // a fraction that follows does not end an element
	return n
}
