// Command superqode does not run on Windows.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "superqode: Windows is not supported; use it inside WSL 2.")
	os.Exit(1)
}
