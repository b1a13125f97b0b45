package doctor

import (
	"strings"

	"github.com/seed-2d964004/superqode/internal/runner"
)

// checkLimits tries by what each limit of a program would be held here.
func checkLimits() check {
	c := check{Name: "limits", Status: checkOK}
	var held []string
	for _, one := range []struct {
		name string
		runner.Limits
	}{
		{"memory", runner.Limits{Memory: 1 << 30}}, {"pids", runner.Limits{Pids: 100}},
		{"cpu_time", runner.Limits{CPUTime: 1e9}}, {"disk", runner.Limits{Disk: 1 << 30, DiskFolders: []string{"/"}}},
	} {
		list, err := runner.CheckLimits(one.Limits)
		if err != nil {
			c.Status, c.Remedy = checkNote, "give superqode a cgroup that it may write, for example: systemd-run --user --scope superqode …"
			held = append(held, one.name+" is not available")
			continue
		}
		held = append(held, one.name+" by "+list[0].By)
	}
	c.Detail = strings.Join(held, ", ")
	return c
}
