package app

import (
	"cmp"

	"github.com/seed-2d964004/superqode/internal/outputs"
)

// OutputLimits are the flags that bound what becomes artifacts.
type OutputLimits struct {
	MaxFiles      int   `type:"count" placeholder:"N" help:"Keep at most N output files (default 100)."`
	MaxFileBytes  int64 `type:"size" placeholder:"SIZE" help:"Skip output files larger than SIZE (default 4M)."`
	MaxTotalBytes int64 `type:"size" placeholder:"SIZE" help:"Keep at most SIZE of output files in total (default 64M)."`
}

// Over are the flags' limits, and where they are silent those of l.
func (f OutputLimits) Over(l outputs.Limits) outputs.Limits {
	return outputs.Limits{
		MaxFiles: cmp.Or(f.MaxFiles, l.MaxFiles), MaxFileBytes: cmp.Or(f.MaxFileBytes, l.MaxFileBytes), MaxTotalBytes: cmp.Or(f.MaxTotalBytes, l.MaxTotalBytes),
	}
}
