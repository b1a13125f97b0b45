// Package staging reads what a program leaves for its session in
// SUPERQODE_ARTIFACT_DIR: files that become artifacts, what the program says about
// them, and patches for its findings. The folder is under the program's control and
// the program may still be running: nothing in it is followed or trusted.
package staging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/ledger"
	"github.com/seed-2d964004/superqode/internal/rooted"
)

// Folders of the artifact folder that have no namesake in the store.
const (
	findingsFolder = "findings"
	fixesFolder    = "fixes" // <finding-id>.patch
)

// Folders lists the folders that a program finds in its artifact folder, outermost
// first.
func Folders() []string {
	list := append(artifacts.Folders(), findingsFolder, fixesFolder)
	for _, t := range artifacts.Types() {
		if kind, ok := t.TestKind(); ok {
			list = append(list, path.Join(folderTests, kind))
		}
	}
	return list
}

// MakeFolders makes them in dir. What an earlier program put in their place stays:
// no link is followed, and a folder that cannot be made is one that the program
// has to make itself.
func MakeFolders(dir string) {
	root, err := atomicfile.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	for _, name := range Folders() {
		_ = root.Mkdir(name, 0o700)
	}
}

// What `superqode artifacts add` says about a file inside a session, where the
// store is out of reach: one line of JSON in a file of the artifact folder. It is
// the program's word, and believed as far as its own files go.

// descriptionsFile is the name of that file.
const descriptionsFile = ".superqode-artifacts.jsonl"

// maxDescriptions bounds what is read of it.
const maxDescriptions = 8 << 20

// Described is what a program says about a file that it leaves.
type Described struct {
	Path        string         `json:"path"` // below the artifact folder
	Type        artifacts.Type `json:"type"`
	Name        string         `json:"name,omitempty"`
	Description string         `json:"description,omitempty"`
	Original    string         `json:"original_file,omitempty"`
}

// Leave puts a file called base into an artifact folder, where the session's end
// collects it, and notes what d says of it. It returns the file's path below dir.
func Leave(dir, base string, d Described, in io.Reader) (rel string, err error) {
	create := func(name string) (*os.File, error) {
		d.Path = d.Type.Folder() + "/" + name
		return os.OpenFile(filepath.Join(dir, filepath.FromSlash(d.Path)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(d.Type.Folder())), 0o700); err != nil {
		return "", err
	}
	f, err := create(base)
	for n := 2; errors.Is(err, fs.ErrExist) && n < 10_000; n++ { // another file of that name: both stay
		ext := path.Ext(base)
		f, err = create(fmt.Sprintf("%s-%d%s", base[:len(base)-len(ext)], n, ext))
	}
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, in)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return d.Path, ledger.Append(filepath.Join(dir, descriptionsFile), d)
}

// readDescriptions returns what is said about files, by path; the last word
// counts. What cannot be read says nothing.
func readDescriptions(root *os.Root) map[string]Described {
	all := map[string]Described{}
	data, err := rooted.Read(root, descriptionsFile, maxDescriptions)
	if _, cut := errors.AsType[*rooted.TooLargeError](err); err != nil && !cut {
		return all
	}
	lines, _ := ledger.Parse[Described](data)
	for _, d := range lines {
		if d.Path == "" {
			continue
		}
		if _, err := artifacts.ParseType(string(d.Type)); err != nil {
			continue
		}
		if strings.ContainsAny(d.Name, "/\x00") || len(d.Name) > 255 || len(d.Description) > 64<<10 {
			continue
		}
		all[d.Path] = d
	}
	return all
}

// A program that knows how to mend what it found leaves a patch for it: the file
// fixes/<finding-id>.patch in its artifact folder.

// maxFix bounds one such patch, in bytes.
const maxFix = 16 << 20

// LeftFix is a patch that a program left for a finding.
type LeftFix struct {
	Finding string // its id
	Source  string // below the artifact folder
	Patch   []byte
}

// LeaveFix leaves the patch for a finding in an artifact folder.
func LeaveFix(dir, finding string, patch []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, fixesFolder), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, fixesFolder, finding+".patch"), patch, 0o600)
}

func isFix(rel string) bool {
	folder, name, nested := strings.Cut(rel, "/")
	return nested && folder == fixesFolder && strings.HasSuffix(name, ".patch") && !strings.Contains(name, "/")
}

// Fixes reads the patches that a program left for its findings.
func Fixes(folder string) ([]LeftFix, []artifacts.Problem, error) {
	root, err := rooted.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collect fixes: %w", err)
	}
	defer root.Close() // read only: nothing is lost
	dir, err := rooted.Folder(root, fixesFolder, false)
	if err != nil {
		return nil, nil, nil // there are none; Collect names what else stands there
	}
	defer dir.Close()
	list, err := rooted.Names(dir)
	if err != nil {
		return nil, nil, err
	}
	var fixes []LeftFix
	var problems []artifacts.Problem
	for _, name := range list {
		rel := path.Join(fixesFolder, name)
		if info, err := dir.Lstat(name); !isFix(rel) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		fix := LeftFix{Finding: strings.TrimSuffix(name, ".patch"), Source: rel}
		if err := artifacts.CheckFindingID(fix.Finding); err != nil {
			problems = append(problems, artifacts.Problem{Path: rel,
				Reason: "left out: its name is not a finding's id and .patch"})
			continue
		}
		fix.Patch, err = rooted.Read(dir, name, maxFix)
		if _, big := errors.AsType[*rooted.TooLargeError](err); big {
			err = fmt.Errorf("left out: a fix %w", err)
		}
		if err != nil {
			problems = append(problems, artifacts.Problem{Path: rel, Reason: err.Error()})
			continue
		}
		fixes = append(fixes, fix)
	}
	return fixes, problems, nil
}
