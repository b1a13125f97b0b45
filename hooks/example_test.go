package hooks_test

import (
	"fmt"

	"github.com/seed-2d964004/superqode/hooks"
)

func ExampleServes() {
	for _, name := range []string{"pre-push", "reference-transaction", "git"} {
		fmt.Println(name, hooks.Serves(name))
	}
	// Output:
	// pre-push true
	// reference-transaction true
	// git false
}
