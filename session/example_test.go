package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/session"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	origin := filepath.Join(dir, "origin")
	if err := os.Mkdir(origin, 0o700); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(origin, "notes.txt"), []byte("mine\n"), 0o600); err != nil {
		panic(err)
	}

	m := session.NewManager(session.Config{Home: filepath.Join(dir, "home"), Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}})
	res, err := m.Run(context.Background(),
		session.OpenOptions{Dir: origin, Mode: superqode.ModeSnapshot},
		session.ExecOptions{Args: []string{"sh", "-c", "echo spoilt >notes.txt; exit 3"}})
	if err != nil {
		panic(err)
	}
	fmt.Println("exit code", res.ExitCode)
	for _, c := range res.Changes {
		fmt.Println(c.Type, c.Path)
	}
	notes, err := os.ReadFile(filepath.Join(origin, "notes.txt"))
	if err != nil {
		panic(err)
	}
	fmt.Print(string(notes))
	// Output:
	// exit code 3
	// modified notes.txt
	// mine
}
