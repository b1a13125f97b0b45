package guard

import (
	"encoding/json"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/plainjson"
)

// parseSessionState reads what Save has written: plainly where that is possible, the
// shim does it before every git command.
func parseSessionState(data []byte) (*SessionState, error) {
	if st := plainSessionState(data); st != nil {
		return st, nil
	}
	var st SessionState
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, err
	}
	return &st, nil
}

// plainSessionState returns nil where encoding/json has to look.
func plainSessionState(data []byte) *SessionState {
	var st SessionState
	ok := true
	good := func(err error) { ok = ok && err == nil }
	r := plainjson.New(data)
	r.Object(func(field string) {
		switch field {
		case "schema_version":
			st.SchemaVersion = r.Int()
		case "session_id":
			good(st.ID.UnmarshalText([]byte(r.Text())))
		case "agent_id":
			good(st.Agent.UnmarshalText([]byte(r.Text())))
		case "work_tree":
			st.WorkTree = r.Bool()
		case "opened_at":
			good(st.OpenedAt.UnmarshalText([]byte(r.Text())))
		case "allow_git_operations":
			st.Off = r.Bool()
		case "origin":
			st.Origin = superqode.HostPath(r.Text())
		case "workspace":
			st.Workspace = superqode.HostPath(r.Text())
		case "git_dirs":
			st.GitDirs = hostPaths(r)
		case "trees":
			st.Trees = hostPaths(r)
		case "allow":
			st.Allow = r.Texts()
		case "deny":
			st.Deny = r.Texts()
		case "git":
			r.Object(func(field string) { st.Git.plain(r, field) })
		case "hooks_path":
			st.HooksPath = superqode.HostPath(r.Text())
		case "user_config":
			st.UserConfig = hostPaths(r)
		case "hook_env":
			st.HookEnv = r.Texts()
		case "kernel":
			st.Kernel = r.Bool()
		case "private":
			st.Private = plainPrivate(r)
		default:
			r.Unknown()
		}
	})
	if !r.Whole() || !ok {
		return nil
	}
	return &st
}

func (g *RealGit) plain(r *plainjson.Reader, field string) {
	switch field {
	case "bin":
		g.Bin = superqode.HostPath(r.Text())
	case "exec_path":
		g.ExecPath = superqode.HostPath(r.Text())
	case "version":
		g.Version = r.Text()
	default:
		r.Unknown()
	}
}

func plainPrivate(r *plainjson.Reader) *PrivateGit {
	if r.Null() {
		return nil
	}
	p := &PrivateGit{}
	r.Object(func(field string) {
		if field != "dir" {
			r.Unknown()
		}
		p.Dir = superqode.HostPath(r.Text())
	})
	return p
}

func hostPaths(r *plainjson.Reader) []superqode.HostPath {
	texts := r.Texts()
	if texts == nil {
		return nil
	}
	paths := make([]superqode.HostPath, len(texts))
	for i, t := range texts {
		paths[i] = superqode.HostPath(t)
	}
	return paths
}
