package cli

import (
	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// completionCmd prints the code that makes a shell ask superqode for completions.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help shows how to use it.
func (*completionCmd) Help() string {
	return "For this shell only: source <(superqode completion bash). For good: put that line into ~/.bashrc, ~/.zshrc, or `superqode completion fish | source` into ~/.config/fish/config.fish."
}

// Run prints the code.
func (c *completionCmd) Run(kctx *kong.Context) error {
	return (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(kctx)
}

// complete answers a shell that asks by COMP_LINE.
func complete(parser *kong.Kong) {
	kongcompletion.Register(parser, kongcompletion.WithExitFunc(func(int) {}))
}
