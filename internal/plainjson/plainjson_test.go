package plainjson_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/seed-2d964004/superqode/internal/plainjson"
)

type document struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	On    bool     `json:"on"`
	List  []string `json:"list"`
}

func read(data []byte) (d document, ok bool) {
	ok = plainjson.Read(data, plainjson.Fields{"name": &d.Name, "count": &d.Count, "on": &d.On, "list": &d.List})
	return d, ok
}

// hold is the law: what is understood is understood as encoding/json does.
func hold(t *testing.T, data []byte) {
	t.Helper()
	got, ok := read(data)
	if !ok {
		return
	}
	var want document
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("%q is understood, encoding/json says %v", data, err)
	}
	if got.Name != want.Name || got.Count != want.Count || got.On != want.On || !slices.Equal(got.List, want.List) || (got.List == nil) != (want.List == nil) {
		t.Errorf("%q is read as %+v, want %+v", data, got, want)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"name":"é x","count":12,"on":true,"list":["a","b"]}`: true,
		" {\n\t\"name\" : \"\" }\r\n":                          true,
		`{}`:                                                   true, `{"list":[]}`: true, `{"list":null}`: true, `{"count":0,"on":false}`: true,
		``: false, `{`: false, `{}}`: false, `[]`: false, `null`: false, `{"name":"a\n"}`: false, "{\"name\":\"\n\"}": false, "{\"name\":\"\xff\"}": false,
		`{"name":null}`: false, `{"count":1.5}`: false, `{"count":-1}`: false, `{"count":01}`: false, `{"count":1e3}`: false, `{"count":1234567890}`: false,
		`{"on":1}`: false, `{"list":["a",]}`: false, `{"list":["a"`: false, `{"name":"a",}`: false, `{"other":1}`: false, `{"name":"a","name":"b"}`: false,
		`{"name":"a" "count":1}`: false, `{"NAME":"a"}`: false, `{"on":trueish}`: false, `{"name":"a`: false,
	} {
		if _, ok := read([]byte(text)); ok != want {
			t.Errorf("%q: understood %v, want %v", text, ok, want)
		}
		hold(t, []byte(text))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"name":"é x","count":12,"on":true,"list":["a","b"]}`))
	f.Add([]byte(`{"count":00}`))
	f.Fuzz(hold)
}
