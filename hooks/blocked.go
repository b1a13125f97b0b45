package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/guard"
	"github.com/seed-2d964004/superqode/internal/git"
)

// remote is the helper that git runs when it pushes: every address begins with
// superqode-blocked:// then (gitremote-helpers(7) is the protocol). It refuses,
// with three exceptions: a dry run is answered from what the other side lists; a
// push that a person has let through is carried out; and a repository that the
// session made itself, pushed to from another such one, is reached directly.
func (a *answer) remote(ctx context.Context) int {
	if len(a.Args) == 0 {
		fmt.Fprintln(a.Err, "superqode: git starts this program, with a remote's name and address")
		return exitFailed
	}
	address := strings.TrimPrefix(a.Args[len(a.Args)-1], BlockedScheme)
	a.repo = guard.FindRepository(a.Dir, a.Env, "", "")
	if path, ok := a.ownTarget(address); ok {
		return a.speak(ctx, &peer{a: a, address: address, path: path})
	}
	dry, code := a.pushing(ctx)
	if code != 0 {
		return code
	}
	return a.speak(ctx, &peer{a: a, address: address, dryOnly: dry})
}

// pushing decides on the push that is under way: dry is true when only a dry run
// may go on.
func (a *answer) pushing(ctx context.Context) (dry bool, code int) {
	s := subject{verdict: a.policy.Refusal("push", []string{"git", "push"})}
	chain := a.commands()
	// Git runs "git remote-superqode-blocked", which runs this.
	for len(chain) > 0 && "git-"+chain[0].name() == RemoteHelper {
		chain = chain[1:]
	}
	if len(chain) > 0 && (chain[0].name() == "push" || chain[0].name() == "send-pack") {
		if s = a.judge(ctx, chain); !s.verdict.Denied() {
			return a.policy.Decide("push") == guard.Deny, 0
		}
	}
	return false, a.refuse(s)
}

// receive stands in for git-receive-pack where a remote has an address of its own
// for pushing: git runs it at the other end, here when that is a folder.
func (a *answer) receive(ctx context.Context) int {
	if _, code := a.pushing(ctx); code != 0 {
		return code
	}
	if len(a.Args) == 0 || a.st == nil {
		return exitFailed
	}
	return a.become([]string{"git", "receive-pack", a.Args[len(a.Args)-1]})
}

// become replaces this process by the real git.
func (a *answer) become(argv []string) int {
	err := syscall.Exec(string(a.st.Git.Bin), argv, git.CleanEnv(a.Env))
	fmt.Fprintf(a.Err, "superqode: cannot run %s: %v\n", a.st.Git.Bin, err)
	return exitFailed
}

// ownTarget returns the path of a repository that the session made: it lies in the
// session's folder for temporary files or in its workspace, is no repository of
// the user's, and neither is the one that is pushed from.
func (a *answer) ownTarget(address string) (string, bool) {
	path, local := localPath(address)
	if a.st == nil || !local || a.Dir == "" || a.guarded() {
		return "", false
	}
	path = realPath(inside(a.Dir, path))
	for _, dir := range []string{path, path + ".git"} {
		to := guard.FindRepository(dir, nil, "", "")
		// Not a repository further up, and not one that a .git file leads to.
		if to.GitDir == "" || !superqode.Within(to.GitDir, dir) {
			continue
		}
		ours := superqode.Within(to.CommonDir, realPath(filepath.Join(a.st.Dir(), "tmp"))) ||
			a.st.Tmp != "" && superqode.Within(to.CommonDir, realPath(string(a.st.Tmp))) ||
			superqode.Within(to.CommonDir, string(a.st.Workspace))
		return dir, ours && !a.st.Guards(to.CommonDir, to.WorkTree)
	}
	return "", false
}

// localPath reports whether an address is a path of this machine, as url_is_local
// does.
func localPath(address string) (string, bool) {
	if path, ok := strings.CutPrefix(address, "file://"); ok {
		return path, true
	}
	if strings.Contains(address, "://") {
		return "", false
	}
	colon, slash := strings.IndexByte(address, ':'), strings.IndexByte(address, '/')
	return address, address != "" && (colon < 0 || slash >= 0 && slash < colon)
}

// peer is a conversation with git about one address.
type peer struct {
	a       *answer
	address string
	path    string // the session's own repository; "" otherwise
	dryOnly bool

	dryRun  bool
	format  bool     // git wants to know the object format
	options []string // for the real push
	specs   []string
}

// speak reads git's commands until an empty line or the end. Lines are read byte
// by byte: what follows "connect" is for another program.
func (a *answer) speak(ctx context.Context, p *peer) int {
	for {
		line, err := readLine(a.In)
		if err != nil {
			return 0
		}
		word, rest, _ := strings.Cut(line, " ")
		if word != "push" && len(p.specs) > 0 {
			if err := p.push(ctx); err != nil {
				fmt.Fprintf(a.Err, "superqode: %v\n", err)
				return exitFailed
			}
			continue // the empty line that ends the batch
		}
		switch word {
		case "":
			return 0
		case "capabilities":
			if p.path != "" {
				p.say("connect\n\n")
			} else {
				p.say("option\npush\n\n")
			}
		case "connect":
			if rest != "git-receive-pack" || p.path == "" {
				fmt.Fprintln(a.Err, "superqode: this address is for pushing only")
				return exitFailed
			}
			p.say("\n")
			return a.become([]string{"git", "receive-pack", p.path})
		case "option":
			p.say(p.option(rest))
		case "list":
			if err := p.list(ctx); err != nil {
				fmt.Fprintf(a.Err, "superqode: %v\n", err)
				return exitFailed
			}
		case "push":
			p.specs = append(p.specs, rest)
		default:
			fmt.Fprintf(a.Err, "superqode: git said %q\n", line)
			return exitFailed
		}
	}
}

func readLine(in io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < 1<<20 {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return string(line), nil
		case n == 1:
			line = append(line, one[0])
		case err != nil:
			return "", err
		}
	}
	return "", errors.New("a line of more than a megabyte")
}

// say answers git; when git is gone the next read ends the conversation.
func (p *peer) say(text string) { _, _ = io.WriteString(p.a.Out, text) }

func (p *peer) option(text string) string {
	name, value, _ := strings.Cut(text, " ")
	on := value == "true"
	switch name {
	case "dry-run":
		p.dryRun = on
	case "object-format":
		p.format = on
	case "atomic":
		if on {
			p.options = append(p.options, "--atomic")
		}
	case "push-option":
		p.options = append(p.options, "--push-option="+value)
	case "cas":
		p.options = append(p.options, "--force-with-lease="+value)
	case "verbosity", "progress", "force", "followtags", "force-if-includes", "servpath":
	default:
		return "unsupported\n"
	}
	return "ok\n"
}

// list shows the refs of the other side, as a fetch would see them.
func (p *peer) list(ctx context.Context) error {
	out, err := p.git(ctx, []string{"ls-remote", "--", p.address}, p.a.Env)
	if err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(out) {
		id, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || strings.HasSuffix(ref, "^{}") {
			continue
		}
		if p.format && b.Len() == 0 && len(id) == 64 {
			b.WriteString(":object-format sha256\n")
		}
		b.WriteString(id + " " + ref + "\n")
	}
	p.say(b.String() + "\n")
	return nil
}

// push answers one batch: a dry run succeeds, what a person has let through is
// done by a push of its own.
func (p *peer) push(ctx context.Context) error {
	specs := p.specs
	p.specs = nil
	failed := map[string]string{}
	switch {
	case p.dryRun:
	case p.dryOnly:
		for _, s := range specs {
			failed[destination(s)] = "refused by superqode"
		}
	default:
		args := append(append([]string{"push", "--porcelain", "--no-verify"}, p.options...), "--", p.address)
		out, err := p.git(ctx, append(args, specs...), git.CleanEnv(p.a.Env))
		if exit, ok := errors.AsType[*git.ExitError](err); err != nil && (!ok || exit.Code != 1) {
			return err
		}
		for line := range strings.Lines(out) {
			if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 3 && f[0] == "!" {
				failed[destination(f[1])] = f[2]
			}
		}
	}
	for _, s := range specs {
		if why, no := failed[destination(s)]; no {
			p.say("error " + destination(s) + " " + why + "\n")
		} else {
			p.say("ok " + destination(s) + "\n")
		}
	}
	p.say("\n")
	return nil
}

func destination(spec string) string {
	_, dst, _ := strings.Cut(spec, ":")
	return dst
}

// git runs the real git for this address, in the repository that is pushed from.
func (p *peer) git(ctx context.Context, args []string, env []string) (string, error) {
	if p.a.st == nil {
		return "", errors.New("the session's state is not there")
	}
	if dir := p.a.repo.GitDir; dir != "" && superqode.Getenv(env, "GIT_DIR") == "" {
		env = append(env[:len(env):len(env)], "GIT_DIR="+dir)
	}
	cmd := exec.CommandContext(ctx, string(p.a.st.Git.Bin), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.a.Dir, env, p.a.Err
	out, err := cmd.Output()
	if cmd.ProcessState != nil && err != nil {
		return string(out), &git.ExitError{Args: args, Code: cmd.ProcessState.ExitCode()}
	}
	return string(out), err
}
