package report

import (
	"fmt"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// checks lists what the session claims, each with how it was checked. What was not
// checked is said to be so.
func checks(rep artifacts.Report) []check {
	list := []check{originCheck(rep), revertCheck(rep), guardCheck(rep)}
	if rep.Applied != nil {
		list = append(list, appliedCheck(rep.Applied))
	}
	list = append(list, check{"good", "Base and final state have a digest each", "SHA-256 over the path, kind, permission bits and content of every entry"})
	if rep.Final.Digest.IsZero() {
		list[len(list)-1] = check{"none", "The final state has no digest", "it was not taken"}
	}
	if f := rep.VerifiedFixes; f != nil && f.Total > 0 {
		state := "good"
		if f.Verified < f.Total {
			state = "none"
		}
		list = append(list, check{state, fmt.Sprintf("%d of %s verified", f.Verified, text.Plural(f.Total, "tried fix")), "each applied in a session of its own, the tests run before and after"})
	}
	return list
}

func originCheck(rep artifacts.Report) check {
	c := rep.OriginCheck
	how := "files, index, HEAD, refs, stash, configuration and hooks compared with how they were before the session"
	switch {
	case c.Unchanged && rep.Applied.Done():
		return check{"good", "Your files were unchanged before the apply", how}
	case c.Unchanged:
		return check{"good", "Your files are unchanged", how}
	case len(c.Differences) > 0:
		return check{"bad", "Your files are NOT as they were", how + ": " + text.Plural(len(c.Differences), "difference")}
	}
	return check{"none", "Whether your files are unchanged was not checked", ""}
}

func revertCheck(rep artifacts.Report) check {
	how := map[string]string{
		"stat": "every entry compared by its metadata, and by content where that differs",
		"full": "every byte read again",
	}[rep.Revert.Method]
	inPlace := rep.Mode.InPlace()
	switch {
	case rep.Revert.Verified && inPlace:
		return check{"good", "Your repository was brought back", how}
	case rep.Revert.Verified:
		return check{"good", "The workspace is gone", "looked for after it was removed"}
	case len(rep.Revert.Differences) > 0:
		return check{"bad", "Not everything was brought back", text.Plural(len(rep.Revert.Differences), "path") + " differ"}
	case rep.Run.Workspace.Preserved && !inPlace:
		return check{"none", "The workspace is kept", "it was not removed, so nothing was reverted"}
	case rep.Mode == superqode.ModeShared:
		return check{"none", "Nothing was brought back", "shared mode works on your files and leaves them"}
	case rep.Revert.Method == "none":
		return check{"none", "Nothing was brought back", "the changes were left in place, as asked for"}
	}
	return check{"none", "The revert was not checked", ""}
}

func guardCheck(rep artifacts.Report) check {
	var active, not []string
	for _, l := range []struct{ name, state string }{{"shim", rep.Guard.Layers.Shim}, {"hooks", rep.Guard.Layers.Hooks}, {"kernel", rep.Guard.Layers.Kernel}} {
		switch l.state {
		case "active":
			active = append(active, l.name)
		case "":
			not = append(not, l.name+" not known")
		default:
			not = append(not, l.name+" "+l.state)
		}
	}
	how := "each layer was probed while the session began"
	if len(not) > 0 {
		how += "; not active: " + strings.Join(not, ", ")
	}
	switch len(active) {
	case 0:
		return check{"none", "No guard layer was active", strings.Join(not, ", ")}
	case 1:
		return check{"good", "The guard's " + active[0] + " layer was active", how}
	}
	return check{"good", "The guard's layers " + strings.Join(active, ", ") + " were active", how}
}

func appliedCheck(a *artifacts.Applied) check {
	if a.Done() {
		return check{"good", "The changes are in your files", a.Text()}
	}
	return check{"bad", "The changes are not in your files", a.Text()}
}
