package revert_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/revert"
)

// A program may do what it likes with a directory, and it comes back.
func Example() {
	tmp, err := os.MkdirTemp("", "revert-*")
	check(err)
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "dir")
	check(os.Mkdir(dir, 0o755))
	check(os.WriteFile(filepath.Join(dir, "notes"), []byte("mine\n"), 0o640))

	ctx := context.Background()
	before, err := revert.Take(ctx, dir, revert.Options{Store: filepath.Join(tmp, "store.git")})
	check(err)

	check(os.WriteFile(filepath.Join(dir, "notes"), []byte("gone\n"), 0o600))
	check(os.WriteFile(filepath.Join(dir, "litter"), nil, 0o644))
	found, err := before.Verify(ctx, revert.Stat)
	check(err)
	for _, d := range found.Differences {
		fmt.Println(d)
	}

	done, err := before.Restore(ctx, revert.Full)
	check(err)
	text, err := os.ReadFile(filepath.Join(dir, "notes"))
	check(err)
	fmt.Printf("%v %t %s", done.Paths, done.Verified, text)
	// Output:
	// litter: created
	// notes: modified
	// [litter notes] true mine
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
