package codeexec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-2d964004/superqode/codeexec"
)

// exampleWorkspace makes a workspace in a throw-away directory.
func exampleWorkspace() (ctx context.Context, ws *codeexec.Workspace, done func() error) {
	dir, err := os.MkdirTemp("", "example")
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "origin"), 0o700)
	}
	if err != nil {
		panic(err)
	}
	ctx, reg := context.Background(), registry(dir)
	if ws, err = reg.Acquire(ctx, "chat-7"); err != nil {
		panic(err)
	}
	return ctx, ws, func() error { return errors.Join(reg.Release(ctx, "chat-7"), os.RemoveAll(dir)) }
}

// What one program made is saved under a name, and staged for the next one.
func ExampleWorkspace_CollectOutputs() {
	ctx, ws, done := exampleWorkspace()
	_, err := ws.Run(ctx, codeexec.Program{Args: []string{"sh", "-c", "echo 42 >$OUTPUT_DIR/answer.txt"}})
	if err != nil {
		panic(err)
	}
	made, err := ws.CollectOutputs(ctx, codeexec.Spec{Globs: []string{"out/*"}, MaxFiles: 10, Save: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(made.Files[0].SavedAs, made.Files[0].Version)
	staged, err := ws.StageInputs(ctx, codeexec.Input{From: "artifact://answer.txt", To: "work/in.txt", Pin: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(staged[0].Resolved)
	if err := done(); err != nil {
		panic(err)
	}
	// Output:
	// answer.txt 1
	// answer.txt@1
}

// A program that is talked with while it runs.
func ExampleWorkspace_StartProgram() {
	ctx, ws, done := exampleWorkspace()
	calc, err := ws.StartProgram(ctx, codeexec.Program{Args: []string{"sh", "-c", "while read line; do echo $(($line)); done"}})
	if err != nil {
		panic(err)
	}
	if err := calc.Write(ctx, "6 * 7", true); err != nil {
		panic(err)
	}
	fmt.Println(calc.Yield(ctx, 10*time.Second, 0).Output)
	if err := errors.Join(calc.Close(), done()); err != nil {
		panic(err)
	}
	// Output:
	// 42
}
