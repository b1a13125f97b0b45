package guard_test

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode/guard"
)

func ExampleCheck() {
	for _, argv := range [][]string{{"git", "status"}, {"git", "reset", "--hard"}} {
		v := guard.Check(context.Background(), argv, guard.Context{})
		fmt.Println(v.Decision, v.Operation)
	}
	// Output:
	// allow status
	// deny reset.hard
}

func ExampleNewPolicy() {
	policy, err := guard.NewPolicy([]string{"commit"}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(policy.Decide("commit"), policy.Decide("push"))
	// Output: allow deny
}
