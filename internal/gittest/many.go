package gittest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Many makes a clean repository with one commit of n text files in a folder tree
// of the shape that source trees have: about twelve files a folder, folders up
// to six deep, sizes from empty to 60 KB with a mean near 5 KB. The same n gives
// the same tree. Files are dated an hour ago, so no index entry is racily clean.
func Many(tb TB, n int) *Fixture {
	tb.Helper()
	return ManyIn(tb, filepath.Join(tempDir(tb), "repo"), n)
}

// ManyIn is Many in the directory dir, which is made.
func ManyIn(tb TB, dir string, n int) *Fixture {
	tb.Helper()
	f := In(tb, dir)
	f.Git("init", "-q")
	if err := f.importFiles(n); err != nil {
		tb.Fatalf("make %d files: %v", n, err)
	}
	f.Git("reset", "-q", "--mixed", "HEAD")
	f.Git("update-index", "-q", "--refresh")
	return f
}

// ManyPath returns the path of the i-th file of Many, slash-separated.
func ManyPath(i int) string {
	const perFolder, fanOut = 12, 6
	folder := i / perFolder
	var parts []string
	for ; folder > 0; folder = (folder - 1) / fanOut {
		parts = append(parts, fmt.Sprintf("%s%d", words[folder%len(words)], folder))
	}
	var b strings.Builder
	for j := len(parts) - 1; j >= 0; j-- {
		b.WriteString(parts[j] + "/")
	}
	fmt.Fprintf(&b, "%s_%d%s", words[i%len(words)], i, extensions[i%len(extensions)])
	return b.String()
}

var (
	words = [...]string{"alpha", "buffer", "config", "driver", "engine", "format", "graph", "handler", "index",
		"kernel", "lexer", "module", "node", "parser", "queue"}
	extensions = [...]string{".go", ".c", ".h", ".md", ".json", ".py", ".txt"}
)

// importFiles writes the files and feeds the same contents to git fast-import,
// which puts them into one pack: a hundred thousand loose objects would take
// minutes.
func (f *Fixture) importFiles(n int) (err error) {
	cmd := exec.Command("git", "-c", "pack.compression=1", "fast-import", "--quiet", "--depth=0")
	cmd.Dir, cmd.Env, cmd.Stderr = f.Dir, f.Env(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w := bufio.NewWriterSize(in, 1<<20)
	err = f.generate(w, n)
	for _, step := range []func() error{w.Flush, in.Close, cmd.Wait} {
		if e := step(); err == nil {
			err = e
		}
	}
	return err
}

func (f *Fixture) generate(w io.Writer, n int) error {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	text := prose(rng, 1<<20)
	past := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	const when = 1704164645 // commitDate in seconds
	if _, err := fmt.Fprintf(w, "commit refs/heads/main\ncommitter Test Author <author@example.com> %d +0000\ndata 5\nmany\n\n", when); err != nil {
		return err
	}
	made := map[string]bool{}
	for i := range n {
		name := ManyPath(i)
		data := fileContents(rng, text, i)
		if _, err := fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", name, len(data), data); err != nil {
			return err
		}
		p := f.Path(name)
		if dir := filepath.Dir(p); !made[dir] {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			made[dir] = true
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(p, past, past); err != nil {
			return err
		}
	}
	return nil
}

// fileContents takes a slice of the text behind a line that no other file has.
func fileContents(rng *rand.Rand, text []byte, i int) []byte {
	size := 0
	switch r := rng.IntN(100); {
	case r < 2: // empty
		return nil
	case r < 70:
		size = 200 + rng.IntN(4000)
	case r < 97:
		size = 4000 + rng.IntN(12000)
	default:
		size = 16000 + rng.IntN(44000)
	}
	start := rng.IntN(len(text) - size)
	return append(fmt.Appendf(nil, "// file %d\n", i), text[start:start+size]...)
}

// prose makes text that compresses about as well as source code does.
func prose(rng *rand.Rand, size int) []byte {
	out := make([]byte, 0, size+64)
	for line := 1; len(out) < size; line++ {
		for range 3 + rng.IntN(7) {
			out = append(out, words[rng.IntN(len(words))]...)
			if rng.IntN(3) == 0 {
				out = fmt.Appendf(out, "%x", rng.Uint32())
			}
			out = append(out, ' ')
		}
		out = append(out, '\n')
	}
	return out
}
