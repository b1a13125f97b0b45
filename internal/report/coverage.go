package report

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"path"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
)

// maxCoverage bounds what is read of a coverage file, in bytes.
const maxCoverage = 32 << 20

// coverage is what the coverage files among a session's artifacts say: those whose names begin
// with "before" of how it was, all others of how it is. What cannot be read counts for
// nothing.
func (f Files) coverage(list []artifacts.Ref) (c artifacts.Coverage, err error) {
	store, err := artifacts.Open(f.Origin)
	if err != nil {
		return c, err
	}
	var before, after covered
	for _, a := range list {
		if a.Type != artifacts.TypeCoverage {
			continue
		}
		data, err := store.Read(artifacts.Artifact{ID: a.ID, Path: a.Path}, maxCoverage)
		if err != nil {
			return c, err
		}
		side := &after
		if strings.HasPrefix(path.Base(a.Path.String()), "before") {
			side = &before
		}
		side.read(data)
	}
	c.Before, c.After = before.percent(), after.percent()
	return c.Compared(), nil
}

// covered counts lines or statements.
type covered struct{ hit, all float64 }

func (c covered) percent() *float64 {
	if c.all == 0 {
		return nil
	}
	return new(100 * c.hit / c.all)
}

// read adds what a file says: a profile of Go's, lcov's records, or Cobertura's XML.
func (c *covered) read(data []byte) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		var doc struct {
			XMLName xml.Name `xml:"coverage"`
			Hit     float64  `xml:"lines-covered,attr"`
			All     float64  `xml:"lines-valid,attr"`
		}
		if xml.Unmarshal(data, &doc) == nil && doc.All >= doc.Hit {
			c.hit, c.all = c.hit+doc.Hit, c.all+doc.All
		}
		return
	}
	goProfile := bytes.HasPrefix(data, []byte("mode: "))
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		switch words := strings.Fields(sc.Text()); {
		case goProfile && len(words) == 3: // file:1.2,3.4 statements count
			n, _ := strconv.ParseFloat(words[1], 64)
			if c.all += n; words[2] != "0" {
				c.hit += n
			}
		case goProfile || len(words) != 1:
		case strings.HasPrefix(words[0], "LF:"):
			n, _ := strconv.ParseFloat(words[0][3:], 64)
			c.all += n
		case strings.HasPrefix(words[0], "LH:"):
			n, _ := strconv.ParseFloat(words[0][3:], 64)
			c.hit += n
		}
	}
}
