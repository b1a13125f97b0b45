package artifacts_test

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-2d964004/superqode/artifacts"
)

func ExampleOpen() {
	origin, err := os.MkdirTemp("", "origin")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(origin)
	ctx := context.Background()
	store, err := artifacts.Open(origin)
	if err != nil {
		panic(err)
	}
	if _, err := store.Add(ctx, artifacts.New{Type: artifacts.TypeLog, Name: "build.log", Path: "logs/build.log", Data: []byte("ok\n")}); err != nil {
		panic(err)
	}
	list, err := store.List(ctx, artifacts.Filter{})
	if err != nil {
		panic(err)
	}
	for _, a := range list {
		fmt.Println(a.Name, a.Size)
	}
	// Output: build.log 3
}
