package guard

import "strings"

func (c *checker) tar(st *state, base string, args []string) {
	extract, to := false, ""
	content := inputOf(st)
	for i, a := range args {
		if text, ok := c.files[under(st.dir, st.tilde(a))]; ok {
			content = text
		}
		for _, option := range []string{"--checkpoint-action=exec=", "--to-command=", "--use-compress-program="} {
			if line, ok := strings.CutPrefix(a, option); ok {
				c.nested(st, line, "tar runs it")
			}
		}
		switch {
		case a == "-C" || a == "--directory":
			if i+1 < len(args) {
				to = args[i+1]
			}
		case strings.HasPrefix(a, "--directory="):
			to = a[len("--directory="):]
		case a == "--extract" || a == "--get":
			extract = true
		case a == "--to-stdout" || a == "--keep-old-files" || a == "--skip-old-files":
			return
		case (i == 0 || strings.HasPrefix(a, "-")) && !strings.HasPrefix(a, "--"):
			extract = extract || strings.Contains(a, "x")
			if i > 0 && strings.Contains(a, "O") || i == 0 && extract && strings.Contains(a, "O") { // to standard output
				return
			}
		}
	}
	if !extract {
		return
	}
	c.protect(st, base, []string{to})
	c.unpack(st, under(st.dir, st.tilde(to)), content, append([]string{base}, args...))
}

// unpack writes an archive into a folder: one that git archive made, into the
// folder that it was made from, puts committed contents back.
func (c *checker) unpack(st *state, dir, content string, words []string) {
	if dir != c.startDir() && !strings.Contains(content, unknownValue(kindArchive, dir)) {
		return
	}
	if kindOf(content) == kindArchive {
		c.operation("checkout.discard", append([]string{"git", "archive", "|"}, words...), func() bool { return c.inFresh(dir) })
	}
}

func (c *checker) unzip(st *state, args []string) {
	p := newSpec("d= x= P= l t v z Z p c n o f u q").parse(args, false)
	if p.has("l", "t", "v", "z", "Z", "p", "c") || len(p.args) == 0 {
		return
	}
	c.protect(st, "unzip", p.values["d"])
	if !p.has("n") {
		c.unpack(st, under(st.dir, st.tilde(p.last("d"))), c.readFile(st, p.args[0]), append([]string{"unzip"}, args...))
	}
}
