package redact

import (
	"bytes"
	_ "embed"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed rules.txt
var rulesText string

// rule finds tokens of one shape, around its keywords.
type rule struct {
	id       string
	keywords []string // lower case
	entropy  float64  // the least entropy of the token's letters, in bits
	expr     string
	at       bool // every match begins with the keyword

	once sync.Once
	re   *regexp.Regexp
}

// regexp compiles the rule when a text first needs it.
func (r *rule) regexp() *regexp.Regexp {
	r.once.Do(func() { r.re, _ = regexp.Compile(r.expr) }) // TestRules compiles every one
	return r.re
}

// parseRules reads the embedded rules and adds our own.
func parseRules() []*rule {
	list := []*rule{
		{id: "url-credentials", keywords: []string{"://"}, expr: `://[^\s/:@?#"'<>]{0,256}:([^\s/@?#"'<>]{1,256})@`},
		{id: "authorization-header", keywords: []string{"authorization"}, expr: `(?i)authorization["']?\s{0,5}[:=]\s{0,5}["']?` +
			`(?:bearer|basic|token|digest|apikey)\s{1,5}([A-Za-z0-9._~+/=-]{6,})`},
	}
	for line := range strings.Lines(rulesText) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 5)
		if len(f) != 5 {
			continue // TestRules compares the file with its source
		}
		entropy, _ := strconv.ParseFloat(f[1], 64)
		r := &rule{id: f[0], entropy: entropy, at: f[2] == "at", keywords: strings.Fields(f[3]), expr: f[4]}
		if r.at {
			r.expr = "^(?:" + r.expr + ")"
		}
		list = append(list, r)
	}
	return list
}

// reach returns how many bytes, and how many lines, a rule looks ahead.
func (r *rule) reach() (ahead, lines int) {
	switch r.id {
	case "jwt", "jwt-base64": // the claims of some have kilobytes
		return 8 << 10, 1
	case "curl-auth-header", "curl-auth-user": // a command in several lines
		return lookAhead, 6
	}
	return lookAhead, 2
}

// plausible is a cheap check for what the rule needs to match; end is where the
// keyword ends.
func (r *rule) plausible(window []byte, end int) bool {
	switch {
	case r.at: // name and value are separated by a sign of assignment
		return bytes.ContainsAny(window[end:min(end+64, len(window))], "=>:|?,")
	case r.id == "curl-auth-header":
		return bytes.Contains(window, []byte("-H")) || bytes.Contains(window, []byte("--header"))
	case r.id == "curl-auth-user":
		return bytes.Contains(window, []byte("-u")) || bytes.Contains(window, []byte("--user"))
	}
	return true
}

// entropyOf returns the mean information of a byte of s, in bits.
func entropyOf(s []byte) float64 {
	var count [256]int
	for _, c := range s {
		count[c]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
