package hooks

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/git"
)

// refReader knows the value that a ref has before the transaction. Files are read
// here; where refs are kept in another way git is asked.
type refReader struct {
	a      *answer
	packed []byte
	loaded bool
	index  map[string]string // of packed, once it pays
	asked  int
}

// zeroID stands for "no such ref".
const zeroID = "0000000000000000000000000000000000000000"

// maxRef bounds a loose ref: an object id, or "ref: " and a name.
const maxRef = 8 << 10

// value returns a ref's object id, "ref:<target>" for a symbolic one, zeros
// when there is none; false if that is not known.
func (r *refReader) value(ctx context.Context, ref string) (string, bool) {
	common := r.a.repo.CommonDir
	if r.a.repo.GitDir == "" || strings.Contains(ref, "..") || strings.HasPrefix(ref, "/") {
		return "", false
	}
	if st, err := os.Stat(filepath.Join(common, "reftable")); err == nil && st.IsDir() {
		return r.ask(ctx, ref)
	}
	if st, err := os.Stat(filepath.Join(common, ref)); err == nil && st.Mode().IsRegular() && st.Size() <= maxRef {
		data, err := os.ReadFile(filepath.Join(common, ref))
		if err != nil {
			return "", false
		}
		text := strings.TrimSpace(string(data))
		if target, ok := strings.CutPrefix(text, "ref:"); ok {
			return "ref:" + strings.TrimSpace(target), true
		}
		return text, true
	}
	return r.fromPacked(ref)
}

// fromPacked looks into packed-refs: lines of "<id> <name>", a header with "#" and
// peeled tags with "^".
func (r *refReader) fromPacked(ref string) (string, bool) {
	if !r.loaded {
		data, err := os.ReadFile(filepath.Join(r.a.repo.CommonDir, "packed-refs"))
		if err != nil && !os.IsNotExist(err) {
			return "", false
		}
		r.packed, r.loaded = data, true
	}
	if r.asked++; r.asked > 8 && r.index == nil {
		r.index = map[string]string{}
		for line := range bytes.Lines(r.packed) {
			if id, name, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(" ")); ok && len(id) >= len(zeroID) {
				r.index[string(name)] = string(id)
			}
		}
	}
	if r.index != nil {
		if id, ok := r.index[ref]; ok {
			return id, true
		}
		return zeroID, true
	}
	for rest := r.packed; ; {
		i := bytes.Index(rest, []byte(" "+ref))
		if i < 0 {
			return zeroID, true
		}
		end := rest[i+1+len(ref):]
		if len(end) == 0 || end[0] == '\n' || end[0] == '\r' {
			line := rest[:i]
			return string(line[bytes.LastIndexByte(line, '\n')+1:]), true
		}
		rest = end
	}
}

// ask has git read one ref.
func (r *refReader) ask(ctx context.Context, ref string) (string, bool) {
	bin := r.a.gitBin()
	if bin == "" {
		return "", false
	}
	g := git.At(bin, r.a.Env)
	out, err := g.Output(ctx, git.Cmd{Args: []string{"--git-dir", r.a.repo.GitDir, "for-each-ref",
		"--format=%(symref) %(objectname) %(refname)", ref}})
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(out)) {
		symref, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		id, name, _ := strings.Cut(rest, " ")
		if name == ref && symref != "" {
			return "ref:" + symref, true
		}
		if name == ref {
			return id, true
		}
	}
	return zeroID, true
}
