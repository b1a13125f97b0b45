package codeexec

import (
	"strings"

	"github.com/seed-2d964004/superqode"
)

// Block is one piece of code in a text.
type Block struct {
	Code     string `json:"code"`
	Language string `json:"language"` // as the text has it, without the spaces around it; may be ""
}

// Delimiters enclose a block. What follows Start on its line is the language.
type Delimiters struct{ Start, End string }

// Markdown is the Delimiters of fenced code.
var Markdown = Delimiters{"```", "```"}

// ExtractCodeBlocks returns the blocks of a text, in their order. The code begins after
// the line of d.Start and ends where d.End follows; what is never closed is no block. A
// delimiter that is empty or holds a line break is superqode.ErrUsage.
func ExtractCodeBlocks(text string, d Delimiters) ([]Block, error) {
	for _, f := range []struct{ name, value string }{{"start", d.Start}, {"end", d.End}} {
		if f.value == "" || strings.Contains(f.value, "\n") {
			return nil, superqode.Errorf(superqode.ErrUsage, "%s: the delimiter %q is empty or has a line break", f.name, f.value)
		}
	}
	var blocks []Block
	for {
		_, rest, ok := strings.Cut(text, d.Start)
		if !ok {
			return blocks, nil
		}
		language, rest, ok := strings.Cut(rest, "\n")
		if !ok {
			return blocks, nil
		}
		code, rest, ok := strings.Cut(rest, d.End)
		if !ok {
			return blocks, nil
		}
		blocks = append(blocks, Block{Code: code, Language: strings.TrimSpace(language)})
		text = rest
	}
}
