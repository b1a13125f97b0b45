package guard

import (
	"maps"
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxRounds bounds the rounds of a loop over known words.
const maxRounds = 24

func (c *checker) while(st *state, x *syntax.WhileClause) string {
	out := ""
	for range maxRounds {
		out += c.stmts(st, x.Cond)
		if st.ended || !x.Until && st.status == statusFalse || x.Until && st.status == statusTrue {
			break
		}
		before := st.ended
		out += c.stmts(st, x.Do)
		st.ended = before
		// Another round makes a difference only while there is input to read.
		if st.stdin == nil || *st.stdin == "" || !isKnown(*st.stdin) || len(out) > maxValue {
			break
		}
	}
	st.status = statusOpen
	return out
}

func (c *checker) forClause(st *state, x *syntax.ForClause) string {
	iter, ok := x.Loop.(*syntax.WordIter)
	if !ok {
		c.substitutions(st, x.Loop)
		return c.stmts(st, x.Do)
	}
	items := st.params
	if iter.InPos.IsValid() || len(iter.Items) > 0 {
		items = c.fields(st, iter.Items)
	}
	out := ""
	for i, item := range items {
		if i == maxRounds {
			item = unknownValue(kindOpen, iter.Name.Value)
		}
		st.set(iter.Name.Value, item)
		out += c.stmts(st, x.Do)
		st.ended = false
		if i == maxRounds || len(out) > maxValue {
			break
		}
	}
	st.status = statusOpen
	return out
}

func (c *checker) caseClause(st *state, x *syntax.CaseClause) string {
	word := c.word(st, x.Word)
	var branches []*state
	out, sure := "", false
	for _, item := range x.Items {
		hit := statusFalse
		for _, p := range item.Patterns {
			pattern := c.word(st, p)
			if !isKnown(word) || !isKnown(pattern) {
				hit = statusOpen
				break
			}
			if ok, err := path.Match(strings.ReplaceAll(pattern, "/", "_"), strings.ReplaceAll(word, "/", "_")); ok && err == nil {
				hit = statusTrue
				break
			}
		}
		if hit == statusFalse {
			continue
		}
		b := st.clone()
		out += c.stmts(b, item.Stmts)
		branches = append(branches, b)
		if hit == statusTrue && item.Op == syntax.Break {
			sure = true
			break
		}
	}
	if !sure {
		branches = append(branches, st.clone())
	}
	st.merge(branches...)
	return out
}

// declare is export, declare, local, readonly and typeset.
func (c *checker) declare(st *state, x *syntax.DeclClause) {
	exported := x.Variant != nil && x.Variant.Value == "export"
	remove := false
	for _, a := range x.Args {
		if a.Name == nil {
			if a.Value != nil {
				flag := c.word(st, a.Value)
				exported = exported || strings.HasPrefix(flag, "-") && strings.Contains(flag, "x")
				remove = remove || exported && strings.HasPrefix(flag, "-") && strings.Contains(flag, "n")
				if k, v, ok := strings.Cut(flag, "="); ok && isKnown(k) { // export "A=b"
					st.set(k, v)
					st.export(k)
				}
			}
			continue
		}
		if !a.Naked {
			c.assign(st, a)
		}
		if exported && !remove {
			st.export(a.Name.Value)
		}
	}
	st.status = statusOpen
}

// assign sets a variable.
func (c *checker) assign(st *state, a *syntax.Assign) {
	name := a.Name.Value
	if a.Array != nil {
		var list []string
		keyed := map[string]string{}
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				values := c.fields(st, []*syntax.Word{e.Value})
				list = append(list, values...)
				if w, ok := e.Index.(*syntax.Word); ok {
					keyed[c.word(st, w)] = strings.Join(values, " ")
				}
			}
		}
		v := variable{array: list, keyed: keyed}
		if a.Append {
			old, _ := st.lookup(name)
			v.array = append(append([]string{}, old.array...), list...)
			maps.Copy(keyed, old.keyed)
		}
		if len(v.array) > 0 {
			v.value = v.array[0]
		}
		if len(v.array) > 4096 {
			v = variable{value: unknownValue(kindOpen, name)}
		}
		st.vars[name] = v
		return
	}
	value := ""
	if a.Value != nil {
		value = c.word(st, a.Value)
	}
	if w, ok := a.Index.(*syntax.Word); ok {
		c.assignAt(st, name, c.word(st, w), value)
		return
	}
	if a.Index != nil {
		value = unknownValue(kindOpen, name)
	}
	if a.Append {
		old, _ := st.lookup(name)
		value = old.value + value
	}
	st.set(name, value)
}

// assignAt sets one element of an array: a[KEY]=value.
func (c *checker) assignAt(st *state, name, key, value string) {
	v, _ := st.lookup(name)
	v.unset = false
	if n, err := strconv.Atoi(key); err == nil && n >= 0 && n <= len(v.array) {
		v.array = append([]string{}, v.array...)
		if n == len(v.array) {
			v.array = append(v.array, "")
		}
		v.array[n] = value
		v.value = v.array[0]
	} else {
		v.keyed = maps.Clone(v.keyed)
		if v.keyed == nil {
			v.keyed = map[string]string{}
		}
		v.keyed[key] = value
		v.array = append(append([]string{}, v.array...), value) // "${a[@]}" has it, too
	}
	if len(v.array) > maxElements {
		v = variable{value: unknownValue(kindOpen, name)}
	}
	st.vars[name] = v
}

// maxElements bounds an array that is set element by element: each time it is
// copied.
const maxElements = 512
