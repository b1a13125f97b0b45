package superqode_test

import (
	"errors"
	"fmt"

	"github.com/seed-2d964004/superqode"
)

func ExampleParseRelPath() {
	path, err := superqode.ParseRelPath("src/main.go")
	fmt.Println(path, err)
	_, err = superqode.ParseRelPath("../elsewhere")
	fmt.Println(err != nil)
	// Output:
	// src/main.go <nil>
	// true
}

func ExampleParseMode() {
	_, err := superqode.ParseMode("sandbox")
	fmt.Println(err != nil)
	// Output: true
}

func ExampleHint() {
	err := superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no session %s", "qe-1"), "superqode workspace list")
	fmt.Println(err, errors.Is(err, superqode.ErrNotFound))
	fmt.Println(superqode.Hint(err))
	// Output:
	// no session qe-1 true
	// superqode workspace list
}
