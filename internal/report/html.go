package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"

	"github.com/seed-2d964004/superqode/artifacts"
)

// HTMLOptions say what an HTML report shows besides the report itself.
type HTMLOptions struct {
	// Patches are the session's, and those of its agents. The page shows the
	// session's where there is one (Agent is empty), else those of the agents.
	Patches []Patch
	// Root is the address of the folder qe-artifacts as seen from the page; ".."
	// where it is empty, which is right for a page in qr/.
	Root string
	// Mask hides secrets in the lines of the diff; nil shows all.
	Mask func(string) string
	// Quick bounds the time that highlighting takes to some 50 ms, for a page that
	// nobody has asked for yet.
	Quick bool
}

// Patch is the content of a patch in git's format.
type Patch struct {
	Agent string // "" for the whole session's
	Path  string // below qe-artifacts
	Data  []byte
}

//go:embed assets/page.gohtml assets/page.css assets/page.js
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
	tmpl, err := template.New("page.gohtml").Funcs(template.FuncMap{"text": shown, "lines": block}).ParseFS(assets, "assets/page.gohtml")
	if err != nil {
		return nil, err
	}
	csp := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", hash(css), hash(js))
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
	page := newPage(rep, opt)
	page.CSS, page.JS, page.CSP = a.css, a.js, a.csp
	var b bytes.Buffer
	if err := a.tmpl.Execute(&b, page); err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
