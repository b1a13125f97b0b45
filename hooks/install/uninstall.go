package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/installation"
)

// Removal is what guard uninstall did.
type Removal struct {
	// Installed is false when there was nothing of ours.
	Installed bool
	// Kept are files that stand there because somebody replaced one of our hooks, or
	// deleted it, while the user's own hook lay aside: nothing of the user's is thrown
	// away.
	Kept []string
	// Config is false when the configuration was changed by somebody else since, so
	// that it is not, byte for byte, what it was.
	Config bool
}

// Uninstall takes the hooks out. What was there before stands there again, byte for
// byte, as far as nobody changed it meanwhile.
func (i *Installer) Uninstall(ctx context.Context) (r Removal, err error) {
	if err := context.Cause(ctx); err != nil {
		return Removal{}, err
	}
	l := i.layout()
	unlock, err := installation.Lock(l.Common)
	if err != nil {
		return Removal{}, installError(err, l)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	in, err := installation.Load(l.State)
	if err != nil { // none, or one that cannot be read: undo what the files themselves show
		in = nil
	}
	if in == nil && !traces(l) {
		return Removal{Config: true}, nil
	}
	r, err = i.takeOut(ctx, l, in)
	return r, installError(err, l)
}

// traces reports whether anything of ours lies in a repository.
func traces(l installation.Layout) bool {
	for _, dir := range []string{l.State, l.Originals, l.Own} {
		if _, err := os.Lstat(dir); err == nil {
			return true
		}
	}
	return len(ourHooks(l.Hooks)) > 0
}

// ourHooks lists the files in a folder that are hooks of ours, whatever their
// names: a hook manager may have renamed one.
func ourHooks(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && isOurs(filepath.Join(dir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

// takeOut undoes both methods; each step can be repeated, and the state goes last.
func (i *Installer) takeOut(ctx context.Context, l installation.Layout, in *installation.Record) (Removal, error) {
	r := Removal{Installed: true, Config: true}
	interrupted := in != nil && !in.Done
	if in != nil && in.Done {
		in.Done = false
		if _, err := in.Save(l); err != nil {
			return r, err
		}
	}
	failpoint.Hit("guard.uninstall.begun")
	if in != nil && in.Config != nil {
		same, err := restoreConfig(l, in.Config)
		if err != nil {
			return r, err
		}
		r.Config = same
		failpoint.Hit("guard.uninstall.config")
	}
	kept, err := i.restoreHooks(l, in, interrupted)
	r.Kept = kept
	if err != nil {
		return r, err
	}
	if err := i.removeOwn(ctx, l); err != nil {
		return r, err
	}
	failpoint.Hit("guard.uninstall.hooks")
	return r, os.RemoveAll(l.State)
}

// removeOwn removes the folder of our hooks, unless git still looks there: then
// the user's own hooks would no longer run, in silence.
func (i *Installer) removeOwn(ctx context.Context, l installation.Layout) error {
	if _, err := os.Lstat(l.Own); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(l.Own)
	for _, e := range entries { // with what a killed install had begun
		if e.Name() == ownConfig || strings.HasPrefix(e.Name(), "."+ownConfig+".tmp-") {
			err = errors.Join(err, os.Remove(filepath.Join(l.Own, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	if at, _, err := i.look(ctx); err == nil && at.set && samePath(at.path, l.Own) {
		out, err := i.run(ctx, "config", "--unset-all", "core.hooksPath")
		if err != nil {
			return errors.Join(err, errors.New(string(out)))
		}
	}
	for _, name := range ourHooks(l.Own) {
		if err := os.Remove(filepath.Join(l.Own, name)); err != nil {
			return err
		}
	}
	if err := os.Remove(l.Own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // somebody put something there
	}
	return nil
}

// restoreHooks is rule 1 backwards.
func (i *Installer) restoreHooks(l installation.Layout, in *installation.Record, interrupted bool) (
	kept []string, err error) {
	restoreTime := folderTime(l.Hooks)
	for _, name := range installation.Deciders() {
		path, err := i.restoreHook(l, name, interrupted)
		if err != nil {
			return kept, err
		}
		if path != "" {
			kept = append(kept, path)
		}
		failpoint.Hit("guard.uninstall.hook")
	}
	for _, name := range ourHooks(l.Hooks) { // under other names: pre-push.old, pre-push.legacy
		if err := os.Remove(filepath.Join(l.Hooks, name)); err != nil {
			return kept, err
		}
	}
	left, err := i.removeOriginals(l)
	if kept = append(kept, left...); err != nil {
		return kept, err
	}
	restoreTime()
	if in != nil && in.MadeFolder {
		if entries, err := os.ReadDir(l.Hooks); err == nil && len(entries) == 0 {
			return kept, os.Remove(l.Hooks)
		}
	}
	return kept, nil
}

// restoreHook brings one name back. The path of a file that was kept next to
// it is returned, or "".
func (i *Installer) restoreHook(l installation.Layout, name string, interrupted bool) (kept string, err error) {
	at, aside := filepath.Join(l.Hooks, name), filepath.Join(l.Originals, name)
	original, err := os.Lstat(aside)
	if target, lerr := os.Readlink(aside); err != nil || lerr == nil && target == "../hooks/"+name {
		if isOurs(at) {
			return "", os.Remove(at)
		}
		return "", nil
	}
	there, err := os.Lstat(at)
	switch {
	case err == nil && os.SameFile(there, original): // set aside by a link, and not replaced yet
		return "", os.Remove(aside)
	case err == nil && isOurs(at), err != nil && interrupted:
		return "", os.Rename(aside, at)
	case err == nil && sameContents(at, aside):
		return "", os.Remove(aside)
	}
	// Somebody replaced our hook, or deleted it: that stays, and so does the original.
	kept = at + ".before-superqode"
	return kept, os.Rename(aside, kept)
}

func sameContents(a, b string) bool {
	x, err1 := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// removeOriginals removes the folder of hooks that were set aside; what is left in
// it and is no link of ours moves into the hooks folder under a name of its own.
func (i *Installer) removeOriginals(l installation.Layout) (kept []string, err error) {
	entries, err := os.ReadDir(l.Originals)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(l.Originals, e.Name())
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "../hooks/") {
			if err := os.Remove(path); err != nil {
				return kept, err
			}
			continue
		}
		to := filepath.Join(l.Hooks, e.Name()+".before-superqode")
		if err := os.Rename(path, to); err != nil {
			return kept, err
		}
		kept = append(kept, to)
	}
	return kept, os.Remove(l.Originals)
}
