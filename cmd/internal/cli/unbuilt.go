package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-2d964004/superqode"
)

// An unbuiltFlag is a flag, or some values of one, that the documents name and
// that this version does not have. It is refused, never ignored.
type unbuiltFlag struct {
	flag     string
	commands []string // the commands concerned; none: all
	values   []string // the values concerned; none: all
	why      string
}

// unbuiltFlags is the list that shrinks as features land.
func unbuiltFlags() []unbuiltFlag {
	create := []string{"workspace create"}
	return []unbuiltFlag{
		{flag: "memory", why: "limits are not built yet in this version"},
		{flag: "pids", why: "limits are not built yet in this version"},
		{flag: "cpu-time", why: "limits are not built yet in this version"},
		{flag: "max-disk", why: "limits are not built yet in this version"},
		{flag: "output", commands: []string{"run", "workspace create"}, why: "collecting outputs by pattern is not built yet in this version; write to $SUPERQODE_ARTIFACT_DIR"},
		{flag: "dry-run", commands: []string{"run", "workspace create"}, why: "is not built yet in this version"},
		{flag: "timeout", commands: create, why: "is not kept with a session yet; give it to workspace exec"},
		{flag: "env", commands: create, why: "is not kept with a session yet; give it to workspace exec"},
		{flag: "clean-env", commands: create, why: "is not kept with a session yet; give it to workspace exec"},
		{flag: "env-allow", commands: create, why: "is not kept with a session yet; give it to workspace exec"},
		{flag: "cwd", commands: create, why: "is not kept with a session yet; give it to workspace exec"},
		{flag: "max-output", commands: create, why: "is not kept with a session yet; give it to workspace exec"},
	}
}

// refuseUnbuilt refuses the first flag on the command line that is in the list.
func refuseUnbuilt(kctx *kong.Context) error {
	command := ""
	if node := kctx.Selected(); node != nil {
		command = strings.TrimSpace(node.Path())
	}
	for _, p := range kctx.Path {
		if p.Flag == nil {
			continue
		}
		for _, u := range unbuiltFlags() {
			if u.flag == p.Flag.Name && u.concerns(command, p.Flag.Target.Interface()) {
				return superqode.Errorf(superqode.ErrUsage, "--%s: %s", u.flag, u.why)
			}
		}
	}
	return nil
}

func (u unbuiltFlag) concerns(command string, value any) bool {
	if len(u.commands) > 0 && !slices.Contains(u.commands, command) {
		return false
	}
	if len(u.values) == 0 {
		return true
	}
	given := []string{fmt.Sprint(value)}
	if many, ok := value.([]string); ok {
		given = many
	}
	return slices.ContainsFunc(given, func(v string) bool { return slices.Contains(u.values, v) })
}
