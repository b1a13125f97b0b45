package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-2d964004/superqode"
)

// checker holds a value against a JSON Schema. It knows the keywords that our
// schemas use and fails on any other, and it is stricter than the specification in
// one point: a key that the schema does not list is wrong, so that code and schema
// cannot drift apart.
type checker struct {
	defs  map[string]any
	wrong []string
}

func (c *checker) fail(at, format string, args ...any) {
	c.wrong = append(c.wrong, at+": "+fmt.Sprintf(format, args...))
}

func (c *checker) check(at string, schema map[string]any, v any) {
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		arg := schema[key]
		switch key {
		case "$schema", "title", "description", "$defs", "items", "required":
		case "$ref":
			name := strings.TrimPrefix(arg.(string), "#/$defs/")
			def, ok := c.defs[name].(map[string]any)
			if !ok {
				c.fail(at, "no definition %q", name)
				continue
			}
			c.check(at, def, v)
		case "type":
			names, ok := arg.([]any)
			if !ok {
				names = []any{arg}
			}
			if !slices.ContainsFunc(names, func(n any) bool { return hasType(n.(string), v) }) {
				c.fail(at, "%v is no %v", v, arg)
			}
		case "const":
			if arg != v {
				c.fail(at, "%v is not %v", v, arg)
			}
		case "enum":
			if !slices.Contains(arg.([]any), v) {
				c.fail(at, "%v is none of %v", v, arg)
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(s) {
				c.fail(at, "%q does not match %s", s, arg)
			}
		case "minLength":
			if s, ok := v.(string); ok && float64(len(s)) < arg.(float64) {
				c.fail(at, "%q is too short", s)
			}
		case "minimum":
			if n, ok := v.(float64); ok && n < arg.(float64) {
				c.fail(at, "%v is less than %v", n, arg)
			}
		case "maximum":
			if n, ok := v.(float64); ok && n > arg.(float64) {
				c.fail(at, "%v is more than %v", n, arg)
			}
		case "anyOf":
			c.anyOf(at, arg.([]any), v)
		case "properties":
			c.properties(at, schema, v)
		default:
			c.fail(at, "the test does not know the keyword %q", key)
		}
	}
	if list, ok := v.([]any); ok {
		for i, e := range list {
			c.check(fmt.Sprintf("%s[%d]", at, i), schema["items"].(map[string]any), e)
		}
	}
}

func (c *checker) anyOf(at string, options []any, v any) {
	for _, o := range options {
		sub := &checker{defs: c.defs}
		if sub.check(at, o.(map[string]any), v); len(sub.wrong) == 0 {
			return
		}
	}
	c.fail(at, "%v fits none of the alternatives", v)
}

func (c *checker) properties(at string, schema map[string]any, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	props := schema["properties"].(map[string]any)
	for _, r := range schema["required"].([]any) {
		if _, ok := m[r.(string)]; !ok {
			c.fail(at, "%v is missing", r)
		}
	}
	for k, e := range m {
		if p, ok := props[k].(map[string]any); ok {
			c.check(at+"."+k, p, e)
		} else {
			c.fail(at, "the schema does not list %q", k)
		}
	}
}

func hasType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// against returns what is wrong with data, "" for nothing.
func against(t *testing.T, schema string, data []byte) string {
	t.Helper()
	text, err := Schema(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	c := &checker{defs: s["$defs"].(map[string]any)}
	c.check("$", s, v)
	return strings.Join(c.wrong, "\n")
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]ReportInput{"full": fullInput(t), "bare": bareInput(t)} {
		result, err := json.Marshal(in.Result)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := against(t, "result", result); wrong != "" {
			t.Errorf("%s result: %s", name, wrong)
		}
		report, err := NewReport(in).JSON()
		if err != nil {
			t.Fatal(err)
		}
		if wrong := against(t, "qr", report); wrong != "" {
			t.Errorf("%s report: %s", name, wrong)
		}
	}
	if _, err := Schema("../x"); !errors.Is(err, superqode.ErrNotFound) {
		t.Errorf("an unknown schema: %v", err)
	}
	// The checker itself must be able to fail.
	for _, bad := range []string{`{}`, `null`, `{"schema_version":2}`} {
		if against(t, "result", []byte(bad)) == "" {
			t.Errorf("%s fits the schema of results", bad)
		}
	}
}
