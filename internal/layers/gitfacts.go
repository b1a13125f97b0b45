package layers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/git"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Facts is what is known of one git binary, kept in the cache below a key of
// the binary. Next to facts.json lies the folder links, which holds a link for
// each file of git's own folder of commands: to the file itself, or, where the
// file is the git binary, to the name git, under which a session has the shim.
type Facts struct {
	SchemaVersion int                `json:"schema_version"`
	ExecPath      superqode.HostPath `json:"exec_path"`
	ExecTime      time.Time          `json:"exec_time"` // of the folder's last change
	Names         []string           `json:"names"`     // in links

	dir string
}

const factsFile = "facts.json"

// Facts returns what is known of g, and finds it out when git is another one
// than last time.
func (m *Machine) Facts(ctx context.Context, g *git.Git) (*Facts, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	key, _, err := fileKey(g.Bin)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(m.CachePath(), "git-"+key)
	if f, err := readFacts(dir); err == nil {
		return f, nil
	}
	if err := m.makeFacts(ctx, g, dir); err != nil {
		return nil, fmt.Errorf("look at git's commands: %w", err)
	}
	return readFacts(dir)
}

func readFacts(dir string) (*Facts, error) {
	data, err := atomicfile.Read(filepath.Join(dir, factsFile))
	if err != nil {
		return nil, err
	}
	f := Facts{dir: dir}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	st, err := os.Stat(string(f.ExecPath))
	switch {
	case err != nil:
		return nil, err
	case f.SchemaVersion != state.SchemaVersion || !st.ModTime().Equal(f.ExecTime):
		return nil, errors.New("the facts are old")
	}
	return &f, nil
}

// makeFacts asks git and makes the folder, under another name until it is whole.
func (m *Machine) makeFacts(ctx context.Context, g *git.Git, dir string) (err error) {
	out, err := g.Output(ctx, git.Cmd{Args: []string{"--exec-path"}})
	if err != nil {
		return err
	}
	f := Facts{SchemaVersion: state.SchemaVersion, ExecPath: superqode.HostPath(strings.TrimSuffix(string(out), "\n"))}
	st, err := os.Stat(string(f.ExecPath))
	if err != nil {
		return err
	}
	f.ExecTime = st.ModTime()
	if err := os.MkdirAll(m.CachePath(), 0o700); err != nil {
		return state.Unwritable(err, m.CachePath())
	}
	tmp := filepath.Join(m.CachePath(), fmt.Sprintf(".git-%d-%d", os.Getpid(), time.Now().UnixNano()))
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.MkdirAll(filepath.Join(tmp, "links"), 0o700); err != nil {
		return err
	}
	if f.Names, err = makeLinks(string(f.ExecPath), g.Bin, filepath.Join(tmp, "links")); err != nil {
		return err
	}
	if err := atomicfile.Loose.WriteJSON(filepath.Join(tmp, factsFile), f); err != nil {
		return err
	}
	if err := m.dropOld("git-", ""); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) { // another superqode was faster
		return err
	}
	return nil
}

// makeLinks fills the folder links and returns the names in it. git itself is
// left out: that name is the shim's.
func makeLinks(execPath, bin, links string) ([]string, error) {
	entries, err := os.ReadDir(execPath)
	if err != nil {
		return nil, err
	}
	self, err := os.Stat(bin)
	if err != nil {
		return nil, err
	}
	own, err := os.Stat(filepath.Join(execPath, "git"))
	if err != nil {
		own = self
	}
	var names []string
	for _, e := range entries {
		st, err := os.Stat(filepath.Join(execPath, e.Name()))
		if err != nil || e.Name() == "git" {
			continue
		}
		target := filepath.Join(execPath, e.Name())
		if os.SameFile(st, self) || os.SameFile(st, own) {
			target = "git"
		}
		if err := os.Symlink(target, filepath.Join(links, e.Name())); err != nil {
			return nil, err
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// link fills a session's exec folder. The links in the cache are linked
// themselves where the system can do that: making 170 new ones takes ten times
// as long on some file systems.
func (f *Facts) link(exec string) error {
	links := filepath.Join(f.dir, "links")
	for _, name := range f.Names {
		path := filepath.Join(exec, name)
		if runtime.GOOS == "linux" { // elsewhere link(2) follows links
			if err := os.Link(filepath.Join(links, name), path); err == nil || errors.Is(err, os.ErrExist) {
				continue
			}
		}
		target, err := os.Readlink(filepath.Join(links, name))
		if err != nil {
			return err
		}
		if err := os.Symlink(target, path); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
