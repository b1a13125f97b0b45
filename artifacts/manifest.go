package artifacts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
)

const manifestVersion = 1

// maxCounter keeps counters exact for readers whose numbers are doubles.
const maxCounter = 1 << 53

// manifest is manifest.json in memory. Unknown fields are kept beside the known
// ones, so that a rewrite drops nothing.
type manifest struct {
	version  int
	session  string // the session that wrote last
	updated  Time
	counter  int // of the last id given; counts over the whole manifest
	entries  []entry
	versions map[string]int // name → the last version given; see Store.Save
	extra    map[string]json.RawMessage
	index    map[string]int // path → entry, made by byPath
	loose    bool           // nobody waits for what was added to it
	older    older          // entries before these; see recent
}

// entry is one element of "artifacts". raw is the text as it was read and is
// written back as it is; it is nil once the entry is new or changed, and then
// extra holds what this version does not know.
type entry struct {
	Artifact
	raw    json.RawMessage
	extra  map[string]json.RawMessage
	opaque bool // could not be read: kept, not listed
}

// errNewer means that a newer superqode wrote the manifest in a form that this
// one must not touch.
var errNewer = errors.New("written by a newer superqode")

// parseManifest reads a manifest. On a syntax error it returns what stood before
// the error, so that nothing that can still be read is lost. Entries that are no
// artifacts are kept as they are and named in the problems.
func parseManifest(data []byte) (manifest, []Problem, error) {
	m := manifest{version: manifestVersion}
	var problems []Problem
	err := m.read(data)
	if err == nil && !json.Valid(data) {
		err = errors.New("not valid JSON") // the token reader is a little laxer than the grammar
	}
	for i := range m.entries {
		e := &m.entries[i]
		if err := json.Unmarshal(e.raw, &e.Artifact); err != nil {
			e.opaque = true
			why := fmt.Sprintf("entry %d is kept but cannot be read: %v", i+1, err)
			problems = append(problems, Problem{manifestName, why})
			continue
		}
		m.counter = max(m.counter, idNumber(e.ID))
	}
	return m, problems, err
}

// read walks the top-level object token by token; one reader serves whole and
// broken files alike.
func (m *manifest) read(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not a JSON object"), err)
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string) // the decoder gives nothing else as a key
		if key == "artifacts" {
			err = m.readEntries(dec)
		} else {
			var raw json.RawMessage
			if err = dec.Decode(&raw); err == nil {
				err = m.set(key, raw)
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more after the end")
	}
	return nil
}

func (m *manifest) readEntries(dec *json.Decoder) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("artifacts: not a list"), err)
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("artifacts[%d]: %w", len(m.entries), err)
		}
		m.entries = append(m.entries, entry{raw: raw})
	}
	_, err := dec.Token()
	return err
}

func (m *manifest) set(key string, raw json.RawMessage) error {
	var err error
	switch key {
	case "schema_version":
		if err = json.Unmarshal(raw, &m.version); err == nil && m.version < 1 {
			err = fmt.Errorf("%d is no version", m.version)
		}
	case "session_id":
		err = json.Unmarshal(raw, &m.session)
	case "updated_at":
		err = json.Unmarshal(raw, &m.updated)
	case "counter":
		var n int
		if err = json.Unmarshal(raw, &n); err == nil && (n < 0 || n > maxCounter) {
			err = fmt.Errorf("%d is out of range", n)
		}
		if err == nil {
			m.counter = max(m.counter, n)
		}
	case "versions":
		err = json.Unmarshal(raw, &m.versions)
	default:
		if m.extra == nil {
			m.extra = map[string]json.RawMessage{}
		}
		m.extra[key] = raw
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// encode writes the manifest as indented JSON with a final newline.
func (m *manifest) encode() ([]byte, error) {
	list := make([]json.RawMessage, len(m.entries))
	for i := range m.entries {
		var err error
		if list[i], err = m.entries[i].encode(); err != nil {
			return nil, err
		}
	}
	data, err := withExtra(struct {
		SchemaVersion int               `json:"schema_version"`
		SessionID     string            `json:"session_id"`
		UpdatedAt     Time              `json:"updated_at"`
		Counter       int               `json:"counter"`
		Artifacts     []json.RawMessage `json:"artifacts"`
		Versions      map[string]int    `json:"versions,omitempty"`
	}{manifestVersion, m.session, m.updated, m.counter, list, m.versions}, m.extra)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", " "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func (e *entry) encode() (json.RawMessage, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	return withExtra(e.Artifact, e.extra)
}

// change replaces the entry's artifact and keeps the fields that this version
// does not know.
func (e *entry) change(a Artifact) {
	if e.raw != nil {
		known := map[string]json.RawMessage{}
		if b, err := json.Marshal(e.Artifact); err == nil {
			_ = json.Unmarshal(b, &known) // what Marshal wrote is an object
		}
		var old map[string]json.RawMessage
		_ = json.Unmarshal(e.raw, &old) // it was read before
		maps.DeleteFunc(old, func(k string, _ json.RawMessage) bool {
			return known[k] != nil || k == "path_bytes" || k == "original_file_bytes"
		})
		e.raw, e.extra = nil, old
	}
	e.Artifact = a
}

// withExtra encodes v, an object, with the unknown fields after the known ones.
func withExtra(v any, extra map[string]json.RawMessage) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err != nil || len(extra) == 0 {
		return data, err
	}
	more, err := json.Marshal(extra)
	if err != nil {
		return nil, err
	}
	return slices.Concat(data[:len(data)-1], []byte{','}, more[1:]), nil
}

// add appends a new entry and gives it its id.
func (m *manifest) add(a Artifact) Artifact {
	m.counter++
	a.ID = makeID(a.Type, m.counter)
	m.entries = append(m.entries, entry{Artifact: a})
	if m.index != nil {
		m.index[a.Path.String()] = len(m.entries) - 1
	}
	return a
}

func (m *manifest) touch(id superqode.SessionID, now time.Time) {
	m.updated = At(now)
	if !id.IsZero() {
		m.session = id.String()
	}
}

// byPath returns the entry whose file is at p, or nil. The pointer is valid until
// the next add.
func (m *manifest) byPath(p string) *entry {
	if m.index == nil {
		m.index = make(map[string]int, len(m.entries))
		for i := range m.entries {
			if e := &m.entries[i]; !e.opaque {
				m.index[e.Path.String()] = i
			}
		}
	}
	if i, ok := m.index[p]; ok {
		return &m.entries[i]
	}
	return nil
}

func (m *manifest) artifacts() []Artifact {
	var list []Artifact
	for i := range m.entries {
		if !m.entries[i].opaque {
			list = append(list, m.entries[i].Artifact)
		}
	}
	return list
}

// idNumber returns the counter in an artifact's id, or 0.
func idNumber(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
	if err != nil || n < 0 || n > maxCounter {
		return 0
	}
	return n
}
