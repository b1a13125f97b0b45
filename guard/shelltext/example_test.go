package shelltext_test

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/guard/shelltext"
)

func ExampleCheck() {
	for _, line := range []string{"echo git push", "make test && sh -c 'git push'"} {
		fmt.Println(shelltext.Check(context.Background(), line, guard.Context{}).Decision)
	}
	// Output:
	// allow
	// deny
}
