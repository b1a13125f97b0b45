package install

import (
	"bytes"
	"cmp"
	"errors"
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

// ownConfig is the file, in the folder of our hooks, that the repository's configuration
// includes: it says that core.hooksPath is that folder.
const ownConfig = "config"

// putIntoConfig is rule 2.
func (i *Installer) putIntoConfig(l installation.Layout, in *installation.Record, at, former place) (
	changed bool, err error) {
	file := filepath.Join(l.Common, "config")
	if at.scope == "worktree" {
		file = filepath.Join(i.repo.GitDir, "config.worktree")
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return false, err
	}
	st, err := os.Stat(file)
	if err != nil {
		return false, err
	}
	ours := at.isOurs(l) && in.Config != nil
	if !ours {
		in.Config = &installation.ConfigEdit{Time: st.ModTime(), Own: superqode.HostPath(l.Own)}
	}
	in.Config.Former, in.Config.Value, in.Config.Scope = superqode.HostPath(former.path), superqode.HostPath(former.value), former.scope
	wrote, err := i.writeOwnHooks(l, in, file)
	if err != nil {
		return wrote, err
	}
	if !ours {
		in.Done = false
		if err := i.includeOwn(l, in, file); err != nil {
			return true, err
		}
	}
	if st, err = os.Stat(file); err == nil { // where it is newer the hooks ask git what stands there now
		err = os.Chtimes(filepath.Join(l.Own, ownConfig), st.ModTime(), st.ModTime())
	}
	if err != nil {
		return true, err
	}
	in.Done = true
	saved, err := in.Save(l)
	return wrote || saved, err
}

// writeOwnHooks fills the folder of our hooks; what is there already, byte for
// byte, stays. file is the configuration file that includes ours.
func (i *Installer) writeOwnHooks(l installation.Layout, in *installation.Record, file string) (changed bool, err error) {
	if err := os.MkdirAll(l.Own, 0o755); err != nil {
		return false, err
	}
	full := i.former(l, in)
	own := "[core]\n\thooksPath = " + git.QuoteConfig(l.Own) + "\n"
	if data, err := os.ReadFile(filepath.Join(l.Own, ownConfig)); err != nil || string(data) != own {
		if err := atomicfile.Write(filepath.Join(l.Own, ownConfig), []byte(own), 0o644); err != nil {
			return false, err
		}
		changed = true
	}
	for _, name := range passedOn(full) {
		path, text := filepath.Join(l.Own, name), script(in, name, nextIn(l, in, file)+`next="${dir%/}/`+name+`"`)
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

// former is the folder of the hooks to which ours go on.
func (i *Installer) former(l installation.Layout, in *installation.Record) string {
	return cmp.Or(inside(i.Dir(), string(in.Config.Former)), l.Hooks)
}

// nextIn are the lines by which a hook of ours finds the folder to go on to: that of the
// install or, where the configuration was changed since, what it says beside us. Only this
// repository's configuration is asked: in a session another one has its hooks there, too.
func nextIn(l installation.Layout, in *installation.Record, file string) string {
	former, other, which := `"${0%/*}/../hooks"`, `"${0%/*}/../hooks"`, "--local"
	if in.Config.Former != "" {
		former = text.QuoteSingle(string(in.Config.Former))
	}
	switch in.Config.Scope {
	case "worktree":
		which = "--worktree"
	case "global", "system":
		other = former
	}
	return "dir=" + former + "\n" + `if [ ` + text.QuoteSingle(file) + ` -nt "${0%/*}/` + ownConfig + `" ]; then
	dir=$(git config ` + which + ` --includes --type=path --get-all core.hooksPath | {
		d=` + other + `
		while IFS= read -r v; do [ "$v" = ` + text.QuoteSingle(l.Own) + ` ] || d=$v; done
		printf %s "$d"
	})
fi
`
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

// includeOwn makes core.hooksPath lead to our folder, by an include at the end of the
// repository's configuration: "git config core.hooksPath X", as husky's prepare does it, goes
// on working for whoever calls it, and changes nothing. Both versions are saved before the
// file changes.
func (i *Installer) includeOwn(l installation.Layout, in *installation.Record, file string) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after := append(withNewline(before), "[include]\n\tpath = "+git.QuoteConfig(filepath.Join(l.Own, ownConfig))+"\n"...)
	in.Config.File = superqode.HostPath(file)
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
func restoreConfig(l installation.Layout, e *installation.ConfigEdit) (same bool, err error) {
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
		return false, nil // somebody has taken it out; an include that is left leads to no file
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
