package workspace

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/git"
)

// GitHead returns the commit that HEAD of the repository at f's root names, reading f
// alone. Without a repository, or without a commit, it is superqode.ErrNotFound. A .git
// that is a file (a linked worktree) leads to a folder in f, or is ErrPathTraversal.
func GitHead(ctx context.Context, f FS) (string, error) {
	dir, common := ".git", ".git"
	if info, err := f.Stat(ctx, dir); err == nil && !info.IsDir() {
		text, err := readLine(ctx, f, dir)
		if err != nil {
			return "", err
		}
		dir = strings.TrimPrefix(text, "gitdir: ")
		common = dir
		if up, err := readLine(ctx, f, path.Join(dir, "commondir")); err == nil {
			common = path.Join(dir, up)
		}
	}
	ref := "HEAD"
	for range 5 { // as many symbolic references as git follows
		text, err := readLine(ctx, f, path.Join(dir, ref))
		if errors.Is(err, superqode.ErrNotFound) && ref != "HEAD" {
			text, err = packedRef(ctx, f, common, ref)
		}
		if err != nil {
			return "", err
		}
		next, symbolic := strings.CutPrefix(text, "ref: ")
		switch {
		case !symbolic && regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(text):
			return text, nil
		case !symbolic || !strings.HasPrefix(next, "refs/"):
			return "", &Error{Op: "read", Path: path.Join(dir, ref), Err: errors.New("neither a commit nor a reference")}
		}
		ref, dir = next, common
	}
	return "", &Error{Op: "read", Path: path.Join(dir, ref), Err: errors.New("a reference that leads in a circle")}
}

func readLine(ctx context.Context, f FS, name string) (string, error) {
	data, err := f.Read(ctx, name)
	return strings.TrimSpace(string(data)), err
}

func packedRef(ctx context.Context, f FS, dir, ref string) (string, error) {
	text, err := f.Read(ctx, path.Join(dir, "packed-refs"))
	for line := range strings.Lines(string(text)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return id, nil
		}
	}
	if err == nil {
		err = &Error{Op: "read", Path: path.Join(dir, ref), Kind: superqode.ErrNotFound}
	}
	return "", err
}

// RedactURL returns what of a URL can be logged: scheme and host, without user, password,
// path and query; "" for what has no host.
func RedactURL(raw string) string {
	raw = strings.TrimSpace(raw)
	if !strings.Contains(raw, "://") {
		host, _, _ := strings.Cut(raw, "/")
		host = host[strings.LastIndex(host, "@")+1:]
		if host, rest, scp := strings.Cut(host, ":"); scp && strings.Trim(rest, "0123456789") != "" {
			return host // user@host:path
		}
		return host
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Clone clones a repository into a directory of f that is empty or missing, where a Runner
// could start a command; the rules of a Scoped have to let it be written. The URL is one
// that git knows, or an absolute path; a leading dash is superqode.ErrUsage, and a transport
// that runs a command (ext::) fails. No prompt appears, no hook runs, and no error shows
// what RedactURL hides.
func Clone(ctx context.Context, f FS, rawURL, dir string) error {
	if strings.TrimSpace(rawURL) == "" || strings.HasPrefix(rawURL, "-") || strings.ContainsRune(rawURL, 0) {
		return &Error{Op: string(opClone), Path: RedactURL(rawURL), Kind: superqode.ErrUsage, Err: errors.New("not a URL that git clones")}
	}
	return inGit(ctx, f, call{op: opClone, name: dir}, "clone", "--quiet", "--", rawURL, ".")
}

// Pull brings the repository in a directory of f up to date where nothing has to be merged.
// Git obeys that repository's configuration, which can name programs to run: do not pull
// where a program that is not trusted could write it.
func Pull(ctx context.Context, f FS, dir string) error {
	return inGit(ctx, f, call{op: opPull, name: dir}, "pull", "--quiet", "--ff-only")
}

// inGit runs git in the call's directory.
func inGit(ctx context.Context, f FS, c call, args ...string) error {
	r, err := methods{doerOf(f)}.run(ctx, c)
	if err != nil {
		return err
	}
	defer r.dir.Close()
	g, err := git.Find(ctx, os.Environ(), r.dir.Name())
	if err == nil {
		err = g.Run(ctx, git.Cmd{Dir: inside(r.dir), Args: args, Env: []string{
			"PWD=" + r.dir.Name(), "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_CEILING_DIRECTORIES=" + path.Dir(r.dir.Name()),
		}})
	}
	if exit, ok := errors.AsType[*git.ExitError](err); ok {
		err = errors.New(redactText(strings.TrimSpace(exit.Stderr), args))
	}
	if err == nil {
		return nil
	}
	return fail(c, err)
}

var urls = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s'"]+`)

// redactText takes credentials out of what git says: those of every URL, and of the one
// that it was given however git writes it.
func redactText(text string, args []string) string {
	for _, raw := range slices.Backward(args) {
		u, err := url.Parse(raw)
		if err != nil || u.User == nil {
			continue
		}
		text = strings.ReplaceAll(text, raw, RedactURL(raw))
		if password, ok := u.User.Password(); ok && password != "" {
			text = strings.ReplaceAll(text, password, "***")
		}
	}
	return urls.ReplaceAllStringFunc(text, RedactURL)
}
