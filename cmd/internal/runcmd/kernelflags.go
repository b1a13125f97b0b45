package runcmd

import (
	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
	"github.com/seed-2d964004/superqode/internal/config"
	"github.com/seed-2d964004/superqode/internal/kernel"
	"github.com/seed-2d964004/superqode/internal/program"
)

// kernelFlags say what the guard's kernel layer does. A session keeps what run
// and workspace create were given; workspace exec may add to it for one command.
type kernelFlags struct {
	Enforce    string   `enum:",auto,required,off" default:"" placeholder:"WHEN" help:"Kernel layer of the guard: auto (default), required or off."`
	AllowWrite []string `placeholder:"PATH" sep:"none" help:"Also let the program write to this file or folder (repeatable)."`
	NoNetwork  bool     `help:"Deny the program TCP (Linux 6.7)."`
}

// options turns the flags into what the kernel layer is asked for; what they
// leave open the configuration says, where there is one.
func (f *kernelFlags) options(a *app.App, cfg *config.Config) (program.KernelOptions, error) {
	word := f.Enforce
	if word == "" && cfg != nil {
		word = string(cfg.Guard.Enforce)
	}
	opt := program.KernelOptions{Enforce: kernel.Enforce(word), NoNetwork: f.NoNetwork}
	for _, path := range f.AllowWrite {
		if path == "" {
			return opt, superqode.Errorf(superqode.ErrUsage, "--allow-write: expected a path, not an empty string")
		}
		opt.AllowWrite = append(opt.AllowWrite, a.Abs(path))
	}
	return opt, nil
}
