package layers

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/mode"
)

// Bounds on what is looked for in the output of one program.
const (
	maxLooked      = 8 << 20 // bytes of output, from its beginning
	maxLookedLine  = 4 << 10
	maxLookedPaths = 100 // more are counted for the place that they lie in
)

// SeeRefusals looks in the recorded output of a program that the kernel layer held for
// what it was refused, and writes that down. A program that hides its errors is not
// seen.
func (g *Guard) SeeRefusals(h *Handler, held *kernel.Confiner, output, cwd string) error {
	in, err := atomicfile.Open(output)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	var said bytes.Buffer
	w := g.Redactor().IfText(&said)
	_, err = io.CopyN(w, in, maxLooked)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := g.grounds(cwd, held)
	if held.Layer.By == kernel.Mounts {
		at.denials = []string{readOnly, busy}
	}
	for _, r := range refusals(said.Bytes(), at, mayWrite) {
		if err := h.write(guard.Attempt{Operation: "write", Layer: guard.LayerKernel, At: time.Now().UTC(),
			Dir: superqode.HostPath(cwd), Path: r.Path, Count: r.Count}.Tidy()); err != nil {
			return err
		}
	}
	return nil
}

// grounds are the places of a session, as its program sees them.
type grounds struct {
	cwd    string   // where the program was started
	origin string   // "" where the program works in it
	closed []string // what the kernel layer protects
	open   []string // what lies in one of these and is writable all the same
	// denials are the errors that the kernel layer gives: mounts give two, and with them
	// "Permission denied" is about something else, a file that is no program for example.
	denials []string
}

func (g *Guard) grounds(cwd string, held *kernel.Confiner) grounds {
	rec := &g.Rec
	at := grounds{cwd: cwd, denials: denials, closed: slices.Concat(held.Plan.ReadOnly(), held.Plan.Deny)}
	for _, dir := range []string{string(rec.Inside()), g.ArtifactDir(), filepath.Join(g.Folder, "tmp"), g.TmpDir()} {
		at.open = append(at.open, superqode.RealPrefix(dir))
	}
	if !mode.Of(rec.Mode).InPlace && rec.Inside() != rec.Origin {
		at.origin = string(rec.Origin)
	}
	return at
}

// in returns the protected place that a path lies in, or "".
func (at grounds) in(path string) string {
	best := ""
	for _, dir := range at.closed {
		if dir != "" && superqode.Within(path, dir) && len(dir) > len(best) {
			best = dir
		}
	}
	for _, dir := range at.open {
		if superqode.Within(path, dir) && len(dir) >= len(best) {
			return ""
		}
	}
	return best
}

// denials are what the C library, Go, Python, Rust and Node call EROFS, EACCES, EPERM
// and EBUSY, without the first letter, which is a capital for some.
var denials = []string{readOnly, busy, "ermission denied", "peration not permitted"}

const (
	readOnly = "ead-only file system"
	busy     = "evice or resource busy"
)

// refusals finds in a program's output the lines that say that writing a protected
// path was refused. may reports whether the path can be written outside of the session:
// what the user may not write either, the kernel layer did not refuse.
func refusals(output []byte, at grounds, may func(path string) bool) []artifacts.KernelRefusal {
	counts, seen := map[string]int{}, map[int]bool{}
	for _, text := range at.denials {
		for from := 0; ; {
			i := bytes.Index(output[from:], []byte(text))
			if i < 0 {
				break
			}
			hit := from + i
			from = hit + len(text)
			start := bytes.LastIndexByte(output[:hit], '\n') + 1
			end := len(output)
			if n := bytes.IndexByte(output[hit:], '\n'); n >= 0 {
				end = hit + n
			}
			if seen[start] || end-start > maxLookedLine {
				continue
			}
			seen[start] = true
			path, place := at.named(string(output[start:end]), hit-start, text == readOnly)
			if path == "" || counts[path] == 0 && !may(path) {
				continue
			}
			if counts[path] == 0 && len(counts) >= maxLookedPaths {
				path = place
			}
			counts[path]++
		}
	}
	return byCount(counts)
}

// named returns the first protected path that a line names. A relative path is one of
// the folder that the program was started in; where that is writable, a file system
// that is read-only can only be the origin's.
func (at grounds) named(line string, hit int, readOnly bool) (path, place string) {
	for _, word := range paths(line, hit) {
		if word == "" {
			continue
		}
		tries := []string{superqode.Under(at.cwd, word)}
		if readOnly && at.origin != "" && !filepath.IsAbs(word) {
			tries = append(tries, filepath.Join(at.origin, word))
		}
		for _, try := range tries {
			try = strings.ToValidUTF8(filepath.Clean(try), "\uFFFD")
			if place := at.in(try); place != "" {
				return try, place
			}
		}
	}
	return "", ""
}

// paths returns what may be a path in a line in which an error's text stands at hit:
// what stands in quotes, what begins with a slash, and the word before ": TEXT".
func paths(line string, hit int) []string {
	var list []string
	for _, pair := range []string{"''", "\"\"", "``", "‘’", "“”", "`'"} {
		q := []rune(pair)
		for rest := line; ; {
			_, after, ok := strings.Cut(rest, string(q[0]))
			if !ok {
				break
			}
			word, after, ok := strings.Cut(after, string(q[1]))
			if !ok {
				break
			}
			list, rest = append(list, word), after
		}
	}
	before := strings.TrimRight(line[:max(0, hit-1)], " ") // the text's first letter
	if before, ok := strings.CutSuffix(before, ":"); ok {
		if i := strings.Index(" "+before, " /"); i >= 0 {
			list = append(list, before[i:])
		}
		list = append(list, before[strings.LastIndexByte(before, ' ')+1:])
	}
	return append(list, slices.DeleteFunc(strings.FieldsFunc(line, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"`:;,()[]<>=|", r)
	}), func(word string) bool { return word[0] != '/' })...)
}

// mayWrite asks the kernel about a path, or the folder that it would be made in.
func mayWrite(path string) bool {
	err := unix.Access(path, unix.W_OK)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		err = unix.Access(filepath.Dir(path), unix.W_OK)
	}
	return err == nil
}

// byCount lists paths, the most frequent first.
func byCount(counts map[string]int) []artifacts.KernelRefusal {
	list := []artifacts.KernelRefusal{}
	for _, path := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, artifacts.KernelRefusal{Path: path, Count: counts[path]})
	}
	slices.SortStableFunc(list, func(a, b artifacts.KernelRefusal) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
