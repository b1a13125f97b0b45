package findings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/text"
)

// The parts of SARIF 2.1.0 that become findings. Everything is optional here: a
// tool's file is read for what it holds, and checking it is the tool's business.
type (
	sarifLog struct {
		Version string            `json:"version"`
		Runs    []json.RawMessage `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver     sarifTool   `json:"driver"`
			Extensions []sarifTool `json:"extensions"`
		} `json:"tool"`
		Results   []json.RawMessage        `json:"results"`
		Bases     map[string]sarifLocation `json:"originalUriBaseIds"`
		Artifacts []struct {
			Location sarifLocation `json:"location"`
		} `json:"artifacts"`
	}
	sarifTool struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID       string                  `json:"id"`
		Name     string                  `json:"name"`
		Short    sarifMessage            `json:"shortDescription"`
		Full     sarifMessage            `json:"fullDescription"`
		Help     sarifMessage            `json:"help"`
		Messages map[string]sarifMessage `json:"messageStrings"`
		Default  struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
		Properties sarifProperties `json:"properties"`
	}
	sarifProperties struct {
		Tags     []string        `json:"tags"`
		Security json.RawMessage `json:"security-severity"` // a number, mostly in a string
	}
	sarifMessage struct {
		Text      string   `json:"text"`
		ID        string   `json:"id"`
		Arguments []string `json:"arguments"`
	}
	sarifLocation struct {
		URI   string `json:"uri"`
		Base  string `json:"uriBaseId"`
		Index *int   `json:"index"`
	}
	sarifResult struct {
		RuleID    string       `json:"ruleId"`
		RuleIndex *int         `json:"ruleIndex"`
		Rule      sarifRuleRef `json:"rule"`
		Kind      string       `json:"kind"`
		Level     string       `json:"level"`
		Baseline  string       `json:"baselineState"`
		Message   sarifMessage `json:"message"`
		Locations []struct {
			Physical struct {
				Artifact sarifLocation `json:"artifactLocation"`
				Region   *sarifRegion  `json:"region"`
			} `json:"physicalLocation"`
		} `json:"locations"`
		Fixes []struct {
			Description sarifMessage `json:"description"`
			Changes     []struct {
				Replacements []struct {
					Inserted struct {
						Text string `json:"text"`
					} `json:"insertedContent"`
				} `json:"replacements"`
			} `json:"artifactChanges"`
		} `json:"fixes"`
		Suppressions []struct {
			Kind          string `json:"kind"`
			Status        string `json:"status"`
			Justification string `json:"justification"`
		} `json:"suppressions"`
		Properties sarifProperties `json:"properties"`
	}
	sarifRuleRef struct {
		ID    string `json:"id"`
		Index *int   `json:"index"`
		Tool  *struct {
			Index *int `json:"index"`
		} `json:"toolComponent"`
	}
	sarifRegion struct {
		Start   int `json:"startLine"`
		End     int `json:"endLine"`
		Snippet struct {
			Text string `json:"text"`
		} `json:"snippet"`
	}
)

// isSARIF looks for what every SARIF file has at its top: runs, and a version or
// a schema that says 2.1.0.
func isSARIF(data []byte) bool {
	if data[0] != '{' || !bytes.Contains(data, []byte(`"runs"`)) {
		return false
	}
	var top struct {
		Schema  string          `json:"$schema"`
		Version string          `json:"version"`
		Runs    json.RawMessage `json:"runs"`
	}
	if json.Unmarshal(data, &top) != nil || len(top.Runs) == 0 || top.Runs[0] != '[' {
		return false
	}
	return strings.HasPrefix(top.Version, "2.") || strings.Contains(strings.ToLower(top.Schema), "sarif")
}

// sarifReader turns one run's results into findings.
type sarifReader struct {
	sarifRun
	at       int // the run, from 0
	relative func(string) (string, bool)
	list     []artifacts.Finding
	problems []string
}

// parseSARIF reads the findings of a SARIF file. relative makes a path one below
// the origin's top.
func parseSARIF(data []byte, relative func(string) (string, bool)) (list []artifacts.Finding, problems []string) {
	var doc sarifLog
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, []string{text.JSONError(err)}
	}
	if doc.Version != "2.1.0" {
		problems = append(problems, fmt.Sprintf("version: %q is read as 2.1.0", text.Clip(doc.Version, 40)))
	}
	for i, raw := range doc.Runs {
		r := &sarifReader{at: i, relative: relative}
		if err := json.Unmarshal(raw, &r.sarifRun); err != nil {
			problems = append(problems, fmt.Sprintf("runs[%d]: %s", i, text.JSONError(err)))
			continue
		}
		for n, raw := range r.Results {
			r.result(n, raw)
		}
		list, problems = append(list, r.list...), append(problems, r.problems...)
	}
	return list, problems
}

func (r *sarifReader) result(n int, raw json.RawMessage) {
	var res sarifResult
	if err := json.Unmarshal(raw, &res); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("runs[%d].results[%d]: %s", r.at, n, text.JSONError(err)))
		return
	}
	if res.Kind == "pass" || res.Kind == "notApplicable" || res.Baseline == "absent" {
		return // nothing is wrong, or no more
	}
	rule := r.rule(res)
	f := artifacts.Finding{
		FoundBy: valid(r.Tool.Driver.Name), RuleID: valid(rule.ID), Severity: severityOf(res, rule),
		Category: cmp.Or(valid(rule.Name), valid(rule.ID)), Tags: rule.Properties.Tags,
	}
	f.Priority = f.Severity.DefaultPriority()
	words := message(res.Message, rule)
	first, _, _ := strings.Cut(strings.TrimSpace(words), "\n")
	f.Title = valid(text.Clip(cmp.Or(first, strings.TrimSpace(rule.Short.Text), rule.ID), 500))
	if f.Description = valid(words); strings.TrimSpace(f.Description) == f.Title {
		f.Description = valid(rule.Full.Text)
	}
	r.place(&f, res)
	f.SuggestedFix = valid(suggestion(res, rule))
	for _, s := range res.Suppressions {
		if s.Status == "" || s.Status == "accepted" {
			f.Suppressed = &artifacts.Suppressed{Reason: valid(s.Justification), By: f.FoundBy}
		}
	}
	if len(f.Tags) > artifacts.MaxTags {
		f.Tags = f.Tags[:artifacts.MaxTags]
	}
	if err := f.Validate(); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("runs[%d].results[%d]: %v", r.at, n, err))
		return
	}
	r.list = append(r.list, f)
}

// rule finds the rule that a result names by id, by index, or by both.
func (r *sarifReader) rule(res sarifResult) sarifRule {
	tool := r.Tool.Driver
	if t := res.Rule.Tool; t != nil && t.Index != nil && *t.Index >= 0 && *t.Index < len(r.Tool.Extensions) {
		tool = r.Tool.Extensions[*t.Index]
	}
	id, index := cmp.Or(res.RuleID, res.Rule.ID), cmp.Or(res.RuleIndex, res.Rule.Index)
	if index != nil && *index >= 0 && *index < len(tool.Rules) {
		return tool.Rules[*index]
	}
	for _, rule := range tool.Rules {
		if rule.ID == id || strings.HasPrefix(id, rule.ID+"/") && rule.ID != "" {
			return rule
		}
	}
	return sarifRule{ID: id}
}

// severityOf maps a result's level, or the security severity that GitHub's tools
// write, to a severity.
func severityOf(res sarifResult, rule sarifRule) artifacts.Severity {
	for _, p := range []sarifProperties{res.Properties, rule.Properties} {
		score, err := strconv.ParseFloat(strings.Trim(string(p.Security), `"`), 64)
		switch {
		case err != nil || score < 0 || score > 10:
		case score >= 9:
			return artifacts.SeverityCritical
		case score >= 7:
			return artifacts.SeverityHigh
		case score >= 4:
			return artifacts.SeverityMedium
		case score > 0:
			return artifacts.SeverityLow
		}
	}
	level := res.Level
	if level == "" && (res.Kind == "" || res.Kind == "fail") {
		level = rule.Default.Level
	}
	switch {
	case level == "error":
		return artifacts.SeverityHigh
	case level == "note":
		return artifacts.SeverityLow
	case level == "none", level == "" && res.Kind == "informational":
		return artifacts.SeverityInfo
	}
	return artifacts.SeverityMedium // warning, which is also what a missing level means
}

// message returns a result's text with its arguments put in.
func message(m sarifMessage, rule sarifRule) string {
	text := m.Text
	if text == "" && m.ID != "" {
		text = rule.Messages[m.ID].Text
	}
	for i, arg := range m.Arguments {
		text = strings.ReplaceAll(text, "{"+strconv.Itoa(i)+"}", arg)
	}
	return text
}

func suggestion(res sarifResult, rule sarifRule) string {
	for _, fix := range res.Fixes {
		text := fix.Description.Text
		for _, c := range fix.Changes {
			for _, rep := range c.Replacements {
				if rep.Inserted.Text != "" {
					text += "\n" + rep.Inserted.Text
				}
			}
		}
		if strings.TrimSpace(text) != "" {
			return strings.TrimSpace(text)
		}
	}
	return rule.Help.Text
}

// place fills in file and lines. It describes a place outside the origin in
// words.
func (r *sarifReader) place(f *artifacts.Finding, res sarifResult) {
	if len(res.Locations) == 0 {
		return
	}
	at := res.Locations[0].Physical
	uri := r.uri(at.Artifact, 0)
	region := at.Region
	if region != nil {
		f.Evidence = valid(region.Snippet.Text)
	}
	if uri == "" {
		return
	}
	name := uri
	if u, err := url.Parse(uri); err == nil && (u.Scheme == "" || u.Scheme == "file") {
		name = u.Path
	} else if unescaped, err := url.PathUnescape(uri); err != nil || strings.Contains(uri, "://") {
		name = ""
	} else {
		name = unescaped
	}
	rel, ok := r.relative(name)
	if name == "" || !ok {
		f.Evidence = strings.TrimSpace("At " + valid(uri) + "\n\n" + f.Evidence)
		return
	}
	f.File = rel
	if region != nil && region.Start > 0 {
		f.Lines = &artifacts.LineRange{Start: region.Start, End: max(region.End, region.Start)}
	}
}

// uri resolves a location: by its index, and below the base that it names.
func (r *sarifReader) uri(l sarifLocation, depth int) string {
	if l.URI == "" && l.Index != nil && *l.Index >= 0 && *l.Index < len(r.Artifacts) {
		l = r.Artifacts[*l.Index].Location
	}
	base, ok := r.Bases[l.Base]
	if !ok || l.URI == "" || depth > 10 || strings.Contains(l.URI, "://") || strings.HasPrefix(l.URI, "/") {
		return l.URI
	}
	if outer := r.uri(base, depth+1); outer != "" {
		if scheme, rest, found := strings.Cut(outer, "://"); found {
			return scheme + "://" + path.Join("/", rest, l.URI)
		}
		return path.Join(outer, l.URI)
	}
	return l.URI
}
