// Package redact masks secrets in text: the values of environment variables
// with secret-like names, private keys, credentials in URLs and authorization
// headers, and tokens of the shapes that gitleaks knows.
//
// New makes a Redactor; Text and Writer mask, Find only locates.
// [redacted:NAME] replaces a secret, where NAME is the variable or the rule. A
// nil *Redactor masks nothing.
//
// # What is promised
//
//   - Writer finds a secret that is written in pieces: it holds back what could
//     be the beginning of one, and never more than a fixed amount.
//   - It finds values of variables as they are, and in base64, URL escapes,
//     JSON and hexadecimal.
//   - The time grows with the length of the text only. One pass of an
//     Aho-Corasick automaton looks for every word that a rule can begin with,
//     and regular expressions see only short pieces around those words. A rule
//     that has looked at four megabytes of such pieces in vain is dropped for
//     that text.
//
// # What is not
//
// Masking is a safety net for logs and reports that people share. It knows
// values and shapes: it does not find a password that appears only in the text,
// nor one that the program wrote backwards.
//
// # The rules
//
// gitleaks/gitleaks.toml is the rule set of gitleaks v8.30.1
// (https://github.com/gitleaks/gitleaks, MIT, see gitleaks/LICENSE), unchanged.
// `go test ./internal/redact -run TestRules -update` makes rules.txt from it,
// so that nothing has to read TOML, or compile a rule that no text needs. Two
// kinds of rules are left out: generic-api-key, which needs a list of
// exceptions as long as the rules, and kubernetes-secret-yaml, which spans
// whole files. The bounds that gitleaks sets after a token are dropped and
// lists of allowed examples ignored: masking one too many does no harm here.
package redact
