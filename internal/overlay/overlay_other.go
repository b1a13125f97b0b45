//go:build !linux

package overlay

import (
	"context"
	"errors"
	"os"
)

var errLinux = errors.New("overlay mounts are a part of Linux")

// Mount is an overlay that this process has open: none, here.
type Mount struct{}

// Open reports that there are no overlays here.
func Open(context.Context, string, Layers) (*Mount, error) { return nil, errLinux }

// Copy returns none.
func (*Mount) Copy() (*os.File, error) { return nil, errLinux }

// Dir is nowhere.
func (*Mount) Dir() string { return "" }

// Close does nothing.
func (*Mount) Close() error { return nil }

// Sync has nothing to wait for.
func Sync(Layers) error { return nil }

// Lost reports false.
func Lost(Layers) bool { return false }

// Shows reports false.
func Shows(string, string, string) bool { return false }

// Serve refuses.
func Serve([]string) int { return 125 }

// Checked reports that there are no overlays here.
func Checked(context.Context, string, string, string) error { return errLinux }

// Forget has nothing to forget.
func Forget(string) error { return nil }

// Check reports that there are no overlays here.
func Check(context.Context, string, string) error { return errLinux }
