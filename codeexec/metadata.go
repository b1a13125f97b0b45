package codeexec

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
)

// MetadataFile is the file of a workspace's Metadata, in the workspace.
const MetadataFile = "metadata.json"

const (
	metadataVersion = 1
	maxMetadata     = 1 << 20 // bytes of the file; the oldest entries make room
	maxNoting       = 10 * time.Second
)

// Metadata is what was brought into a workspace and taken out of it. Programs can write to
// it, as to all files of the workspace: what it says of a version is looked up again.
type Metadata struct {
	Version    int                  `json:"version"` // 1
	CreatedAt  time.Time            `json:"created_at"`
	UpdatedAt  time.Time            `json:"updated_at"`
	LastAccess time.Time            `json:"last_access"`
	Inputs     []InputRecord        `json:"inputs"`
	Outputs    []OutputRecord       `json:"outputs"`
	Prepared   map[string]time.Time `json:"prepared"` // the init hooks that have run, by name
}

// InputRecord is one input that was staged.
type InputRecord struct {
	Staged
	Time time.Time `json:"time"`
}

// OutputRecord is one collection.
type OutputRecord struct {
	Globs     []string  `json:"globs"`
	SavedAs   []string  `json:"saved_as"` // names of artifacts
	Versions  []int     `json:"versions"` // of these
	LimitsHit bool      `json:"limits_hit"`
	Time      time.Time `json:"time"`
}

// Metadata returns what is noted of the workspace. What cannot be read, because a program
// wrote something else in its place, counts as nothing.
func (w *Workspace) Metadata(ctx context.Context) (Metadata, error) {
	none := Metadata{Version: metadataVersion, Inputs: []InputRecord{}, Outputs: []OutputRecord{}, Prepared: map[string]time.Time{}}
	info, err := w.Dir.Stat(ctx, MetadataFile)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxMetadata {
		return none, context.Cause(ctx)
	}
	data, err := w.Dir.Read(ctx, MetadataFile)
	m := none
	if err != nil || json.Unmarshal(data, &m) != nil || m.Version != metadataVersion || m.Prepared == nil {
		return none, context.Cause(ctx)
	}
	return m, nil
}

// note changes the metadata, one caller and one process at a time.
func (w *Workspace) note(ctx context.Context, change func(m *Metadata, now time.Time)) (err error) {
	wait, cancel := context.WithTimeoutCause(ctx, maxNoting, superqode.Errorf(superqode.ErrLocked, "somebody holds the lock of the workspace's metadata"))
	defer cancel()
	unlock, err := lockDir(wait, w.Dir.Root())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err := w.Metadata(ctx)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if m.CreatedAt.IsZero() {
		m.CreatedAt = now
	}
	m.UpdatedAt, m.LastAccess = now, now
	change(&m, now)
	data, err := json.MarshalIndent(m, "", "  ")
	for ; err == nil && len(data) > maxMetadata && len(m.Inputs)+len(m.Outputs) > 0; data, err = json.MarshalIndent(m, "", "  ") {
		m.Inputs, m.Outputs = m.Inputs[(len(m.Inputs)+1)/2:], m.Outputs[(len(m.Outputs)+1)/2:]
	}
	if err != nil {
		return err
	}
	temp := ".metadata-" + rand.Text()
	if err = w.Dir.Write(ctx, temp, data); err == nil {
		if err = w.Dir.Rename(ctx, temp, MetadataFile); err != nil { // a program made a directory of it
			err = errors.Join(w.Dir.RemoveAll(ctx, MetadataFile), w.Dir.Rename(ctx, temp, MetadataFile))
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", MetadataFile, err), w.Dir.RemoveAll(context.WithoutCancel(ctx), temp))
	}
	return nil
}

// touch notes that somebody works in the workspace. No run fails for it.
func (w *Workspace) touch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = w.note(ctx, func(*Metadata, time.Time) {})
}

// pinned returns the artifact that an input had when it was first staged, "" for none.
func (m Metadata) pinned(in Input, to string) string {
	for _, r := range m.Inputs {
		if in.Pin && r.From == in.From && r.To == to && r.Version > 0 {
			return r.Resolved
		}
	}
	return ""
}

// lockDir lets one caller and one process at a time do something in a directory, in which
// nothing is written for it.
func lockDir(ctx context.Context, name string) (unlock func() error, err error) {
	dir, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return dir.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), dir.Close())
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), dir.Close())
		}
	}
}
