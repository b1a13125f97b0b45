package cli

import (
	"testing"

	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// BenchmarkParser measures what every command pays before it begins.
func BenchmarkParser(b *testing.B) {
	for b.Loop() {
		if _, err := newParser(app.New(app.IO{}), "", ""); err != nil {
			b.Fatal(err)
		}
	}
}
