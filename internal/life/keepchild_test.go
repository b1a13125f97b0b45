package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/internal/gc"
)

// childKeep is a whole process that cleans up, restores or puts right.
func childKeep(do string) int {
	m, ctx := childManager(), context.Background()
	var err error
	switch do {
	case "cleanup":
		var res *gc.CleanedUp
		res, err = m.Collector().Cleanup(ctx, gc.CleanupOptions{Dir: os.Getenv("SUPERQODE_TEST_DIR"), OlderThan: 24 * time.Hour, Force: true})
		if res != nil {
			fmt.Fprintf(os.Stderr, "%+v\n", *res)
			for _, s := range res.Spared {
				err = errors.Join(err, s.Err)
			}
		}
	case "restore":
		_, err = gc.Restore(ctx, m.Host, os.Getenv("SUPERQODE_TEST_DIR"), "qe-", filepath.Join(os.Getenv("HOME"), "back"))
	case "fix":
		var list []gc.Finding
		list, err = m.Collector().Fix(ctx, false)
		for _, f := range list {
			fmt.Fprintf(os.Stderr, "%+v\n", f)
			err = errors.Join(err, f.Err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	return 0
}
