package report

import (
	"bytes"
	"embed"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"

	"github.com/seed-2d964004/superqode/internal/text"
)

// The lexers stand in our own assets: chroma's package of all of them reads its
// 280 tables when the program starts, which costs every command 6 ms.
//
//go:embed assets/lexers/*.xml
var lexerFiles embed.FS

// loadLexers reads the tables' heads; the rules are read when one is used.
var loadLexers = sync.OnceValue(func() *chroma.LexerRegistry {
	reg := chroma.NewLexerRegistry()
	entries, err := lexerFiles.ReadDir("assets/lexers")
	if err != nil {
		return reg
	}
	for _, e := range entries {
		if l, err := chroma.NewXMLLexer(lexerFiles, "assets/lexers/"+e.Name()); err == nil {
			reg.Register(l)
		}
	}
	return reg
})

// The bounds of highlighting: chroma's patterns take 3 µs a byte, and for a hostile
// text much more. What is beyond is shown without colours.
const (
	maxCodeBytes  = 256 << 10 // of a report
	maxCodePiece  = 64 << 10  // of one hunk
	maxCodeTime   = 2 * time.Second
	quickBytes    = 4 << 10
	quickCodeTime = 100 * time.Millisecond
)

// coder highlights the pieces of one report.
type coder struct {
	byName map[string]chroma.Lexer // by extension or, without one, by base name; nil: none
	left   int                     // bytes
	until  time.Time
}

func newCoder(quick bool) *coder {
	bytes, limit := maxCodeBytes, maxCodeTime
	if quick {
		bytes, limit = quickBytes, quickCodeTime
	}
	return &coder{byName: map[string]chroma.Lexer{}, left: bytes, until: time.Now().Add(limit)}
}

func (c *coder) lexer(name string) chroma.Lexer {
	base := path.Base(name)
	key := path.Ext(base)
	if key == "" || key == base {
		key = base
	}
	l, known := c.byName[key]
	if !known {
		l = matchLexer(base)
		c.byName[key] = l
	}
	return l
}

// matchLexer is what the registry's Match does, which tries each pattern with ten
// suffixes of backups besides: 10 ms for a dozen kinds of files.
func matchLexer(base string) chroma.Lexer {
	var found chroma.PrioritisedLexers
	for _, l := range loadLexers().Lexers {
		if slices.ContainsFunc(l.Config().Filenames, func(glob string) bool {
			if ext, ok := strings.CutPrefix(glob, "*"); ok && !strings.ContainsAny(ext, `*?[\`) {
				return strings.HasSuffix(base, ext)
			}
			ok, err := path.Match(glob, base)
			return ok && err == nil
		}) {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil
	}
	sort.Sort(found)
	return found[0]
}

// lines splits the text of a file into its lines' tokens. It returns nil where the
// text is not highlighted, for whichever reason: the caller shows it as it is.
func (c *coder) lines(name, text string) (out [][]chroma.Token) {
	if text == "" || !utf8.ValidString(text) || strings.Contains(text, "\r") {
		return nil
	}
	if len(text) > min(c.left, maxCodePiece) || time.Now().After(c.until) {
		return nil
	}
	lexer := c.lexer(name)
	if lexer == nil {
		return nil
	}
	c.left -= len(text)
	defer func() {
		if recover() != nil { // a table of chroma that does not fit the text
			out = nil
		}
	}()
	it, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		return nil
	}
	var tokens []chroma.Token
	size := 0
	for t := it(); t != chroma.EOF; t = it() {
		tokens = append(tokens, t)
		if size += len(t.Value); size > len(text) || len(tokens)%64 == 0 && time.Now().After(c.until) {
			return nil
		}
	}
	if !same(tokens, text) {
		return nil
	}
	return chroma.SplitTokensIntoLines(tokens)
}

// same reports whether the tokens are the text: what is shown must be what is
// there, whatever the lexer makes of it.
func same(tokens []chroma.Token, text string) bool {
	for _, t := range tokens {
		var ok bool
		if text, ok = strings.CutPrefix(text, t.Value); !ok {
			return false
		}
	}
	return text == ""
}

// class returns the class that the style sheet colours a token by, or "".
func class(t chroma.TokenType) string {
	switch t {
	case chroma.KeywordType, chroma.NameClass, chroma.NameNamespace, chroma.NameException:
		return "t"
	case chroma.NameFunction, chroma.NameFunctionMagic, chroma.NameDecorator, chroma.NameAttribute:
		return "f"
	case chroma.NameTag, chroma.NameBuiltin, chroma.NameConstant, chroma.GenericHeading, chroma.GenericSubheading:
		return "k"
	case chroma.NameVariable, chroma.NameVariableGlobal, chroma.NameVariableInstance, chroma.NameEntity:
		return "v"
	}
	switch {
	case t.InCategory(chroma.Keyword):
		return "k"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	case t.InCategory(chroma.Comment):
		return "c"
	}
	return ""
}

// span is a part of a line, in bytes.
type span struct{ from, to int }

// writeLine writes one line of a file, its tokens coloured where they are known,
// and the part that changed in it marked.
func writeLine(b *bytes.Buffer, code string, tokens []chroma.Token, mark span) {
	if len(code) > maxLine {
		writeText(b, text.Clip(code, maxLine))
		b.WriteString(`<b class=x>line cut, `)
		b.WriteString(text.Size(int64(len(code))))
		b.WriteString(` in all</b>`)
		return
	}
	if tokens == nil {
		tokens = []chroma.Token{{Type: chroma.Text, Value: code}}
	}
	pos := 0
	for _, t := range tokens {
		value := strings.TrimSuffix(t.Value, "\n")
		if value == "" {
			continue
		}
		cl := class(t.Type)
		if cl != "" {
			b.WriteString("<i class=" + cl + ">")
		}
		from, to := min(max(mark.from-pos, 0), len(value)), min(max(mark.to-pos, 0), len(value))
		if from < to {
			writeText(b, value[:from])
			b.WriteString("<u>")
			writeText(b, value[from:to])
			b.WriteString("</u>")
			writeText(b, value[to:])
		} else {
			writeText(b, value)
		}
		if cl != "" {
			b.WriteString("</i>")
		}
		pos += len(value)
	}
}

// maxLine bounds what is shown of one line, in bytes.
const maxLine = 2000

// changedPart returns which part of each of two versions of a line differs. Lines
// that have little in common are not marked.
func changedPart(a, b string) (span, span) {
	if len(a) > maxLine || len(b) > maxLine {
		return span{}, span{}
	}
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	for pre > 0 && (pre < len(a) && !utf8.RuneStart(a[pre]) || pre < len(b) && !utf8.RuneStart(b[pre])) {
		pre--
	}
	for pre > 0 && inWord(a, b, pre-1) && (inWord(a, a, pre) || inWord(b, b, pre)) { // whole words are easier to see
		pre--
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && a[len(a)-1-post] == b[len(b)-1-post] {
		post++
	}
	for post > 0 && !utf8.RuneStart(a[len(a)-post]) {
		post--
	}
	goesOn := func(s string) bool { return len(s)-post > pre && isWord(s[len(s)-post-1]) }
	for post > 0 && isWord(a[len(a)-post]) && (goesOn(a) || goesOn(b)) {
		post--
	}
	if (pre+post)*3 < max(len(a), len(b)) {
		return span{}, span{}
	}
	return span{pre, len(a) - post}, span{pre, len(b) - post}
}

func inWord(a, b string, i int) bool { return i < len(a) && i < len(b) && isWord(a[i]) && isWord(b[i]) }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
