package artifacts

import (
	"bytes"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/seed-2d964004/superqode"
)

// WithSuppression returns the content of SuppressionsFile with an entry more.
// What stands there stays, comments too. The error wraps superqode.ErrUsage when
// the content is no list that can be added to.
func WithSuppression(data []byte, entry Suppression) ([]byte, error) {
	out := bytes.Clone(data)
	if len(bytes.TrimSpace(out)) == 0 {
		out = []byte("# Findings that were looked at and do not count: superqode finding suppress\n")
	}
	if !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	out = append(out, entry.YAML()...)
	if _, _, err := ParseSuppressions(out); err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s is not a list that can be added to: %v", SuppressionsFile, err)
	}
	return out, nil
}

// WithoutSuppression returns the content of SuppressionsFile without the entries
// of a fingerprint. Comments stay, and so do all other entries: where that can not
// be had, because several stand in one line, the error wraps superqode.ErrUsage.
func WithoutSuppression(data []byte, fingerprint string) ([]byte, error) {
	before, _, err := ParseSuppressions(data)
	if err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%v", err)
	}
	drop, err := entryLines(data, fingerprint)
	if err != nil {
		return nil, err
	}
	var out []byte
	n := 0
	for line := range bytes.Lines(data) {
		if n++; !drop[n] {
			out = append(out, line...)
		}
	}
	after, _, err := ParseSuppressions(out)
	delete(before, fingerprint)
	if err != nil || len(after) != len(before) {
		return nil, superqode.Errorf(superqode.ErrUsage, "the entry of %s can not be taken out of %s alone; take it out by hand", fingerprint, SuppressionsFile)
	}
	for print, entry := range before {
		if after[print] != entry {
			return nil, superqode.Errorf(superqode.ErrUsage, "the entry of %s can not be taken out of %s alone; take it out by hand", fingerprint, SuppressionsFile)
		}
	}
	return out, nil
}

// entryLines returns the lines, from 1, on which the entries of a fingerprint
// stand: from an entry's dash to the last line before the next entry that is
// neither empty nor a comment.
func entryLines(data []byte, fingerprint string) (map[int]bool, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, superqode.Errorf(superqode.ErrUsage, "%s: %v", SuppressionsFile, err)
	}
	lines := bytes.Split(data, []byte("\n"))
	drop := map[int]bool{}
	for _, doc := range file.Docs {
		list, ok := doc.Body.(*ast.SequenceNode)
		if !ok || list.IsFlowStyle {
			continue
		}
		for i, entry := range list.Entries {
			if !isEntryOf(entry.Value, fingerprint) {
				continue
			}
			end := len(lines)
			if i+1 < len(list.Entries) {
				end = list.Entries[i+1].Start.Position.Line - 1
			}
			for text := true; end > entry.Start.Position.Line && text; {
				line := bytes.TrimSpace(lines[end-1])
				if text = len(line) == 0 || line[0] == '#'; text {
					end--
				}
			}
			for n := entry.Start.Position.Line; n <= end; n++ {
				drop[n] = true
			}
		}
	}
	return drop, nil
}

func isEntryOf(n ast.Node, fingerprint string) bool {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return false
	}
	for _, kv := range m.Values {
		if v, ok := kv.Value.(*ast.StringNode); ok && kv.Key.String() == "fingerprint" && v.Value == fingerprint {
			return true
		}
	}
	return false
}
