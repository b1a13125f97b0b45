package doctor

import (
	"context"
	"fmt"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/cmd/internal/app"
)

// checkState names what earlier commands left in the home and, with fix, puts it
// right.
func checkState(ctx context.Context, a *app.App, fix bool) []check {
	m, err := a.Sessions()
	if err != nil {
		return []check{{"state", checkFail, err.Error(), superqode.Hint(err)}}
	}
	findings, err := m.Fix(ctx, !fix)
	checks := make([]check, 0, len(findings)+2)
	for _, f := range findings {
		c := check{"state", checkWarn, f.What, "superqode doctor --fix"}
		switch {
		case f.Err != nil:
			c.Status, c.Detail, c.Remedy = checkFail, fmt.Sprintf("%s: %v", f.What, f.Err), superqode.Hint(f.Err)
		case fix:
			c.Status, c.Detail, c.Remedy = checkDone, f.What+": "+f.Done, ""
		}
		checks = append(checks, c)
	}
	if err != nil {
		return append(checks, check{"state", checkFail, err.Error(), superqode.Hint(err)})
	}
	if len(findings) == 0 {
		checks = append(checks, check{"state", checkOK, "nothing was left behind", ""})
	}
	return checks
}
