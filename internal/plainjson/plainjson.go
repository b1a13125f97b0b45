// Package plainjson reads the JSON of superqode's own small files without
// reflection, for the programs that start with every git command: encoding/json
// spends more time on inspecting a struct's type than on the file.
//
// It reads what encoding/json writes for structs of strings, lists of strings,
// whole numbers and booleans, and nothing else. It gives up on a string with an
// escape in it, another type or an unknown field; the caller then asks
// encoding/json, so the result may be slow but is never wrong.
//
//	r := plainjson.New(data)
//	r.Object(func(field string) {
//		switch field {
//		case "name":
//			f.Name = r.Text()
//		default:
//			r.Unknown()
//		}
//	})
//	if !r.Whole() {
//		return json.Unmarshal(data, &f)
//	}
package plainjson

import (
	"strconv"
	"unicode/utf8"
)

// Reader reads one document from its start to its end. After something that it
// cannot read every result is the zero value.
type Reader struct {
	rest  []byte
	wrong bool
}

// New starts at the beginning of data, which must not change meanwhile.
func New(data []byte) *Reader { return &Reader{rest: data} }

// Whole reports whether it could read everything and nothing is left.
func (r *Reader) Whole() bool {
	r.space()
	return !r.wrong && len(r.rest) == 0
}

// Unknown gives up: the document holds something that the caller does not know.
func (r *Reader) Unknown() { r.wrong, r.rest = true, nil }

func (r *Reader) space() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\n' || r.rest[0] == '\t' || r.rest[0] == '\r') {
		r.rest = r.rest[1:]
	}
}

// take skips one byte if it is the next one.
func (r *Reader) take(b byte) bool {
	r.space()
	if len(r.rest) == 0 || r.rest[0] != b {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// word skips a literal if it is next.
func (r *Reader) word(w string) bool {
	r.space()
	if len(r.rest) < len(w) || string(r.rest[:len(w)]) != w {
		return false
	}
	r.rest = r.rest[len(w):]
	return true
}

// each reads the elements of a list or an object up to its end.
func (r *Reader) each(begin, end byte, element func()) {
	if !r.take(begin) {
		r.Unknown()
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
		if !r.take(',') {
			r.Unknown()
		}
	}
}

// Object reads an object: field is called with the name of each field and reads
// its value. It gives up on a name that comes twice.
func (r *Reader) Object(field func(name string)) {
	var seen []string
	r.each('{', '}', func() {
		name := r.Text()
		for _, s := range seen {
			if s == name {
				r.Unknown()
			}
		}
		seen = append(seen, name)
		if !r.take(':') {
			r.Unknown()
		}
		if !r.wrong {
			field(name)
		}
	})
}

// Text reads a string.
func (r *Reader) Text() string {
	if !r.take('"') {
		r.Unknown()
		return ""
	}
	for i, b := range r.rest {
		switch {
		case b == '"':
			text := string(r.rest[:i])
			r.rest = r.rest[i+1:]
			if !utf8.ValidString(text) {
				r.Unknown()
				return ""
			}
			return text
		case b == '\\' || b < ' ':
			r.Unknown()
			return ""
		}
	}
	r.Unknown()
	return ""
}

// Texts reads a list of strings; it is nil for null only.
func (r *Reader) Texts() []string {
	if r.Null() {
		return nil
	}
	list := []string{}
	r.each('[', ']', func() { list = append(list, r.Text()) })
	if r.wrong {
		return nil
	}
	return list
}

// Null skips a null if there is one.
func (r *Reader) Null() bool { return r.word("null") }

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	if r.word("true") {
		return true
	}
	if !r.word("false") {
		r.Unknown()
	}
	return false
}

// Int reads a whole number that is not negative.
func (r *Reader) Int() int {
	r.space()
	i := 0
	for i < len(r.rest) && i < 9 && r.rest[i] >= '0' && r.rest[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(string(r.rest[:i]))
	if err != nil || i > 1 && r.rest[0] == '0' {
		r.Unknown()
		return 0
	}
	r.rest = r.rest[i:] // a fraction that follows does not end an element
	return n
}
