// Package lockfile gives flock-based locks whose release is a return value.
//
// The kernel drops a lock when its process dies, so a held lock means a living
// holder. Lock files are never deleted: deleting one would let two processes
// hold "the same" lock on two inodes.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// ErrHeld means that another process holds the lock.
var ErrHeld = errors.New("lock is held")

// open prepares a lock without opening anything. Opening must not wait for a
// FIFO in the lock file's place, nor follow a link.
func open(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600),
		flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW))
}

// Lock waits until the lock on path is ours or ctx ends. Waiters are served by
// the kernel in turn (blocking flock), not by polling: 32 contenders wait at
// most tens of milliseconds that way, and most of a second with polling.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	if unlock, err = TryLock(path); !errors.Is(err, ErrHeld) {
		return unlock, err
	}
	return wait(ctx, path, (*flock.Flock).Lock)
}

// Share waits until it gets a shared lock on path, or ctx ends; see TryShare.
func Share(ctx context.Context, path string) (unlock func() error, err error) {
	if unlock, err = TryShare(path); !errors.Is(err, ErrHeld) {
		return unlock, err
	}
	return wait(ctx, path, (*flock.Flock).RLock)
}

func wait(ctx context.Context, path string, lock func(*flock.Flock) error) (unlock func() error, err error) {
	l := open(path)
	got := make(chan error, 1)
	go func() { got <- lock(l) }()
	select {
	case err := <-got:
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return l.Unlock, nil
	case <-ctx.Done():
		go func() {
			if <-got == nil {
				_ = l.Unlock()
			}
		}()
		return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
	}
}

// TryLock takes the lock at once or returns an error that wraps ErrHeld. IsHeld
// holds a lock for an instant while it asks, so a busy one is tried a few times
// before it counts as held.
func TryLock(path string) (unlock func() error, err error) {
	return try(path, (*flock.Flock).TryLock)
}

// TryShare takes a shared lock at once, or returns an error that wraps ErrHeld.
// Any number of holders may share a lock; it excludes Lock and TryLock.
func TryShare(path string) (unlock func() error, err error) {
	return try(path, (*flock.Flock).TryRLock)
}

func try(path string, lock func(*flock.Flock) (bool, error)) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l := open(path)
	for pause := time.Millisecond; ; pause *= 4 {
		ok, err := lock(l)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if ok {
			return l.Unlock, nil
		}
		if pause > 16*time.Millisecond {
			break
		}
		time.Sleep(pause)
	}
	return nil, fmt.Errorf("%s: %w", path, ErrHeld)
}

// IsHeld reports whether some process holds the lock on path, shared or not.
// Nobody holds a lock file that does not exist, and it is not created.
func IsHeld(path string) (bool, error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW))
	ok, err := l.TryLock()
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	if ok {
		return false, l.Unlock()
	}
	return true, nil
}
