package runner

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
)

// BenchmarkOutput passes a program's output through Run into a pipe, beside the
// same with "cat" in Run's place. The ratio is what counts.
func BenchmarkOutput(b *testing.B) {
	const size = 256 << 20
	program := []string{"head", "-c", "268435456", "/dev/zero"}
	drain := func(b *testing.B) (*os.File, chan int64) {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		n := make(chan int64)
		go func() {
			m, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 128<<10))
			r.Close()
			n <- m
		}()
		return w, n
	}
	b.Run("runner", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			w, n := drain(b)
			if _, err := Run(context.Background(), Spec{Args: program, Env: testEnv(), Stdout: w, Log: b.TempDir() + "/log", MaxOutput: 1 << 20}); err != nil {
				b.Fatal(err)
			}
			w.Close()
			if <-n != size {
				b.Fatal("bytes lost")
			}
		}
	})
	b.Run("cat", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			w, n := drain(b)
			c := exec.Command("sh", "-c", "head -c 268435456 /dev/zero | cat")
			c.Stdout = w
			if err := c.Run(); err != nil {
				b.Fatal(err)
			}
			w.Close()
			if <-n != size {
				b.Fatal("bytes lost")
			}
		}
	})
}

// BenchmarkTrue is the price of a run beside that of a bare fork.
func BenchmarkTrue(b *testing.B) {
	b.Run("runner", func(b *testing.B) {
		for b.Loop() {
			if _, err := Run(context.Background(), Spec{Args: []string{"true"}, Env: testEnv()}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
