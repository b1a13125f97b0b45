package config

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/text"
)

// Input is one file or folder to put into the workspace. Exactly one of Path,
// Workspace and Artifact says where it comes from.
type Input struct {
	Key       string // its place: inputs[0], or the flag
	From      string // as written
	Path      string // of this machine: absolute, or beginning with ~/
	Workspace string // in the workspace
	Artifact  string // name or id of an artifact
	Version   int    // of the artifact, 0 for the newest
	To        superqode.RelPath
	Link      bool // a symbolic link instead of a copy
	ReadOnly  bool
	Optional  bool // it need not exist
}

// The forms of an input's source besides a plain path.
const (
	artifactScheme  = "artifact://"
	workspaceScheme = "workspace://"
)

func inputItem() *field {
	return &field{kind: object, fields: []field{
		{name: "from", kind: textKind, required: true, check: inputSource, resolve: resolveSource, doc: "A file or folder relative to this configuration file, workspace://PATH in the workspace, or artifact://NAME[@VERSION]."},
		{name: "to", kind: textKind, check: inputTarget,
			doc: "Where in the workspace; by default the source's own name; below a folder if it ends with a slash."},
		{name: "mode", kind: textKind, choices: []string{"copy", "link"},
			doc: "Copy it, or make a symbolic link to it."},
		{name: "read_only", kind: boolean, doc: "Without write permission."},
		{name: "optional", kind: boolean, doc: "Continue if it does not exist."},
	}}
}

func inputSource(s string) error {
	_, err := parseSource(s)
	return err
}

// inputTarget is workspacePath for a text that may end with a slash.
func inputTarget(s string) error { return workspacePath(strings.TrimRight(s, "/")) }

// resolveSource makes a plain path absolute.
func resolveSource(dir, s string) string {
	if in, err := parseSource(s); err != nil || in.Path == "" {
		return s
	}
	return resolveHost(dir, s)
}

// parseSource reads where an input comes from.
func parseSource(s string) (Input, error) {
	in := Input{From: s}
	if s == "" || strings.ContainsRune(s, 0) {
		return in, fmt.Errorf("%q names no file", s)
	}
	for _, prefix := range []string{workspaceScheme, "$SUPERQODE_WORKSPACE/", "${SUPERQODE_WORKSPACE}/"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			in.Workspace = path.Clean(rest)
			return in, workspacePath(rest)
		}
	}
	if rest, ok := strings.CutPrefix(s, artifactScheme); ok {
		in.Artifact = rest
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			n, err := strconv.Atoi(rest[i+1:])
			if err != nil || n < 1 {
				return in, fmt.Errorf("%q: %q is not a version (a number from 1)", s, rest[i+1:])
			}
			in.Artifact, in.Version = rest[:i], n
		}
		if in.Artifact == "" {
			return in, fmt.Errorf("%q names no artifact", s)
		}
		return in, nil
	}
	if i := strings.Index(s, "://"); i > 0 && !strings.ContainsAny(s[:i], "/.") {
		return in, fmt.Errorf("%q: inputs do not come from %s (a path, workspace:// or artifact://)", s, s[:i+3])
	}
	in.Path = s
	return in, nil
}

// name is what the source is called, for an input that names no target.
func (in *Input) name() string {
	switch {
	case in.Artifact != "":
		return path.Base(in.Artifact)
	case in.Path != "":
		return filepath.Base(in.Path)
	}
	return path.Base(in.Workspace)
}

func (in *Input) target(to string) error {
	if to == "" || strings.HasSuffix(to, "/") {
		to += in.name()
	}
	if err := workspacePath(to); err != nil {
		return err
	}
	in.To = cleanPath(to)
	return nil
}

func inputOf(m map[string]any, n int) Input {
	in, _ := parseSource(str(m, "from")) // checked by the table
	in.Key = fmt.Sprintf("inputs[%d]", n)
	in.Link = str(m, "mode") == "link"
	in.ReadOnly, _ = m["read_only"].(bool)
	in.Optional, _ = m["optional"].(bool)
	_ = in.target(str(m, "to")) // a source whose own name is not valid leaves To zero, and package setup reports it
	return in
}

// ParseInput reads an --input: FROM[:TO[:OPTION,…]], where the options are
// copy, link, ro and optional. A relative FROM counts from dir. The default of
// TO is FROM's own name.
func ParseInput(s, dir string) (Input, error) {
	fail := func(err error) (Input, error) {
		return Input{}, superqode.WithHint(superqode.Errorf(superqode.ErrUsage, "--input %s: %v", text.Printable(s), err), "--input FROM[:TO[:ro,link,optional]]")
	}
	scheme, rest := "", s
	for _, p := range []string{artifactScheme, workspaceScheme} {
		if r, ok := strings.CutPrefix(s, p); ok {
			scheme, rest = p, r
		}
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return fail(fmt.Errorf("more than three parts; write a path with a colon into superqode.yaml"))
	}
	in, err := parseSource(scheme + parts[0])
	if err != nil {
		return fail(err)
	}
	in.Key = "--input " + s
	if in.Path != "" {
		in.Path = resolveHost(dir, in.Path)
	}
	to := ""
	if len(parts) > 1 {
		to = parts[1]
	}
	if len(parts) > 2 {
		for opt := range strings.SplitSeq(parts[2], ",") {
			switch opt {
			case "ro", "readonly", "read_only":
				in.ReadOnly = true
			case "link":
				in.Link = true
			case "copy":
			case "optional":
				in.Optional = true
			default:
				return fail(fmt.Errorf("%q is not an option (ro, link, copy, optional)", opt))
			}
		}
	}
	if err := in.target(to); err != nil {
		return fail(err)
	}
	return in, nil
}
