package guard

import (
	"slices"
	"strings"
)

// makeRule is one rule of a makefile.
type makeRule struct {
	targets []string
	needs   []string
	recipe  []string
}

// make runs the recipes of a makefile that the text itself wrote, or that make
// reads from its input, for the targets that are named.
func (c *checker) make(st *state, args []string) {
	p := newSpec(`f/file= makefile= C/directory= j? jobs? n/just-print dry-run recon q/question t/touch k/keep-going i/ignore-errors s/silent B/always-make e/environment-overrides
 I= l? o/old-file= W/what-if= eval= E= r R p d w h v`).parse(args, false)
	if p.has("just-print", "dry-run", "recon", "question", "touch", "h", "v") {
		return
	}
	dir := st.dir
	for _, d := range p.values["directory"] {
		dir = under(dir, d)
	}
	text := strings.Join(append(p.values["eval"], p.values["E"]...), "\n") + "\n"
	files := append(p.values["file"], p.values["makefile"]...)
	if len(files) == 0 {
		files = []string{"GNUmakefile", "makefile", "Makefile"}
	}
	for _, f := range files {
		if f == "-" {
			f = "/dev/stdin"
		}
		if t := c.readFile(st, under(dir, f)); isKnown(t) {
			text += t + "\n"
		}
	}
	rules := parseMakefile(text)
	var goals []string
	n := withoutShell(st)
	n.dir = dir
	for _, a := range p.args {
		if k, v, ok := strings.Cut(a, "="); ok {
			n.setExported(k, v)
			continue
		}
		goals = append(goals, a)
	}
	if len(goals) == 0 && len(rules) > 0 {
		goals = rules[0].targets[:1]
	}
	c.makeGoals(n, rules, goals, map[string]bool{})
}

func (c *checker) makeGoals(st *state, rules []makeRule, goals []string, done map[string]bool) {
	for _, g := range goals {
		if done[g] || !c.spend() {
			continue
		}
		done[g] = true
		for _, r := range rules {
			if !slices.Contains(r.targets, g) {
				continue
			}
			c.makeGoals(st, rules, r.needs, done)
			for _, line := range r.recipe {
				c.nested(st, line, "make runs the recipe of "+g)
			}
		}
	}
}

// parseMakefile reads rules and their recipes; variables and functions stay as
// they stand, as $(…) they are unknown to a shell, too.
func parseMakefile(text string) []makeRule {
	var rules []makeRule
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			if len(rules) > 0 {
				last := &rules[len(rules)-1]
				last.recipe = append(last.recipe, recipeLine(recipe))
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		head, recipe, inline := strings.Cut(line, ";")
		targets, needs, ok := strings.Cut(head, ":")
		if !ok || strings.HasPrefix(needs, "=") || strings.TrimSpace(targets) == "" || strings.Contains(targets, "=") {
			continue
		}
		r := makeRule{targets: strings.Fields(targets), needs: strings.Fields(strings.TrimPrefix(needs, ":"))}
		if inline {
			r.recipe = []string{recipeLine(recipe)}
		}
		rules = append(rules, r)
	}
	return rules
}

// recipeLine takes make's own prefixes and dollar signs out of a recipe's line.
func recipeLine(s string) string {
	return strings.ReplaceAll(strings.TrimLeft(s, "@-+ \t"), "$$", "$")
}
