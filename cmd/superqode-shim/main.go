//go:build !windows

// The shim has one thread that works and ends within milliseconds: how much of a
// processor its cgroup has changes nothing, and finding out takes a tenth of its start.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command superqode-shim stands in front of git inside a session. It is started
// under other names, git and those of git's hooks, from a session's folder.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-2d964004/superqode/internal/shim"
)

// version is stamped by the build: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "superqode-shim:", err)
		os.Exit(126)
	}
	if filepath.Base(exe) == "superqode-shim" && !shim.Installed(os.Args) {
		fmt.Printf("superqode-shim %s: superqode puts it into its sessions as git, and calls it from the hooks of guard install; by itself it does nothing\n", version)
		return
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // deleted: git tells about it
	}
	os.Exit(shim.Main(context.Background(), shim.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Exe: exe, Args: os.Args, Env: os.Environ(), Dir: dir}))
}
