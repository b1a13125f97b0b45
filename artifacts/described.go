package artifacts

import (
	"github.com/seed-2d964004/superqode/internal/ledger"
	"io"
	"os"
	"strings"
)

// What `superqode artifacts add` says about a file inside a session, where the
// store is out of reach: one line of JSON in a file of the artifact folder. It is
// the program's word, and believed as far as its own files go.

// DescriptionsFile is the name of that file.
const DescriptionsFile = ".superqode-artifacts.jsonl"

// maxDescriptions bounds what is read of it.
const maxDescriptions = 8 << 20

// Described is what a program says about a file that it leaves.
type Described struct {
	Path        string `json:"path"` // below the artifact folder
	Type        Type   `json:"type"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Original    string `json:"original_file,omitempty"`
}

// StagingPath returns where below the artifact folder a file of a type is left.
func StagingPath(t Type, name string) string { return t.folder() + "/" + name }

// readDescriptions returns what is said about files, by path; the last word
// counts. What can not be read says nothing.
func readDescriptions(staging *os.Root) map[string]Described {
	all := map[string]Described{}
	f, err := openRegular(staging, DescriptionsFile)
	if err != nil {
		return all
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDescriptions))
	if err != nil {
		return all
	}
	lines, _ := ledger.Parse[Described](data)
	for _, d := range lines {
		if d.Path == "" {
			continue
		}
		if _, err := ParseType(string(d.Type)); err != nil {
			continue
		}
		if strings.ContainsAny(d.Name, "/\x00") || len(d.Name) > 255 || len(d.Description) > 64<<10 {
			continue
		}
		all[d.Path] = d
	}
	return all
}
