package artifacts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

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

// FixFile returns where in the artifact folder the patch for a finding goes.
func FixFile(finding string) string { return path.Join(stagingFixes, finding+".patch") }

func isFix(rel string) bool {
	folder, name, nested := strings.Cut(rel, "/")
	return nested && folder == stagingFixes && strings.HasSuffix(name, ".patch") && !strings.Contains(name, "/")
}

// Fixes reads the patches that a program left for its findings.
func Fixes(staging string) ([]LeftFix, []Problem, error) {
	root, err := openStaging(staging)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collect fixes: %w", err)
	}
	defer root.Close() // read only: nothing is lost
	dir, err := openFolder(root, stagingFixes, false)
	if err != nil {
		return nil, nil, nil // there are none; Collect names what else stands there
	}
	defer dir.Close()
	list, err := names(dir)
	if err != nil {
		return nil, nil, err
	}
	var fixes []LeftFix
	var problems []Problem
	for _, name := range list {
		rel := path.Join(stagingFixes, name)
		if info, err := dir.Lstat(name); !isFix(rel) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		fix := LeftFix{Finding: strings.TrimSuffix(name, ".patch"), Source: rel}
		if err := CheckFindingID(fix.Finding); err != nil {
			problems = append(problems, Problem{rel, "left out: its name is not a finding's id and .patch"})
			continue
		}
		if fix.Patch, err = readFix(dir, name); err != nil {
			problems = append(problems, Problem{rel, err.Error()})
			continue
		}
		fixes = append(fixes, fix)
	}
	return fixes, problems, nil
}

func readFix(dir *os.Root, name string) ([]byte, error) {
	f, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFix+1))
	if err == nil && len(data) > maxFix {
		err = fmt.Errorf("left out: a fix has more than %d bytes", maxFix)
	}
	return data, err
}
