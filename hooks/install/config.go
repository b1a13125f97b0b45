package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/failpoint"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/installation"
	"github.com/seed-2d964004/superqode/internal/text"
)

// The file as it was before, and as we left it.
const (
	configBefore = "config.before"
	configAfter  = "config.after"
)

// putIntoConfig is rule 2.
func (i *Installer) putIntoConfig(ctx context.Context, l installation.Layout, in *installation.Record, at place) (
	changed bool, err error) {
	ours := at.set && samePath(at.path, l.Own)
	switch {
	case ours && in.Config == nil:
		return false, superqode.WithHint(fmt.Errorf("core.hooksPath leads to %s, and what stood there before is not known", l.Own), "git config --unset core.hooksPath")
	case !ours:
		in.Config = &installation.ConfigEdit{Former: superqode.HostPath(at.path), Value: superqode.HostPath(at.value),
			Scope: at.scope, Own: superqode.HostPath(l.Own)}
	}
	wrote, err := i.writeOwnHooks(l, in)
	if err != nil {
		return wrote, err
	}
	if ours {
		in.Done = true
		saved, err := in.Save(l)
		return wrote || saved, err
	}
	in.Done = false
	if err := i.editConfig(ctx, l, in, at); err != nil {
		return true, err
	}
	in.Done = true
	_, err = in.Save(l)
	return true, err
}

// writeOwnHooks fills the folder of our hooks; what is there already, byte for
// byte, stays.
func (i *Installer) writeOwnHooks(l installation.Layout, in *installation.Record) (changed bool, err error) {
	former := string(in.Config.Former)
	next := `"${0%/*}/../hooks/`
	if former != "" {
		next = text.QuoteSingle(strings.TrimSuffix(former, "/")+"/") + `"`
	}
	full := former
	if full == "" {
		full = l.Hooks
	}
	if err := os.MkdirAll(l.Own, 0o755); err != nil {
		return false, err
	}
	for _, name := range passedOn(inside(i.Dir(), full)) {
		path, text := filepath.Join(l.Own, name), script(in, name, next+name+`"`)
		if holds(path, text) {
			continue
		}
		if err := atomicfile.Write(path, []byte(text), 0o755); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}

// holds reports whether a hook is a file of its own with this text.
func holds(path, text string) bool {
	data, err := os.ReadFile(path)
	return err == nil && string(data) == text && executable(path)
}

func executable(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0
}

// editConfig makes core.hooksPath lead to our folder. The new contents are made
// next to the file, by git, and both versions are saved before the file changes.
func (i *Installer) editConfig(ctx context.Context, l installation.Layout, in *installation.Record, at place) error {
	file := filepath.Join(l.Common, "config")
	if at.scope == "worktree" {
		file = at.origin
	}
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after, err := i.editedConfig(ctx, l, before, at, file)
	if err != nil {
		return err
	}
	in.Config.File, in.Config.Time = superqode.HostPath(file), st.ModTime()
	if err := errors.Join(os.MkdirAll(l.State, 0o700),
		atomicfile.Write(filepath.Join(l.State, configBefore), before, 0o600),
		atomicfile.Write(filepath.Join(l.State, configAfter), after, 0o600)); err != nil {
		return err
	}
	if _, err := in.Save(l); err != nil {
		return err
	}
	failpoint.Hit("guard.install.config")
	return replaceConfig(file, before, after, time.Time{})
}

// editedConfig is the file with our value in it: in the place of the one that
// stands there, so that "git config core.hooksPath X" goes on working for whoever
// calls it; at the end when the value came from a file that this one includes.
func (i *Installer) editedConfig(ctx context.Context, l installation.Layout, before []byte, at place, file string) (
	[]byte, error) {
	if (at.scope == "local" || at.scope == "worktree") && !samePath(at.origin, file) {
		return append(withNewline(before), "[core]\n\thooksPath = "+git.QuoteConfig(l.Own)+"\n"...), nil
	}
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return nil, err
	}
	copied := filepath.Join(l.State, ".config-new")
	if err := os.WriteFile(copied, before, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(copied)
	err := i.git.Run(ctx, git.Cmd{Args: []string{"config", "--file", copied, "core.hooksPath", l.Own}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 5 { // it stands there several times
		err = i.git.Run(ctx, git.Cmd{Args: []string{"config", "--file", copied, "--add", "core.hooksPath", l.Own}})
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(copied)
}

func withNewline(text []byte) []byte {
	text = bytes.Clone(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return text
}

// replaceConfig writes a configuration file as git does, under its lock file, if
// it still holds what it held. A time that is not zero becomes the file's own.
func replaceConfig(file string, old, fresh []byte, mod time.Time) (err error) {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	lock := file + ".lock"
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, st.Mode().Perm())
	if errors.Is(err, fs.ErrExist) {
		return superqode.WithHint(superqode.Errorf(superqode.ErrLocked,
			"%s is there: git is writing the configuration, or was killed while it did", lock), "rm %s", lock)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(lock))
		}
	}()
	now, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(now, old) {
		err = superqode.Errorf(superqode.ErrConflict, "%s was changed while it was being edited", file)
	}
	if err == nil {
		_, err = f.Write(fresh)
	}
	if err == nil {
		err = f.Chmod(st.Mode().Perm())
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && err == nil && os.Getuid() == 0 {
		err = f.Chown(int(sys.Uid), int(sys.Gid))
	}
	if err = errors.Join(err, atomicfile.Sync(f), f.Close()); err != nil {
		return err
	}
	if !mod.IsZero() {
		if err = os.Chtimes(lock, mod, mod); err != nil {
			return err
		}
	}
	failpoint.Hit("guard.config.written")
	if err = os.Rename(lock, file); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(file))
}

// restoreConfig takes our value out of a configuration file: the saved bytes, if
// it is as we left it; else our lines only. It reports whether the file is as it
// was before.
func (i *Installer) restoreConfig(ctx context.Context, l installation.Layout, e *installation.ConfigEdit) (
	same bool, err error) {
	file := string(e.File)
	if file == "" {
		return true, nil // it was not come to
	}
	if rest, ok := strings.CutPrefix(file, filepath.Dir(string(e.Own))+"/"); ok { // the repository may have been moved
		file = filepath.Join(l.Common, rest)
	}
	now, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	before, err1 := os.ReadFile(filepath.Join(l.State, configBefore))
	after, err2 := os.ReadFile(filepath.Join(l.State, configAfter))
	if err = errors.Join(err, err1, err2); err != nil {
		return false, err
	}
	switch {
	case bytes.Equal(now, before):
		return true, nil
	case bytes.Equal(now, after):
		return true, replaceConfig(file, now, before, e.Time)
	}
	text, found := withoutOurs(string(now), string(before), string(after))
	if !found {
		text, found, err = i.unsetOurs(ctx, l, e, now)
	}
	if err != nil || !found {
		return false, err // core.hooksPath is somebody else's by now
	}
	return false, replaceConfig(file, now, []byte(text), time.Time{})
}

// withoutOurs undoes, in a file that was changed since, what made after of before:
// the lines that were added, where they stand once and together, become those that
// they had replaced. found is false when they do not.
func withoutOurs(now, before, after string) (text string, found bool) {
	b, a := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < len(b) && head < len(a) && b[head] == a[head] {
		head++
	}
	tail := 0
	for tail < len(b)-head && tail < len(a)-head && b[len(b)-1-tail] == a[len(a)-1-tail] {
		tail++
	}
	removed, added := b[head:len(b)-tail], a[head:len(a)-tail]
	ours := strings.Join(added, "")
	if strings.TrimSpace(ours) == "" {
		return "", false
	}
	at := strings.Index("\n"+now, "\n"+ours)
	if at < 0 || strings.Count("\n"+now, "\n"+ours) > 1 {
		return "", false
	}
	rest := now[at+len(ours):]
	// A section of ours in which somebody has written since stays.
	if strings.HasPrefix(strings.TrimSpace(added[0]), "[") && len(removed) == 0 && !startsSection(rest) {
		removed = added[:1]
	}
	return now[:at] + strings.Join(removed, "") + rest, true
}

func startsSection(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text[0] == '['
}

// unsetOurs has git take our value out, or put the former one in its place, on a
// copy.
func (i *Installer) unsetOurs(ctx context.Context, l installation.Layout, e *installation.ConfigEdit, now []byte) (
	text string, found bool, err error) {
	copied := filepath.Join(l.State, ".config-new")
	if err := os.WriteFile(copied, now, 0o600); err != nil {
		return "", false, err
	}
	defer os.Remove(copied)
	out, err := i.git.Output(ctx, git.Cmd{Args: []string{"config", "--file", copied, "-z", "--get-all",
		"core.hooksPath"}})
	if exit, ok := errors.AsType[*git.ExitError](err); ok && exit.Code == 1 {
		return "", false, nil
	}
	values := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if err != nil || len(values) != 1 || values[0] != string(e.Own) {
		return "", false, err
	}
	args := []string{"config", "--file", copied, "--unset", "core.hooksPath"}
	if e.Scope == "local" || e.Scope == "worktree" {
		args = []string{"config", "--file", copied, "core.hooksPath", string(e.Value)}
	}
	if err := i.git.Run(ctx, git.Cmd{Args: args}); err != nil {
		return "", false, err
	}
	data, err := os.ReadFile(copied)
	return string(data), err == nil, err
}
