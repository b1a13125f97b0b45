package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Schema returns a JSON Schema (draft 7, which editors know) of superqode.yaml,
// indented, with a newline at its end.
func Schema() []byte {
	root := schemaOf(table())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "superqode.yaml"
	root["description"] = "Configuration of superqode."
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(root) // maps, texts and numbers always encode
	return b.Bytes()
}

func schemaOf(f *field) map[string]any {
	s := map[string]any{}
	if f.doc != "" {
		s["description"] = f.doc
	}
	if f.def != nil {
		s["default"] = f.def
	}
	var types []string
	switch f.kind {
	case section, object:
		types = []string{"object"}
		schemaOfFields(f, s)
	case textKind:
		types = []string{"string"}
		if len(f.choices) > 0 {
			s["enum"] = f.choices
			break
		}
		types = append(types, "number", "boolean") // they count as they are written
		if f.check != nil && f.check("") != nil {
			s["minLength"] = 1
		}
	case duration:
		types, s["minimum"] = []string{"string", "integer"}, 1
		s["pattern"] = `^\+?([0-9]+|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	case integer:
		types, s["minimum"] = []string{"integer"}, f.min
		if f.max > 0 {
			s["maximum"] = f.max
		}
	case boolean:
		types = []string{"boolean"}
	case list:
		types, s["items"] = []string{"array"}, schemaOf(f.item)
	case dict:
		types, s["additionalProperties"] = []string{"object"}, schemaOf(f.item)
	}
	if f.kind == section || f.kind != object && f.name != "" && !f.required { // a key without a value sets nothing
		types = append(types, "null")
		if f.choices != nil {
			s["enum"] = append(texts(f.choices...), nil)
		}
	}
	s["type"] = types
	return s
}

func schemaOfFields(f *field, s map[string]any) {
	properties := map[string]any{}
	var required []string
	for i := range f.fields {
		c := &f.fields[i]
		properties[c.name] = schemaOf(c)
		if c.required {
			required = append(required, c.name)
		}
	}
	s["properties"], s["additionalProperties"] = properties, false
	if required != nil {
		s["required"] = required
	}
	if f.oneOf != nil {
		var choices []any
		for _, name := range f.oneOf {
			set := map[string]any{name: map[string]any{"not": map[string]any{"type": "null"}}}
			choices = append(choices, map[string]any{"required": []string{name}, "properties": set})
		}
		s["oneOf"] = choices
	}
}

// Init returns the text of a new superqode.yaml: every key with its description
// and its default, commented out, so that the file changes nothing until
// somebody edits it.
func Init() string {
	var b strings.Builder
	b.WriteString("# Configuration of superqode for this repository. This file lists every key with\n" +
		"# its default; remove the # to change one. superqode.local.yaml, beside this file,\n" +
		"# overrides it and is meant for one person: put it into .gitignore.\n" +
		"# `superqode config show` prints each value and where it comes from.\n")
	initFields(&b, table(), "")
	return b.String()
}

func initFields(b *strings.Builder, f *field, indent string) {
	for i := range f.fields {
		c := &f.fields[i]
		fmt.Fprintf(b, "\n%s# %s\n", indent, c.doc)
		if len(c.choices) > 0 {
			fmt.Fprintf(b, "%s# One of %s.\n", indent, strings.Join(c.choices, ", "))
		}
		if c.kind == section {
			fmt.Fprintf(b, "%s%s:\n", indent, c.name)
			initFields(b, c, indent+"  ")
			continue
		}
		if c.example != "" {
			fmt.Fprintf(b, "%s# For example:\n%s#   %s:\n", indent, indent, c.name)
			for line := range strings.SplitSeq(c.example, "\n") {
				fmt.Fprintf(b, "%s#     %s\n", indent, line)
			}
		}
		fmt.Fprintf(b, "%s#%s: %s\n", indent, c.name, Value{Value: c.def}.Text())
	}
}
