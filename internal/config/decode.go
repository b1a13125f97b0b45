package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// set is one key that a layer sets, or one entry of a dict (agents.NAME).
type set struct {
	value        any
	line, column int
	entries      []int // of a list: the line in which each entry begins
}

// decoder turns YAML into checked values. Errors show name; relative paths
// count from dir, "" for none.
type decoder struct {
	name string
	dir  string
	bare bool // not a file: lines and columns mean nothing
	sets map[string]set
}

// file decodes a whole document into d.sets, by full key.
func (d *decoder) file(data []byte) error {
	root, err := d.parse(data)
	if err != nil || root == nil {
		return err
	}
	d.sets = map[string]set{}
	return d.section(table(), "", root)
}

// parse returns the document's root, or nil for an empty one.
func (d *decoder) parse(data []byte) (ast.Node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := d.text(data); err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		if y, ok := errors.AsType[yaml.Error](err); ok {
			return nil, d.failure(y.GetToken(), "", y.GetMessage())
		}
		return nil, d.failure(nil, "", err.Error())
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			return nil, d.errorf(doc.Body, "", "a second document; a configuration has one")
		}
		root = doc.Body
	}
	if root != nil && root.Type() == ast.NullType {
		return nil, nil
	}
	return root, nil
}

// text refuses what is not UTF-8: the parser would replace each wrong byte by
// U+FFFD, and a path with one would be another path.
func (d *decoder) text(data []byte) error {
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == 0 || r == utf8.RuneError && n == 1 {
			at := &token.Token{Position: &token.Position{Line: line, Column: column}}
			return d.failure(at, "", fmt.Sprintf("the byte 0x%02x is not text; the file must be UTF-8", rest[0]))
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		rest = rest[n:]
	}
	return nil
}

func (d *decoder) errorf(n ast.Node, key, format string, args ...any) error {
	return d.failure(n.GetToken(), key, fmt.Sprintf(format, args...))
}

// failure is an error at a token, which may be nil.
func (d *decoder) failure(at *token.Token, key, msg string) error {
	e := &Error{Where: d.name, Key: key, Msg: msg}
	if at != nil && at.Position != nil && !d.bare {
		e.Line, e.Column = at.Position.Line, at.Position.Column
	}
	return e
}

// put sets a key, as a node of the file says.
func (d *decoder) put(key string, value any, at ast.Node, entries []int) {
	pos := at.GetToken().Position
	d.sets[key] = set{value, pos.Line, pos.Column, entries}
}

// pair is one key of a mapping.
type pair struct {
	name string
	key  ast.Node
	node ast.Node
}

// pairs returns a mapping's keys in order; anything else is an error.
func (d *decoder) pairs(n ast.Node, key string) ([]pair, error) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, d.errorf(n, key, "%s where keys are expected", nodeName(n))
	}
	var out []pair
	for _, v := range values {
		switch v.Key.(type) {
		case *ast.MergeKeyNode, *ast.MappingKeyNode:
			return nil, d.errorf(v.Key, key, "merged and complex keys are not supported")
		}
		out = append(out, pair{v.Key.GetToken().Value, v.Key, v.Value})
	}
	return out, nil
}

func (d *decoder) section(f *field, prefix string, n ast.Node) error {
	pairs, err := d.pairs(n, strings.TrimSuffix(prefix, "."))
	if err != nil {
		return err
	}
	for _, p := range pairs {
		c, key := f.child(p.name), prefix+p.name
		switch {
		case c == nil:
			return d.unknown(p.key, key)
		case p.node == nil || p.node.Type() == ast.NullType: // a key without a value sets nothing
		case c.kind == section:
			err = d.section(c, key+".", p.node)
		case c.kind == dict:
			err = d.entries(c, key, p.node)
		default:
			var v any
			if v, err = d.value(c, key, p.node); err == nil {
				d.put(key, v, p.key, entryLines(p.node))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entryLines returns the line in which each entry of a list begins: that of its
// first key if it is a map.
func entryLines(n ast.Node) []int {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	lines := make([]int, len(seq.Values))
	for i, item := range seq.Values {
		first := item
		switch m := item.(type) {
		case *ast.MappingNode:
			if len(m.Values) > 0 {
				first = m.Values[0].Key
			}
		case *ast.MappingValueNode:
			first = m.Key
		}
		if tk := first.GetToken(); tk != nil && tk.Position != nil {
			lines[i] = tk.Position.Line
		}
	}
	return lines
}

// entries sets each entry of a dict as a key of its own.
func (d *decoder) entries(f *field, key string, n ast.Node) error {
	pairs, err := d.pairs(n, key)
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		d.put(key, map[string]any{}, n, nil)
	}
	for _, p := range pairs {
		v, err := d.entry(f, key, p)
		if err != nil {
			return err
		}
		d.put(key+"."+p.name, v, p.key, nil)
	}
	return nil
}

func (d *decoder) entry(f *field, key string, p pair) (any, error) {
	if f.check != nil {
		if err := f.check(p.name); err != nil {
			bad := d.errorf(p.key, key, "%v", err)
			if hint := superqode.Hint(err); hint != "" {
				bad = superqode.WithHint(bad, "%s", hint)
			}
			return nil, bad
		}
	}
	return d.value(f.item, key+"."+p.name, p.node)
}

func (d *decoder) unknown(n ast.Node, key string) error {
	return d.errorf(n, "", "unknown key %q (the nearest known one is %s)", key, nearest(key, knownKeys()))
}

// knownKeys lists every full key, those inside lists with [] for the index.
func knownKeys() []string {
	var keys []string
	var walk func(f *field, prefix string)
	walk = func(f *field, prefix string) {
		for i := range f.fields {
			c := &f.fields[i]
			keys = append(keys, prefix+c.name)
			walk(c, prefix+c.name+".")
			if c.kind == list {
				walk(c.item, prefix+c.name+"[].")
			}
		}
	}
	walk(table(), "")
	return keys
}

// value decodes and checks one value of a key that is not a section.
func (d *decoder) value(f *field, key string, n ast.Node) (any, error) {
	switch f.kind {
	case list:
		return d.list(f, key, n)
	case object:
		return d.object(f, key, n)
	case dict:
		pairs, err := d.pairs(n, key)
		if err != nil {
			return nil, err
		}
		out := map[string]any{}
		for _, p := range pairs {
			if out[p.name], err = d.entry(f, key, p); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return d.scalar(f, key, n)
}

func (d *decoder) list(f *field, key string, n ast.Node) (any, error) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, d.errorf(n, key, "%s where a list is expected", nodeName(n))
	}
	out := []any{}
	for i, item := range seq.Values {
		v, err := d.value(f.item, key+"["+strconv.Itoa(i)+"]", item)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (d *decoder) object(f *field, key string, n ast.Node) (any, error) {
	pairs, err := d.pairs(n, key)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, p := range pairs {
		c := f.child(p.name)
		if c == nil {
			return nil, d.unknown(p.key, key+"."+p.name)
		}
		if p.node.Type() == ast.NullType && c.kind != object {
			continue
		}
		if out[p.name], err = d.value(c, key+"."+p.name, p.node); err != nil {
			return nil, err
		}
	}
	for i := range f.fields {
		if c := &f.fields[i]; c.required && out[c.name] == nil {
			return nil, d.errorf(n, key, "%s is missing", c.name)
		}
	}
	have := 0
	for _, name := range f.oneOf {
		if _, ok := out[name]; ok {
			have++
		}
	}
	if f.oneOf != nil && have != 1 {
		return nil, d.errorf(n, key, "exactly one of %s is needed", strings.Join(f.oneOf, " and "))
	}
	if f.finish != nil && d.dir != "" {
		f.finish(d.dir, out)
	}
	return out, nil
}

// scalar decodes a text, a number, a duration or a truth value. Where free text
// is expected, a number or a boolean counts as it is written.
func (d *decoder) scalar(f *field, key string, n ast.Node) (any, error) {
	var s string
	quoted := false
	switch v := n.(type) {
	case *ast.StringNode:
		s = v.Value
		quoted = v.Token.Type != token.StringType
	case *ast.LiteralNode:
		s, quoted = v.Value.Value, true
	case *ast.BoolNode:
		if s = n.GetToken().Value; f.kind == boolean { // True and TRUE are YAML too
			return v.Value, nil
		}
	case *ast.IntegerNode, *ast.FloatNode:
		s = n.GetToken().Value
	default:
		return nil, d.errorf(n, key, "%s where %s is expected", nodeName(n), f.kind)
	}
	if quoted && (f.kind == integer || f.kind == boolean) {
		return nil, d.errorf(n, key, "text where %s is expected", f.kind)
	}
	v, err := f.parse(s)
	if err != nil {
		return nil, d.errorf(n, key, "%v", err)
	}
	if s, ok := v.(string); ok && f.resolve != nil && d.dir != "" {
		v = f.resolve(d.dir, s)
	}
	return v, nil
}

// parse reads a scalar from its text.
func (f *field) parse(s string) (any, error) {
	switch f.kind {
	case boolean:
		if s != "true" && s != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", s)
		}
		return s == "true", nil
	case integer:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", s)
		}
		if n < f.min || f.max > 0 && n > f.max {
			return nil, fmt.Errorf("%d is not between %d and %d", n, f.min, f.max)
		}
		return n, nil
	case duration:
		_, err := text.ParseDuration(s)
		return s, err
	case textKind:
		if len(f.choices) > 0 && !slices.Contains(f.choices, s) {
			return nil, fmt.Errorf("%q is not one of %s", s, strings.Join(f.choices, ", "))
		}
		if f.check != nil {
			return s, f.check(s)
		}
		return s, nil
	}
	return nil, fmt.Errorf("%s is expected", f.kind)
}
