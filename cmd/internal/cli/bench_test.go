package cli

import "testing"

// BenchmarkParser measures what every command pays before it begins.
func BenchmarkParser(b *testing.B) {
	for b.Loop() {
		if _, err := newParser(newApp(IO{}), ""); err != nil {
			b.Fatal(err)
		}
	}
}
