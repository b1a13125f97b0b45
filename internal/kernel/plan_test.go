package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-2d964004/superqode"
)

// fakeTree is a file system of names: a path ending in "/" is a folder, "a -> b"
// a link. Folders above a name are there by themselves.
type fakeTree struct {
	kinds map[string]kind
	links map[string]string
	texts map[string]string
	mnts  []mount
}

func tree(names ...string) *fakeTree {
	t := &fakeTree{kinds: map[string]kind{"/": folder}, links: map[string]string{}, texts: map[string]string{}, mnts: []mount{{"8:1", "/", "/"}}}
	for _, name := range names {
		path, target, isLink := strings.Cut(name, " -> ")
		k := file
		if strings.HasSuffix(path, "/") {
			k = folder
		}
		path = filepath.Clean(path)
		if isLink {
			k, t.links[path] = link, target
		}
		t.kinds[path] = k
		for d := filepath.Dir(path); d != "/"; d = filepath.Dir(d) {
			t.kinds[d] = folder
		}
	}
	return t
}

func (t *fakeTree) resolve(path string) (string, []string, error) {
	return follow(path, func(p string) (string, error) { return t.links[p], nil })
}
func (t *fakeTree) kind(path string) kind   { return t.kinds[path] }
func (t *fakeTree) read(path string) string { return t.texts[path] }
func (t *fakeTree) mounts() []mount         { return t.mnts }
func (t *fakeTree) writable(string) bool    { return true }
func (t *fakeTree) disks() []string         { return nil }
func (t *fakeTree) names(dir string) []string {
	var list []string
	for path, k := range t.kinds {
		if filepath.Dir(path) == dir && path != dir && k != link {
			list = append(list, filepath.Base(path))
		}
	}
	slices.Sort(list)
	return list
}

// usual is a user's machine, without the devices.
func usual(more ...string) *fakeTree {
	return tree(append([]string{
		"/home/u/.cache/", "/home/u/.cache/go-build/", "/home/u/go/pkg/", "/home/u/.npm/", "/home/u/.cargo/", "/home/u/.claude/", "/home/u/.claude.json", "/home/u/.aider.conf.yml",
		"/tmp/", "/var/tmp/", "/src/repo/.git/", "/home/u/.superqode/s/ws/", "/home/u/.superqode/s/tmp/t/", "/usr/bin/sh", "/usr/bin/go",
	}, more...)...)
}

func session() Options {
	return Options{
		Env: []string{"HOME=/home/u", "PATH=/usr/bin"}, Home: "/home/u/.superqode", Origin: "/src/repo", GitDirs: []string{"/src/repo/.git"},
		Own: []string{"/home/u/.superqode/s/ws", "/home/u/.superqode/s/tmp"}, Confine: true,
	}
}

func decide(t *testing.T, o Options, look view) Confinement {
	t.Helper()
	c, err := o.confinement(7, true, look, inPath(o.Env, look))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func paths(c Confinement) []string {
	var list []string
	for _, w := range c.Writable {
		name := w.Path
		if w.Dir {
			name += "/"
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func TestConfinement(t *testing.T) {
	t.Parallel()
	own := []string{"/home/u/.superqode/s/tmp/", "/home/u/.superqode/s/ws/"}
	caches := []string{"/home/u/.cache/", "/home/u/.cargo/", "/home/u/.npm/", "/home/u/go/pkg/"}
	agents := []string{"/home/u/.aider.conf.yml", "/home/u/.claude.json", "/home/u/.claude/"}
	scratch := []string{"/tmp/", "/var/tmp/"}
	all := slices.Concat(own, caches, agents, scratch)
	without := func(list []string, gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(p string) bool { return slices.Contains(gone, p) })
	}
	for _, tt := range []struct {
		name   string
		tree   *fakeTree
		change func(*Options)
		want   []string
	}{
		{"as usual", usual(), nil, all},
		{"devices", usual("/dev/null", "/dev/pts/", "/dev/shm/", "/dev/vda", "/dev/nvidia0"), nil, append([]string{"/dev/null", "/dev/nvidia0", "/dev/pts/", "/dev/shm/"}, all...)},
		{"repository in /tmp", usual("/tmp/x/repo/.git/", "/tmp/other/"), func(o *Options) { o.Origin, o.GitDirs = "/tmp/x/repo", []string{"/tmp/x/repo/.git"} }, without(all, "/tmp/")},
		{"repository in ~/.cache", usual("/home/u/.cache/a/repo/.git/", "/home/u/.cache/a/b/", "/home/u/.cache/pip/"),
			func(o *Options) {
				o.Origin, o.GitDirs = "/home/u/.cache/a/repo", []string{"/home/u/.cache/a/repo/.git"}
			},
			append(without(all, "/home/u/.cache/"), "/home/u/.cache/a/b/", "/home/u/.cache/go-build/", "/home/u/.cache/pip/")},
		{"state in ~/.cache", usual("/home/u/.cache/sq/s/ws/"), func(o *Options) { o.Home, o.Own = "/home/u/.cache/sq", []string{"/home/u/.cache/sq/s/ws"} },
			append(without(all, append(own, "/home/u/.cache/")...), "/home/u/.cache/go-build/", "/home/u/.cache/sq/s/ws/")},
		{"home is the repository", usual("/home/u/.git/"), func(o *Options) { o.Origin, o.GitDirs, o.Home = "/home/u", []string{"/home/u/.git"}, "/srv/sq" }, slices.Concat(own, scratch)},
		{"repository is a worktree of one elsewhere", usual("/src/main/.git/"), func(o *Options) { o.GitDirs = []string{"/src/main/.git"} }, all},
		{"another worktree in /tmp", usual("/tmp/wt/"), func(o *Options) { o.Trees = []string{"/tmp/wt"} }, without(all, "/tmp/")},
		{"a cache in the origin", usual("/src/repo/.cache/"), func(o *Options) { o.Env = append(o.Env, "GOCACHE=/src/repo/.cache") }, all},
		{"a cache elsewhere", usual("/data/gc/"), func(o *Options) { o.Env = append(o.Env, "GOCACHE=/data/gc") }, append(slices.Clone(all), "/data/gc/")},
		{"a cache that is switched off", usual(), func(o *Options) { o.Env = append(o.Env, "GOCACHE=off") }, all},
		{"a cache above everything", usual(), func(o *Options) { o.Env = append(o.Env, "XDG_CACHE_HOME=/home") }, without(all, "/home/u/.cache/")},
		{"a cache that is home", usual(), func(o *Options) { o.Env = append(o.Env, "CARGO_HOME=/home/u") }, without(all, "/home/u/.cargo/")},
		{"no home", usual(), func(o *Options) { o.Env = []string{"PATH=/usr/bin"} }, slices.Concat(own, scratch)},
		{"a link that the user made", usual("/home/u/.npm -> /data/npm", "/data/npm/"), nil, append(without(all, "/home/u/.npm/"), "/data/npm/")},
		{"a link into the origin", usual("/home/u/.npm -> /src/repo", "/src/repo/x"), nil, without(all, "/home/u/.npm/")},
		{"a link that a program could have made", usual("/home/u/.cache/go-build -> /home/u/Documents", "/home/u/Documents/"), nil, all},
		{"such a link in a cache that is named", usual("/home/u/.cache/pip -> /home/u/Documents", "/home/u/Documents/"), func(o *Options) { o.Env = append(o.Env, "PIP_CACHE_DIR=/home/u/.cache/pip") }, all},
		{"a cache that is made", usual(), func(o *Options) { o.Env = append(o.Env, "XDG_CACHE_HOME=/home/u/.c") }, append(without(all, "/home/u/.cache/"), "/home/u/.c/")},
		{"a folder allowed", usual("/data/out/"), func(o *Options) { o.Allow = []string{"/data/out"} }, append(slices.Clone(all), "/data/out/")},
		{"the origin under another name", func() *fakeTree {
			t := usual("/home/u/.cache/alias/", "/home/u/.cache/pip/")
			t.mnts = append(t.mnts, mount{"8:1", "/src", "/home/u/.cache/alias"})
			return t
		}(), nil, append(without(all, "/home/u/.cache/"), "/home/u/.cache/go-build/", "/home/u/.cache/pip/")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := session()
			if tt.change != nil {
				tt.change(&o)
			}
			want := slices.Clone(tt.want)
			slices.Sort(want)
			if d := cmp.Diff(want, paths(decide(t, o, tt.tree))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNothingProtectedIsWritable is the law behind the table: whatever the
// environment names, no folder that holds or lies in what is protected is opened.
func TestNothingProtectedIsWritable(t *testing.T) {
	t.Parallel()
	look := usual("/tmp/a/", "/home/u/.cache/sub/", "/src/repo/sub/deep/", "/data/", "/data/l -> /src", "/home/u/.cache/l -> /src/repo", "/loop -> /loop")
	places := []string{"/", "/src", "/src/repo", "/src/repo/.git", "/src/repo/sub", "/home", "/home/u", "/home/u/.superqode", "/home/u/.superqode/s", "/home/u/.cache/l", "/data/l", "/data/l/repo/sub", "/data/../src/repo", "/loop", "/loop/x", "relative", "", "/src/repo2", "/tmp/a"}
	vars := []string{"HOME", "XDG_CACHE_HOME", "GOCACHE", "GOPATH", "CARGO_HOME", "XDG_STATE_HOME", "GOENV"}
	for _, a := range places {
		for _, b := range places {
			for i := range vars {
				o := session()
				o.Env = append(o.Env, vars[i]+"="+a, vars[(i+1)%len(vars)]+"="+b)
				c := decide(t, o, look)
				for _, w := range c.Writable {
					if w.Own {
						continue
					}
					for _, p := range []string{"/src/repo", "/home/u/.superqode"} {
						if superqode.Within(w.Path, p) || superqode.Within(p, w.Path) {
							t.Fatalf("%s=%s %s=%s opens %s", vars[i], a, vars[(i+1)%len(vars)], b, w.Path)
						}
					}
				}
			}
		}
	}
}

func TestConfinementInPlace(t *testing.T) {
	t.Parallel()
	o := session()
	o.InPlace, o.Own, o.Trees = true, []string{"/home/u/.superqode/s/tmp"}, []string{"/src/repo/wt", "/src/wt2"}
	look := usual("/src/repo/wt/", "/src/wt2/", "/sys/")
	c := decide(t, o, look)
	if !slices.Contains(paths(c), "/src/repo/") {
		t.Errorf("the origin is not writable: %q", paths(c))
	}
	if d := cmp.Diff([]string{"/home/u/.superqode", "/src/repo/.git", "/src/wt2", "/sys"}, c.ReadOnly()); d != "" {
		t.Error("read-only: " + d)
	}
	if d := cmp.Diff([]string{"/home/u/.superqode", "/src/wt2"}, c.Deny); d != "" {
		t.Error("denied: " + d)
	}
	o.GitDirs = []string{"/elsewhere/.git"}
	if c = decide(t, o, usual("/elsewhere/.git/")); slices.Contains(c.ReadOnly(), "/src/repo/.git") || !slices.Contains(c.Deny, "/elsewhere/.git") {
		t.Errorf("a git directory elsewhere needs no mount in the workspace: %+v", c)
	}
}

func TestAllowWriteRefused(t *testing.T) {
	t.Parallel()
	look := usual("/data/ok/", "/mnt/disk/repo/")
	look.mnts = append(look.mnts, mount{"8:1", "/src", "/mnt/disk"})
	for _, tt := range []struct {
		path string
		ok   bool
	}{
		{"/data/ok", true}, {"/data", true}, {"/src/repo2", true}, {"/src/repo", false}, {"/src/repo/build", false}, {"/src", false}, {"/", false},
		{"/home/u/.superqode", false}, {"/home/u/.superqode/s/ws", false}, {"/home/u", false}, {"/home/u/.npm", true}, {"/mnt/disk/repo/x", false}, {"/mnt", false}, {"/mnt/other", true},
	} {
		err := checkAllowed(tt.path, tt.path, session().protected(look))
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.path, err)
		}
		if err != nil && superqode.Hint(err) == "" {
			t.Errorf("%s: no hint", tt.path)
		}
	}
}

// TestPlaced: what a session has of its own at a place that all share, and what stays.
func TestPlaced(t *testing.T) {
	t.Parallel()
	const s = "/home/u/.superqode/s"
	null := func(path string) Mount { return Mount{path, placed, "/dev/null"} }
	same := func(path string) Mount { return Mount{path, placed, path} }
	tmp, run := Mount{"/tmp", placed, s + "/own-tmp"}, Mount{"/run/user/7", placed, s + "/own-run"}
	for name, tt := range map[string]struct {
		more   []string
		change func(o *Options)
		want   []Mount
		err    string
	}{
		"plain":            {want: []Mount{tmp, run}},
		"no runtime":       {change: func(o *Options) { o.User = nil }, want: []Mount{tmp}},
		"both the same":    {change: func(o *Options) { o.User = []string{"XDG_RUNTIME_DIR=/tmp"} }, want: []Mount{tmp}},
		"a link":           {more: []string{"/rt -> /run/user/7"}, change: func(o *Options) { o.User = []string{"XDG_RUNTIME_DIR=/rt"} }, want: []Mount{tmp, run}},
		"engines":          {more: []string{"/run/docker.sock", "/var/run -> /run", "/home/u/.rd/docker.sock"}, want: []Mount{tmp, run, null("/home/u/.rd/docker.sock"), null("/run/docker.sock")}},
		"an engine stays":  {more: []string{"/run/docker.sock"}, change: func(o *Options) { o.Private.Sockets = []string{"/run/docker.sock"} }, want: []Mount{tmp, run}},
		"a named engine":   {more: []string{"/x/d.sock"}, change: func(o *Options) { o.Env = append(o.Env, "DOCKER_HOST=unix:///x/d.sock") }, want: []Mount{tmp, run, null("/x/d.sock")}},
		"covered anyway":   {more: []string{"/tmp/d.sock"}, change: func(o *Options) { o.Env = append(o.Env, "DOCKER_HOST=unix:///tmp/d.sock") }, want: []Mount{tmp, run}},
		"covered, stays":   {more: []string{"/tmp/d.sock"}, change: func(o *Options) { o.Private.Sockets = []string{"/tmp/d.sock"} }, want: []Mount{tmp, run, same("/tmp/d.sock")}},
		"all in /tmp":      {more: []string{"/tmp/r/.git/"}, change: func(o *Options) { o.Origin, o.GitDirs = "/tmp/r", []string{"/tmp/r/.git"} }, want: []Mount{tmp, run, same("/tmp/r")}},
		"an agent for ssh": {more: []string{"/tmp/ssh/agent"}, change: func(o *Options) { o.Env = append(o.Env, "SSH_AUTH_SOCK=/tmp/ssh/agent") }, want: []Mount{tmp, run, same("/tmp/ssh/agent")}},
		"tools":            {more: []string{"/tmp/bin/"}, change: func(o *Options) { o.Env = []string{"PATH=/tmp/bin:/usr/bin:bin:/tmp/none"} }, want: []Mount{tmp, run, same("/tmp/bin")}},
		"an environment":   {more: []string{"/tmp/venv/bin/"}, change: func(o *Options) { o.Env = []string{"PATH=/tmp/venv/bin:/usr/bin"} }, want: []Mount{tmp, run, same("/tmp/venv")}},
		"the origin":       {change: func(o *Options) { o.Origin = "/tmp" }, err: "would cover /tmp"},
		"runtime is HOME":  {change: func(o *Options) { o.User = []string{"XDG_RUNTIME_DIR=/home/u"}; o.Home = "/home/u" }, err: "would cover /home/u"},
	} {
		o, look := session(), usual(append(tt.more, "/run/user/7/", "/dev/null", s+"/own-tmp/", s+"/own-run/")...)
		o.User, o.Private = []string{"HOME=/home/u", "XDG_RUNTIME_DIR=/run/user/7"}, Private{Tmp: s + "/own-tmp", Run: s + "/own-run"}
		if tt.change != nil {
			tt.change(&o)
		}
		err := o.checkPrivate(look)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, o.placed(look)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if list := session().placed(usual("/run/docker.sock")); list != nil {
		t.Errorf("nobody asked for %v", list)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	look := tree("/a/b/", "/l -> /a", "/a/m -> ../a/b", "/a/b/up -> ..", "/loop -> loop2", "/loop2 -> /loop")
	for path, want := range map[string]string{
		"/a/b": "/a/b []", "/l/b": "/a/b [/]", "/l/m": "/a/b [/ /a]", "/a/b/up/m": "/a/b [/a/b /a]", "/a/../l/./b//": "/a/b [/]", "/gone/x": "/gone/x []", "/": "/ []", "/../..": "/ []",
	} {
		real, hops, err := look.resolve(path)
		if got := fmt.Sprintf("%s %v", real, hops); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", path, got, err, want)
		}
	}
	if _, _, err := look.resolve("/loop/x"); err == nil {
		t.Error("a loop was resolved")
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	list := parseMounts(`22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 254:0 /home/u/re\040po /mnt/a\040b rw shared:1 - ext4 /dev/vda rw
31 27 254:0 /home /mnt/h rw - ext4 /dev/vda rw
32 27 254:0 /home/u/re\040po/.git /g rw - ext4 /dev/vda rw
33 27 0:99 / /data rw - tmpfs none rw
broken line`)
	for _, tt := range []struct{ path, want string }{
		{"/home/u/re po", "[/mnt/a b /mnt/h/u/re po /g]"},
		{"/home/u/re po/.git", "[/mnt/a b/.git /mnt/h/u/re po/.git /g]"},
		{"/data/x", "[]"},
		{"/mnt/h/u/re po", "[/home/u/re po /mnt/a b /g]"},
		{"/srv", "[]"},
	} {
		if got := fmt.Sprint(aliases(list, tt.path)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
}

func TestGoSettings(t *testing.T) {
	t.Parallel()
	look := usual("/home/u/.config/go/env", "/big/mod/", "/big/gp/pkg/")
	look.texts["/home/u/.config/go/env"] = "GOMODCACHE=/big/mod\nGOPATH=/big/gp:/other\nno line\n"
	got := paths(decide(t, session(), look))
	for _, want := range []string{"/big/mod/", "/big/gp/pkg/"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not writable: %q", want, got)
		}
	}
}

func TestKernelState(t *testing.T) {
	t.Parallel()
	for abi, want := range map[int]string{0: "false unavailable: ", 1: "false unavailable: ", 2: "true unavailable: ", 3: "true active", 7: "true active", 20: "true active"} {
		state, apply := stateOf(abi)
		if got := fmt.Sprintf("%t %s", apply, state); !strings.HasPrefix(got, want) {
			t.Errorf("version %d: %s", abi, got)
		}
	}
}

// TestDiskView holds the real file system's answers to the fake one's.
func TestDiskView(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.Mkdir(dir+"/f", 0o700), os.Symlink("f", dir+"/l"))
	}
	if err != nil {
		t.Fatal(err)
	}
	d := diskView()
	if real, hops, err := d.resolve(dir + "/l/gone"); err != nil || real != dir+"/f/gone" || !slices.Equal(hops, []string{dir}) {
		t.Errorf("%s %v %v", real, hops, err)
	}
	if d.kind(dir+"/f") != folder || d.kind(dir+"/l") != link || d.kind(dir+"/gone") != missing {
		t.Error("kinds are wrong")
	}
	if got := d.names(dir); !slices.Equal(got, []string{"f"}) {
		t.Errorf("names: %q", got)
	}
}

// TestDisks: devices through which root reaches a disk without its file systems.
func TestDisks(t *testing.T) {
	t.Parallel()
	const block, char = fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice
	for path, is := range map[string]fs.FileMode{
		"/dev/vda": block, "/dev/mapper/root": block, "/dev/mem": char, "/dev/sg0": char, "/dev/bsg/0:0:0:0": char, "/dev/nvme0": char, "/dev/ng0n1": char, "/dev/mtd0ro": char,
	} {
		if !isDisk(path, is) {
			t.Errorf("%s is open to root", path)
		}
	}
	for path, is := range map[string]fs.FileMode{"/dev/null": char, "/dev/kvm": char, "/dev/tty": char, "/dev/sgx_enclave": char, "/dev/stdin": fs.ModeSymlink, "/dev/log": fs.ModeSocket} {
		if isDisk(path, is) {
			t.Errorf("%s is closed", path)
		}
	}
}
