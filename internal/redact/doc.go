// Package redact masks secrets in text: the values of environment variables that
// are named like secrets, private keys, credentials in URLs and authorization
// headers, and tokens of the shapes that gitleaks knows.
//
// New makes a Redactor; Text and Writer mask, Find only tells where something is.
// What is found is replaced by [redacted:NAME], where NAME is the variable or the
// rule. A nil *Redactor masks nothing.
//
// # What is promised
//
//   - A secret that is written in pieces is found all the same: Writer holds back
//     what could be the beginning of one, and never more than a fixed amount.
//   - Values of variables are found as they are, and as base64, URL escapes, JSON
//     and hexadecimal write them.
//   - The time grows with the length of the text alone. One pass of an
//     Aho-Corasick automaton looks for every word by which a rule can begin, and
//     regular expressions see short pieces around those words only. A rule that has
//     looked at four megabytes of such pieces in vain is given up for that text.
//
// # What is not
//
// Masking is a safety net for logs and reports that people share. It knows
// values and shapes: a password that stands nowhere but in the text is not found,
// and neither is one that the program wrote backwards.
//
// # The rules
//
// gitleaks/gitleaks.toml is the rule set of gitleaks v8.30.1
// (https://github.com/gitleaks/gitleaks, MIT, see gitleaks/LICENSE), unchanged.
// rules.txt is made of it by `go test ./internal/redact -run TestRules -update`,
// so that nothing has to read TOML or compile a rule that a text gives no reason
// to. Two kinds of rules are left out: generic-api-key, which needs a list of
// exceptions as long as the rules, and kubernetes-secret-yaml, which spans whole
// files. The bounds that gitleaks sets behind a token are dropped and lists of
// allowed examples ignored: to mask one too many is no harm here.
package redact
