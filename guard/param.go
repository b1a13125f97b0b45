package guard

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// list returns the values of $@, $* or ${a[@]}; ok is false for other
// parameters.
func (c *checker) list(st *state, pe *syntax.ParamExp) ([]string, bool) {
	if pe.Param == nil || pe.Length || pe.Excl || pe.Exp != nil || pe.Repl != nil {
		return nil, false
	}
	if pe.Param.Value == "@" || pe.Param.Value == "*" {
		if pe.Slice == nil {
			return st.params, true
		}
		return sliceList(append([]string{st.arg0}, st.params...), pe.Slice)
	}
	all, ok := c.wholeArray(st, pe)
	if ok && pe.Slice != nil {
		return sliceList(all, pe.Slice)
	}
	return all, ok
}

// wholeArray is ${a[@]} or ${a[*]}.
func (c *checker) wholeArray(st *state, pe *syntax.ParamExp) ([]string, bool) {
	if w, ok := pe.Index.(*syntax.Word); ok && (w.Lit() == "@" || w.Lit() == "*") {
		v, ok := st.lookup(pe.Param.Value)
		if !ok {
			return []string{unknownValue(kindOpen, pe.Param.Value)}, true
		}
		if v.array == nil && v.value != "" {
			return []string{v.value}, true
		}
		return v.array, true
	}
	return nil, false
}

// param expands one parameter.
func (c *checker) param(st *state, pe *syntax.ParamExp, b *fieldBuilder, q quoting) {
	if list, ok := c.list(st, pe); ok {
		for i, v := range list {
			switch {
			case i > 0 && q == quoteNone:
				b.end()
			case i > 0:
				b.add(" ")
			}
			if q == quoteNone {
				b.split(v)
			} else {
				b.add(v)
			}
		}
		return
	}
	v := c.paramValue(st, pe)
	if q == quoteNone {
		b.split(v)
	} else {
		b.add(v)
	}
}

func (c *checker) paramValue(st *state, pe *syntax.ParamExp) string {
	if pe.Param == nil {
		c.substitutions(st, pe)
		return unknownValue(kindOpen, "parameter")
	}
	name := pe.Param.Value
	value, known := st.value(name)
	if pe.Excl {
		if !known || !isKnown(value) {
			return unknownValue(kindOpen, name)
		}
		value, known = st.value(value)
	}
	if w, ok := pe.Index.(*syntax.Word); ok {
		v, _ := st.lookup(name)
		key := c.word(st, w)
		if n, err := strconv.Atoi(key); err == nil && n >= 0 && n < len(v.array) {
			value, known = v.array[n], true
		} else {
			value, known = v.keyed[key]
		}
	} else if pe.Index != nil {
		c.substitutions(st, pe.Index)
	}
	if pe.Length || pe.IsSet || pe.Names != 0 {
		return unknownValue(kindOpen, "number")
	}
	return c.modify(st, pe, value, known)
}

// value returns what $name stands for.
func (st *state) value(name string) (string, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(st.params) {
			return st.params[n-1], true
		}
		if n == 0 {
			return st.arg0, true
		}
		return "", true
	}
	switch name {
	case "#":
		return strconv.Itoa(len(st.params)), true
	case "?", "$", "!", "-", "RANDOM", "SECONDS", "LINENO":
		return unknownValue(kindOpen, "number"), true
	}
	v, ok := st.lookup(name)
	return v.value, ok
}

// modify applies ${v:-…}, ${v#…}, ${v/…}, ${v:n:m} and the like.
func (c *checker) modify(st *state, pe *syntax.ParamExp, value string, known bool) string {
	open := unknownValue(kindOpen, pe.Param.Value)
	switch {
	case pe.Exp != nil:
		return c.modifyWord(st, pe, value, known)
	case !known:
		if v, ok := st.vars[pe.Param.Value]; ok && v.unset {
			return ""
		}
		return open
	case pe.Repl != nil:
		orig, with := c.word(st, pe.Repl.Orig), c.word(st, pe.Repl.With)
		if !isKnown(value) || !isKnown(orig) || orig == "" || strings.ContainsAny(orig, "*?[") {
			return unknownValue(kindOr(value), pe.Param.Value)
		}
		n := 1
		if pe.Repl.All {
			n = -1
		}
		return strings.Replace(value, orig, with, n)
	case pe.Slice != nil:
		return slice(value, pe.Slice)
	case len(pe.Modifiers) > 0:
		return unknownValue(kindOr(value), pe.Param.Value)
	}
	return value
}

func kindOr(value string) byte {
	if k := kindOf(value); k != 0 {
		return k
	}
	return kindOpen
}

func slice(value string, s *syntax.Slice) string {
	if !isKnown(value) {
		return unknownValue(kindOr(value), "slice")
	}
	offset, ok1 := literalNumber(s.Offset)
	length, ok2 := literalNumber(s.Length)
	if s.Length == nil {
		length, ok2 = len(value), true
	}
	if !ok1 || !ok2 {
		return unknownValue(kindOpen, "slice")
	}
	if offset < 0 {
		offset += len(value)
	}
	if offset < 0 || offset > len(value) {
		return ""
	}
	end := offset + length
	if length < 0 {
		end = len(value) + length
	}
	return value[offset:max(offset, min(end, len(value)))]
}

// sliceList is "${a[@]:1:2}".
func sliceList(list []string, s *syntax.Slice) ([]string, bool) {
	offset, ok := literalNumber(s.Offset)
	if offset < 0 {
		offset += len(list)
	}
	if !ok || offset < 0 {
		return nil, false
	}
	list = list[min(offset, len(list)):]
	if s.Length == nil {
		return list, true
	}
	n, ok := literalNumber(s.Length)
	if !ok || n < 0 {
		return nil, false
	}
	return list[:min(n, len(list))], true
}

func literalNumber(x syntax.ArithmExpr) (int, bool) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(w.Lit())
	return n, err == nil
}

func (c *checker) modifyWord(st *state, pe *syntax.ParamExp, value string, known bool) string {
	arg := func() string { return c.word(st, pe.Exp.Word) }
	name := pe.Param.Value
	switch pe.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !known || value == "" && pe.Exp.Op == syntax.DefaultUnsetOrNull {
			return arg()
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !known || value == "" && pe.Exp.Op == syntax.AssignUnsetOrNull {
			value, known = arg(), true
			st.set(name, value)
		}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		alt := arg()
		if known && value == "" && pe.Exp.Op == syntax.AlternateUnsetOrNull {
			return ""
		}
		return alt
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return trim(value, arg(), pe.Exp.Op, known, name)
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		if known && isKnown(value) {
			return changeCase(value, pe.Exp.Op)
		}
	}
	if !known {
		arg()
		return unknownValue(kindOpen, name)
	}
	return value
}

func changeCase(value string, op syntax.ParExpOperator) string {
	switch op {
	case syntax.UpperAll:
		return strings.ToUpper(value)
	case syntax.LowerAll:
		return strings.ToLower(value)
	case syntax.UpperFirst:
		return strings.ToUpper(value[:min(1, len(value))]) + value[min(1, len(value)):]
	}
	return strings.ToLower(value[:min(1, len(value))]) + value[min(1, len(value)):]
}

// trim is ${v#p}, ${v##p}, ${v%p}, ${v%%p}.
func trim(value, pattern string, op syntax.ParExpOperator, known bool, name string) string {
	if !known || !isKnown(value) || !isKnown(pattern) || len(value) > 4096 {
		return unknownValue(kindOr(value), name)
	}
	match := func(s string) bool {
		ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(s, "/", "\x01"))
		return ok && err == nil
	}
	n := len(value)
	for i := range n + 1 {
		switch op {
		case syntax.RemSmallPrefix:
			if match(value[:i]) {
				return value[i:]
			}
		case syntax.RemLargePrefix:
			if match(value[:n-i]) {
				return value[n-i:]
			}
		case syntax.RemSmallSuffix:
			if match(value[n-i:]) {
				return value[:n-i]
			}
		case syntax.RemLargeSuffix:
			if match(value[i:]) {
				return value[:i]
			}
		}
	}
	return value
}
