package guard

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// argument is a value in program text, as far as it can be told: a text (with
// marks for its unknown parts), or a list of texts.
type argument struct {
	known  bool
	text   string
	list   []string            // when it is a list
	items  []argument          // of a list that holds lists
	name   string              // of a named argument: input=…
	fields map[string]argument // of an object or hash: {cwd: …, args: […]}
	path   string              // a name that stands for itself: subprocess.run
}

func textArgument(s string) argument { return argument{known: true, text: s} }

// asText is the value inside a text: known, or a mark.
func (a argument) asText(name string) string {
	switch {
	case a.list != nil:
		return strings.Join(a.list, " ")
	case a.known:
		return a.text
	}
	return unknownValue(kindOpen, name)
}

// stopWords end an expression.
var stopWords = words{text: "for if else in of and or as unless until while do then end elif rescue except"}

// skippedWords stand before an expression and change nothing here.
var skippedWords = words{text: "new await return my our local const let var yield not void typeof"}

// args reads arguments from token i, after the opening bracket, to the closing
// one; or without brackets (inside is false) to the end of the statement. It
// returns the index of the token that ended them.
func (s *codeScan) args(i int, inside bool) (list []argument, end int) {
	for i < len(s.tokens) && len(list) < 256 {
		if s.ends(i, inside) {
			return list, i
		}
		if s.is(i, ",") || s.tokens[i].kind == 'n' {
			i++
			continue
		}
		name := ""
		if s.tokens[i].kind == 'i' && s.is(i+1, "=") && !s.is(i+2, "=") && !s.is(i+2, ">") {
			name, i = s.tokens[i].text, i+2
		}
		var a argument
		a, i = s.eval(i, inside)
		for s.lang.name != "emacs" && i < len(s.tokens) && !s.is(i, ",") && !s.ends(i, inside) { // what was not understood
			a = argument{known: a.known, text: a.text, list: a.list, fields: a.fields}
			i = s.skip(i)
		}
		a.name = name
		list = append(list, a)
	}
	return list, i
}

// ends reports whether token i ends a list of arguments.
func (s *codeScan) ends(i int, inside bool) bool {
	if i >= len(s.tokens) {
		return true
	}
	t := s.tokens[i]
	if t.kind == 'p' && (t.text == ")" || t.text == "]" || t.text == "}" || t.text == ";") {
		return true
	}
	return !inside && (t.kind == 'n' || t.kind == 'i' && stopWords.has(t.text))
}

// skip passes over one token, or over a bracket with all that is in it.
func (s *codeScan) skip(i int) int {
	if i >= len(s.tokens) {
		return i + 1
	}
	if t := s.tokens[i]; t.kind != 'p' || strings.IndexByte("([{", t.text[0]) < 0 {
		return i + 1
	}
	depth := 0
	for ; i < len(s.tokens); i++ {
		if t := s.tokens[i]; t.kind == 'p' {
			switch t.text[0] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	return i
}

// eval reads one expression and returns the index after it.
func (s *codeScan) eval(i int, inside bool) (argument, int) {
	if !s.enter() {
		return argument{}, len(s.tokens)
	}
	defer s.leave()
	a, i := s.term(i, inside)
	for i < len(s.tokens) && !s.ends(i, inside) && !s.is(i, ",") && !s.is(i, ":") {
		var b argument
		t := s.tokens[i]
		switch {
		case inside && t.kind == 'n':
			i++
		case t.kind == 'i' && stopWords.has(t.text):
			return a, i
		case s.is(i, "+"), s.is(i, ".") && s.dotJoins():
			for s.is(i, ".") || s.is(i, "+") {
				i++
			}
			b, i = s.term(i, inside)
			a = concat(a, b)
		case s.is(i, "%") && s.lang.name == "python":
			b, i = s.term(i+1, inside)
			a = format(a, b)
		case s.is(i, "/") && s.lang.name == "python":
			b, i = s.term(i+1, inside)
			a = textArgument(path.Join(a.asText("dir"), b.asText("name")))
		case (t.kind == 's' && s.lang.name != "emacs" || t.kind == 'i' && s.lang.name == "awk") && a.known && a.list == nil:
			b, i = s.term(i, inside) // 'a' 'b' is one text
			a = concat(a, b)
		default:
			return a, i
		}
	}
	return a, i
}

func (s *codeScan) dotJoins() bool {
	return s.lang.name == "perl" || s.lang.name == "php" || s.lang.name == "lua"
}

func concat(a, b argument) argument {
	if a.list != nil && b.list != nil {
		return argument{known: true, list: slices.Concat(a.list, b.list)}
	}
	if !a.known && !b.known {
		return argument{}
	}
	return textArgument(a.asText("left") + b.asText("right"))
}

// format fills values into %s and {}.
func format(a, b argument) argument {
	if !a.known || a.list != nil {
		return argument{}
	}
	values := b.list
	if values == nil {
		values = []string{b.asText("value")}
	}
	text := a.text
	for _, v := range values {
		i := strings.IndexByte(text, '%')
		if j := strings.Index(text, "{"); i < 0 || j >= 0 && j < i {
			k := strings.IndexByte(text, '}')
			if j < 0 || k < j {
				break
			}
			text = text[:j] + v + text[k+1:]
			continue
		}
		text = text[:i] + v + text[min(i+2, len(text)):]
	}
	return textArgument(text)
}

// term reads one operand with the calls and indexes that follow it.
func (s *codeScan) term(i int, inside bool) (argument, int) {
	for i < len(s.tokens) {
		t := s.tokens[i]
		if t.kind == 'i' && skippedWords.has(t.text) || inside && t.kind == 'n' || t.kind == 'p' && strings.IndexByte("*!&\\-", t.text[0]) >= 0 {
			i++
			continue
		}
		break
	}
	for s.is(i, ".") && s.is(i+1, ".") { // spread
		i++
	}
	if s.is(i, ".") && i > 0 && s.is(i-1, ".") {
		i++
	}
	if i >= len(s.tokens) || s.ends(i, inside) {
		return argument{}, i
	}
	var a argument
	switch t := s.tokens[i]; {
	case t.kind == 's':
		a, i = textArgument(s.interpolate(t)), i+1
	case t.kind == 'l':
		a, i = argument{known: true, list: t.words}, i+1
	case s.is(i, "[") || s.is(i, "("):
		a, i = s.group(i)
	case s.is(i, "{"):
		a, i = s.object(i)
	case t.kind == 'i':
		a, i = s.variable(t.text), i+1
	default:
		return argument{}, s.skip(i)
	}
	return s.postfix(a, i)
}

func (s *codeScan) variable(name string) argument {
	if v, ok := s.vars[name]; ok {
		v.path = name
		return v
	}
	if s.lang.name == "awk" && strings.HasPrefix(name, "$") {
		return textArgument(s.field(name[1:]))
	}
	if _, err := strconv.Atoi(name); err == nil {
		return textArgument(name)
	}
	return argument{path: name}
}

// group is [a, b], (a, b) or (a).
func (s *codeScan) group(i int) (argument, int) {
	open := s.tokens[i].text
	items, end := s.args(i+1, true)
	commas := false
	for j := i + 1; j < end; j = s.skip(j) {
		commas = commas || s.is(j, ",")
	}
	if open == "(" && len(items) == 1 && !commas {
		return items[0], end + 1
	}
	list := []string{}
	var nested []argument
	for j, a := range items {
		switch {
		case a.list != nil:
			nested = items
			list = append(list, a.list...)
		default:
			list = append(list, a.asText("item"+strconv.Itoa(j)))
		}
	}
	return argument{known: true, list: list, items: nested}, end + 1
}

// object is {name: value, …} or {"name" => value}.
func (s *codeScan) object(i int) (argument, int) {
	a := argument{fields: map[string]argument{}}
	end := s.skip(i)
	for i++; i < end-1; {
		t := s.tokens[i]
		if (t.kind == 'i' || t.kind == 's') && (s.is(i+1, ":") || s.is(i+1, "=") && s.is(i+2, ">")) {
			j := i + 2
			if s.is(i+1, "=") {
				j++
			}
			a.fields[t.text], i = s.eval(j, true)
			continue
		}
		i = s.skip(i)
	}
	return a, end
}

// postfix follows ".name", "(…)" and "[…]" after an operand.
func (s *codeScan) postfix(a argument, i int) (argument, int) {
	for i < len(s.tokens) {
		arrow := s.is(i, "-") && s.is(i+1, ">") || s.is(i, ":") && s.is(i+1, ":")
		if arrow {
			i++
		}
		switch {
		case (arrow || s.is(i, ".") && !s.dotJoins()) && i+1 < len(s.tokens) && s.tokens[i+1].kind == 'i':
			name := s.tokens[i+1].text
			i += 2
			if !s.is(i, "(") {
				a = argument{known: a.known && a.list == nil && a.path == "", text: a.text, path: strings.TrimPrefix(a.path+"."+name, ".")}
				continue
			}
			args, end := s.args(i+1, true)
			a, i = s.method(a, name, args), end+1
		case s.is(i, "("):
			args, end := s.args(i+1, true)
			a, i = s.method(argument{path: a.path}, "", args), end+1
		case s.is(i, "[") && (a.list != nil || a.path != ""):
			index, end := s.args(i+1, true)
			next := argument{}
			if n, err := strconv.Atoi(strings.Trim(firstText(index), " ")); err == nil && n >= 0 && n < len(a.list) {
				next = textArgument(a.list[n])
			}
			a, i = next, end+1
		default:
			return a, i
		}
	}
	return a, i
}

func firstText(args []argument) string {
	if len(args) == 0 || args[0].list != nil {
		return ""
	}
	return args[0].text
}

// method is the value of a call that only puts texts together; other calls have
// an unknown value.
func (s *codeScan) method(a argument, name string, args []argument) argument {
	if name == "" { // a call of a function by its name
		name = a.path[strings.LastIndexByte(a.path, '.')+1:]
		a = argument{path: strings.TrimSuffix(strings.TrimSuffix(a.path, name), ".")}
	}
	first := argument{}
	if len(args) > 0 {
		first = args[0]
	}
	switch name {
	case "split", "to_a", "words":
		switch {
		case a.known && a.list == nil:
			return argument{known: true, list: strings.Fields(a.text)}
		case first.known && first.list == nil: // shlex.split(text)
			return argument{known: true, list: splitCommand(first.text)}
		}
	case "join":
		switch {
		case a.list != nil: // list.join(" ")
			return textArgument(strings.Join(a.list, first.asText("separator")))
		case a.known && first.list != nil: // " ".join(list)
			return textArgument(strings.Join(first.list, a.text))
		case !a.known && len(args) > 1 && first.list == nil: // os.path.join, path.join, File.join
			return joined(args)
		}
	case "Path", "PurePath", "PosixPath", "resolve":
		if len(args) > 0 {
			return joined(args)
		}
		return a
	case "format":
		values := []string{}
		for i, v := range args {
			values = append(values, v.asText("value"+strconv.Itoa(i)))
		}
		return format(a, argument{list: values})
	case "list", "tuple", "str", "String", "Array", "bytes", "quote", "fspath", "abspath", "realpath", "String.raw":
		return argument{known: first.known, text: first.text, list: first.list}
	case "strip", "trim", "encode", "decode", "toString", "to_s", "lstrip", "rstrip", "chomp", "absolute", "expanduser", "copy", "slice", "as_posix":
		return argument{known: a.known, text: a.text, list: a.list}
	case "concat":
		if a.list != nil && first.list != nil {
			return concat(a, first)
		}
	}
	return argument{}
}

func joined(args []argument) argument {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = a.asText("part" + strconv.Itoa(i))
	}
	return textArgument(path.Join(parts...))
}
