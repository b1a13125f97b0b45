//go:build !windows

// Command superqode runs a program in a session on a git repository and leaves
// the repository as it was.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-2d964004/superqode/cmd/internal/cli"
	"github.com/seed-2d964004/superqode/internal/shim"
)

// version is stamped by the build: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	if exe, err := os.Executable(); err == nil && (shim.Serves(exe) || shim.Installed(os.Args)) { // superqode-shim is not installed
		dir, _ := os.Getwd() // deleted: git tells about it
		os.Exit(shim.Main(context.Background(), shim.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Exe: exe, Args: os.Args, Env: os.Environ(), Dir: dir}))
	}
	cli.LimitMemory(os.Getenv)
	dir, _ := os.Getwd() // deleted: said where it matters
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	// A reader that goes away must not kill us on the way down; caught, not
	// ignored, because programs would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Main(context.Background(), cli.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Dir: dir, Signals: signals, Version: version,
	}, os.Args[1:]...))
}
