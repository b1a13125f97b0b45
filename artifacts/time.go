package artifacts

import (
	"encoding/json"
	"time"
)

// Time is a moment in JSON: RFC 3339 in UTC, and "" for the zero value.
type Time struct{ time.Time }

// At wraps t.
func At(t time.Time) Time { return Time{t} }

// MarshalText writes RFC 3339 in UTC, or nothing for the zero value.
func (t Time) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UTC().AppendFormat(nil, time.RFC3339Nano), nil
}

// MarshalJSON writes MarshalText's text as a JSON string.
func (t Time) MarshalJSON() ([]byte, error) {
	b, err := t.MarshalText()
	if err != nil {
		return nil, err
	}
	return json.Marshal(string(b))
}

// UnmarshalText reads RFC 3339, or the zero value from an empty text.
func (t *Time) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*t = Time{}
		return nil
	}
	t.Time, err = time.Parse(time.RFC3339Nano, string(b))
	return err
}

// UnmarshalJSON reads a JSON string as UnmarshalText does.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return t.UnmarshalText([]byte(s))
}
