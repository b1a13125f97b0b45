package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// HTMLOptions say what an HTML report shows besides the report itself.
type HTMLOptions struct {
	Name string // of the session, "" for none
	// Patches are the session's, and those of its agents. The page shows the
	// session's where there is one (Agent is empty), else those of the agents.
	Patches []Patch
	// Conflicts are files with git's conflict markers.
	Conflicts []Patch
	// Root is the address of the folder qe-artifacts as seen from the page; ".."
	// where it is empty, which is right for a page in qr/.
	Root string
	// Mask hides secrets in the lines of the diff; nil shows all.
	Mask func(string) string
	// Quick bounds the time that highlighting takes to some 20 ms, for a page that
	// nobody has asked for yet.
	Quick bool
}

// Patch is the content of a patch in git's format.
type Patch struct {
	Agent string // "" for the whole session's
	Path  string // below qe-artifacts
	Data  []byte
}

//go:embed assets/page.gohtml assets/page.css assets/page.js assets/*.tmpl
var assets embed.FS

// pageAssets is what every page is made of.
type pageAssets struct {
	tmpl *template.Template
	css  template.CSS
	js   template.JS
	csp  string
}

// loadAssets reads them when the first page is made.
var loadAssets = sync.OnceValues(func() (*pageAssets, error) {
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return nil, err
	}
	js, err := assets.ReadFile("assets/page.js")
	if err != nil {
		return nil, err
	}
	own := template.FuncMap{"text": shown, "pre": block, "plain": text.Printable[string]}
	tmpl, err := template.New("page.gohtml").Funcs(words(maxTableRows)).Funcs(own).ParseFS(assets, "assets/page.gohtml")
	if err != nil {
		return nil, err
	}
	csp := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		hash(css), hash(js))
	return &pageAssets{tmpl: tmpl, css: template.CSS(css), js: template.JS(js), csp: csp}, nil
})

// hash is how a content security policy names what stands inside an element.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// HTML writes the report as one page that needs no other file and no network. The
// page's policy lets its own script and style run and nothing else, so that even
// what would slip through the escaping could not run.
func HTML(w io.Writer, rep artifacts.Report, opt HTMLOptions) error {
	a, err := loadAssets()
	if err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	p := newPage(rep, opt)
	p.CSS, p.JS, p.CSP = a.css, a.js, a.csp
	var b bytes.Buffer
	if err := a.tmpl.Execute(&b, p); err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// maxTableRows bounds each table of the page; the JSON report has every row.
const maxTableRows = 500

// page is what the template shows. Everything in it that came from a session is
// either a plain string, which the template escapes, or went through writeText.
type page struct {
	*View
	CSS template.CSS
	JS  template.JS
	CSP string

	Files     []fileView
	Tree      []*treeNode
	FilesMore int
	Clashes   []clash
	Whole     template.URL // of the patch
	root      string       // the address of qe-artifacts
	anchors   map[string]string
}

func newPage(rep artifacts.Report, opt HTMLOptions) *page {
	p := &page{View: NewView(rep, Caller{Name: opt.Name}), root: cmp.Or(opt.Root, ".."), anchors: map[string]string{}}
	parts, files := map[string][]filePatch{}, map[string]template.URL{}
	whole := slices.ContainsFunc(opt.Patches, func(x Patch) bool { return x.Agent == "" })
	for _, patch := range opt.Patches {
		if whole && patch.Agent != "" {
			continue
		}
		for _, part := range parsePatch(patch.Data) {
			parts[part.name] = append(parts[part.name], part)
			files[part.name] = p.Link(patch.Path)
		}
		p.Whole = p.Link(patch.Path)
	}
	d := &differ{
		code: newCoder(opt.Quick), mask: opt.Mask, rows: maxDiffRows, open: maxOpenRows, files: maxOpenFiles,
		findings: map[string][]artifacts.Finding{},
	}
	for _, f := range p.Findings {
		d.findings[f.File] = append(d.findings[f.File], f)
	}
	changes := slices.Clone(p.Changes)
	slices.SortStableFunc(changes, func(a, b superqode.Change) int {
		return compareTree(a.Path.String(), b.Path.String())
	})
	by := agentsByPath(rep)
	p.FilesMore = max(0, len(changes)-maxFiles)
	for i, c := range changes[:len(changes)-p.FilesMore] {
		v := d.view(i+1, c, parts[c.Path.String()])
		v.Agents, v.Patch = by[superqode.RelPath(v.Path)], files[v.Path]
		p.Files = append(p.Files, v)
		p.anchors[v.Path] = v.ID
	}
	p.Tree = tree(p.Files)
	for _, c := range opt.Conflicts {
		p.Clashes = append(p.Clashes, p.clashes(c, opt.Mask)...)
	}
	return p
}

// Anchor is the id of a path's diff, "" where the page has none.
func (p *page) Anchor(name string) string { return p.anchors[name] }

// Link returns the address of a file below qe-artifacts. Only what stands in it as
// a path can follow from the path: every other character is percent-encoded.
func (p *page) Link(name string) template.URL {
	return template.URL(p.root + "/" + escapePath(path.Clean(name)))
}

// agentsByPath says which agents changed each path.
func agentsByPath(rep artifacts.Report) map[superqode.RelPath][]string {
	by := map[superqode.RelPath][]string{}
	add := func(c superqode.Change, agent superqode.AgentID) {
		if name := agent.String(); name != "" && !slices.Contains(by[c.Path], name) {
			by[c.Path] = append(by[c.Path], name)
		}
	}
	for _, c := range rep.Changes {
		add(c, c.Agent)
	}
	for _, a := range rep.Run.Agents {
		for _, c := range a.Changes {
			add(c, a.Agent)
		}
	}
	return by
}

// A clash is one place of a file that two agents changed, each in its own way.
type clash struct {
	Name  string // of the file
	File  template.URL
	Line  int
	Sides []clashSide // of the agent that was merged first, and of the other
}

type clashSide struct{ Agent, Text string }

// maxClashes bounds how many places of a file stand on the page.
const maxClashes = 20

// clashes reads a file with git's conflict markers.
func (p *page) clashes(c Patch, mask func(string) string) (list []clash) {
	name := strings.TrimSuffix(c.Path, ".conflict")
	if _, rest, ok := strings.Cut(name, "/conflicts/"+c.Agent+"/"); ok {
		name = rest
	}
	var now *clash
	base := false
	line := 1
	for text := range strings.Lines(string(c.Data)) {
		label, first := strings.CutPrefix(text, "<<<<<<< ")
		switch {
		case now == nil && first && len(list) < maxClashes:
			now = &clash{Name: name, File: p.Link(c.Path), Line: line, Sides: []clashSide{{Agent: strings.TrimSpace(label)}}}
		case now == nil:
			line++
		case strings.HasPrefix(text, "||||||| "):
			base = true
		case text == "=======\n" && base:
			base = false
			now.Sides = append(now.Sides, clashSide{Agent: c.Agent})
		case strings.HasPrefix(text, ">>>>>>> ") && !base:
			for i := range now.Sides {
				if side := &now.Sides[i]; mask != nil {
					side.Text = mask(side.Text)
				}
			}
			list, now = append(list, *now), nil
		case base:
			line++
		default:
			now.Sides[len(now.Sides)-1].Text += text
		}
	}
	return list
}

// AgentNames lists who changed something, for the filter.
func (p *page) AgentNames() []string {
	var names []string
	for _, f := range p.Files {
		names = append(names, f.Agents...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writeText writes s as text of an HTML element. What cannot be seen, or would
// reorder what stands around it, is written as an escape sequence in an element
// of its own, to distinguish it from the same letters in a file: control
// characters, direction overrides, U+2028, bytes that are not UTF-8. Tabs stay,
// and so do newlines, which only texts of several lines have.
func writeText(b *bytes.Buffer, s string) {
	for part, escaped := range text.Printables(s, "\t\n") {
		if escaped {
			part = "<b class=x>" + part + "</b>"
		} else {
			part = html.EscapeString(part)
		}
		b.WriteString(part)
	}
}

// shown is s on one line, with what cannot be seen escaped.
func shown(s string) template.HTML {
	var b bytes.Buffer
	for i, part := range strings.Split(text.Clip(s, maxShown), "\n") {
		if i > 0 {
			b.WriteString(`<b class=x>\n</b>`)
		}
		writeText(&b, part)
	}
	return template.HTML(b.String()) // writeText has escaped it
}

// block is s with its lines kept, cut to what people read.
func block(s string) template.HTML {
	var b bytes.Buffer
	s = text.Clip(strings.TrimRight(s, "\n"), maxBlock)
	for i, l := range strings.SplitAfter(s, "\n") {
		if i == maxBlockLines {
			b.WriteString("… cut")
			break
		}
		if text, ok := strings.CutSuffix(l, "\r\n"); ok { // a terminal shows no difference
			l = text + "\n"
		}
		if indent, rest, ok := workflowCommand(l); ok { // should somebody print the page there
			b.WriteString(indent + "&#58;")
			l = rest
		}
		for l != "" {
			at := link.FindStringIndex(l)
			if at == nil {
				at = []int{len(l), len(l)}
			}
			writeText(&b, l[:at[0]])
			if to := html.EscapeString(l[at[0]:at[1]]); to != "" {
				fmt.Fprintf(&b, `<a href="%s" rel="noopener noreferrer">%[1]s</a>`, to)
			}
			l = l[at[1]:]
		}
	}
	return template.HTML(b.String())
}

// link is an address in a text, as it is written: a link shows where it leads.
var link = regexp.MustCompile(`https?://[\w.-]*\w(?::\d+)?(?:/[\w./~%+@=&?#,;:!*()-]*[\w/~%+@=&#*-])?`)

// The bounds of what is shown of one string.
const (
	maxShown      = 4 << 10
	maxBlock      = 64 << 10
	maxBlockLines = 400
)

// treeNode is a folder or a changed path of the file tree.
type treeNode struct {
	Name     template.HTML
	File     *fileView // nil for a folder
	Children []*treeNode
	Count    int // changed paths below
	raw      string
}

// compareTree orders paths as the tree shows them: in each folder the folders
// first.
func compareTree(a, b string) int {
	for {
		x, restA, deepA := strings.Cut(a, "/")
		y, restB, deepB := strings.Cut(b, "/")
		if deepA != deepB {
			if deepA {
				return -1
			}
			return 1
		}
		if x != y || !deepA {
			return strings.Compare(x, y)
		}
		a, b = restA, restB
	}
}

// tree builds the folders of files that are in compareTree's order. Folders that
// hold one folder and nothing else are shown as one.
func tree(files []fileView) []*treeNode {
	root := &treeNode{}
	for i := range files {
		node := root
		parts := strings.Split(files[i].Path, "/")
		for depth, part := range parts {
			node.Count++
			if depth == len(parts)-1 || depth == maxDepth {
				leaf := &treeNode{Name: shown(strings.Join(parts[depth:], "/")), File: &files[i], Count: 1}
				node.Children = append(node.Children, leaf)
				break
			}
			last := len(node.Children) - 1
			if last < 0 || node.Children[last].File != nil || node.Children[last].raw != part {
				node.Children = append(node.Children, &treeNode{raw: part})
				last++
			}
			node = node.Children[last]
		}
	}
	for _, c := range root.Children {
		c.join()
	}
	return root.Children
}

// maxDepth bounds the nesting: below it a path is shown whole.
const maxDepth = 24

func (n *treeNode) join() {
	if n.File != nil {
		return
	}
	for len(n.Children) == 1 && n.Children[0].File == nil {
		n.raw += "/" + n.Children[0].raw
		n.Children = n.Children[0].Children
	}
	n.Name = shown(n.raw)
	for _, c := range n.Children {
		c.join()
	}
}
