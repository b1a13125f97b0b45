package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/workspace"
)

func Example() {
	ctx := context.Background()
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)

	dir, err := workspace.Open(filepath.Join(top, "job")) // made if it is missing
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	if err := dir.Write(ctx, "src/main.go", []byte("package main\n")); err != nil {
		log.Fatal(err)
	}
	_, err = dir.Read(ctx, "../../etc/passwd")
	fmt.Println(errors.Is(err, workspace.ErrPathTraversal), err)
	_, err = dir.Read(ctx, "src/none.go")
	fmt.Println(errors.Is(err, superqode.ErrNotFound), err)
	files, err := workspace.Glob(ctx, dir, "**/*.go")
	fmt.Println(files, err)
	// Output:
	// true read ../../etc/passwd: the path leaves the workspace
	// true read src/none.go: no such file or directory
	// [src/main.go] <nil>
}

// An agent may read everything but secrets, and write its own folder.
func ExampleScoped() {
	ctx := context.Background()
	tree := workspace.NewMem()
	for _, name := range []string{"src/a.go", ".env"} {
		if err := tree.Write(ctx, name, []byte("x")); err != nil {
			log.Fatal(err)
		}
	}
	f := workspace.Scoped(tree,
		workspace.WithAllowWrite("out/**"),
		workspace.WithMandatoryDeny("**/.env"),
		workspace.WithViolationLogger(func(_ context.Context, v workspace.Violation) {
			fmt.Println("refused:", v.Operation, v.Path, "-", v.Rule)
		}))
	fmt.Println(f.Write(ctx, "out/report.md", []byte("done")))
	fmt.Println(f.Write(ctx, "src/a.go", nil))
	_, err := f.Read(ctx, ".env")
	fmt.Println(errors.Is(err, workspace.ErrAccessDenied))
	list, err := f.List(ctx, "")
	fmt.Println(list, err)
	// Output:
	// <nil>
	// refused: write src/a.go - not in allow-write
	// write src/a.go: access denied (not in allow-write)
	// refused: read .env - mandatory-deny **/.env
	// true
	// [d out/ d src/] <nil>
}

// Standard tools read a workspace.
func ExampleIOFS() {
	ctx := context.Background()
	tree := workspace.NewMem()
	if err := tree.Write(ctx, "docs/index.html", []byte("<p>")); err != nil {
		log.Fatal(err)
	}
	err := fs.WalkDir(workspace.IOFS(ctx, workspace.Sub(tree, "docs")), ".", func(name string, _ fs.DirEntry, err error) error {
		fmt.Println(name)
		return err
	})
	fmt.Println(err)
	// Output:
	// .
	// index.html
	// <nil>
}

// Commands start in the workspace, with the variables and the limits that they are given.
func ExampleNewRunner() {
	ctx := context.Background()
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	dir, err := workspace.Open(top)
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	r := workspace.WithDefaults(
		workspace.AllowCommands(workspace.NewRunner(dir), []string{"sh"}, nil),
		workspace.Options{Env: workspace.Env{Allow: []string{"PATH"}}, MaxOutput: 5})
	res, err := r.Exec(ctx, "sh", []string{"-c", "echo $NAME; exit 3"}, workspace.Options{
		Env: workspace.Env{Inject: map[string]string{"NAME": "workspace"}},
	})
	fmt.Printf("%q %t %d %v\n", res.Stdout, res.Truncated, res.ExitCode, err)
	_, err = r.Exec(ctx, "rm", []string{"-rf", "/"}, workspace.Options{})
	fmt.Println(errors.Is(err, workspace.ErrAccessDenied))
	// Output:
	// "works" true 3 <nil>
	// true
}
