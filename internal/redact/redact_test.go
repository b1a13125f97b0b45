package redact

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

const secretValue = `p4$$ "w/rd"<&>\é~1`

func testRedactor() *Redactor {
	return New([]string{"MY_TOKEN=" + secretValue, "DB_PASSWORD=hunter2-and-more", "HOME=/home/somebody", "PATH=/usr/bin", "CI_TOKEN=true", "AUTH=12345",
		"DATABASE_URL=postgres://app:s3cr3t-db-pass@db/x", "SSH_AUTH_SOCK=/run/agent.sock"}, "an-extra-secret")
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func privateKey(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// tokens are shapes that must be found wherever they stand. They are put together
// here, so that no scanner takes this file for a leak.
func tokens() map[string]string {
	return map[string]string{
		"github-pat":          "ghp_" + strings.Repeat("aB3d", 9),
		"github-fine-grained": "github_pat_" + strings.Repeat("11AbCdEf_9", 9)[:82],
		"gitlab-pat":          "glpat-" + "aB3dE5fG7hJ9kL1mN3pQ",
		"aws":                 "AKIA" + "IOSFODNN7EXAMPLE",
		"slack":               "xoxb-" + "123456789012-123456789012-abcDEFghiJKLmnoPQRstuVWX",
		"anthropic":           "sk-ant-api03-" + strings.Repeat("aB3-", 23) + "aAA",
		"openai":              "sk-proj-" + strings.Repeat("aB3d", 18) + "ab" + "T3BlbkFJ" + strings.Repeat("xY7z", 18) + "ab",
		"google":              "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
		"stripe":              "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
		"npm":                 "npm_" + strings.Repeat("aB3d", 9),
		"pypi":                "pypi-AgEIcHlwaS5vcmc" + strings.Repeat("aB3d", 20),
		"sendgrid":            "SG." + strings.Repeat("aB3d", 16) + "ab",
		"jwt":                 "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
		"huggingface":         "hf_" + strings.Repeat("abcDEF", 6)[:34],
		"digitalocean":        "dop_v1_" + strings.Repeat("0123456789abcdef", 4),
		"shopify":             "shpat_" + strings.Repeat("0123456789abcdef", 2),
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	r := testRedactor()
	for name, token := range tokens() {
		for _, around := range []string{"%s", "token=%s", "\"%s\"", "x %s, y", "(%s)", "<b>%s</b>", "a\n%s\nb", "key: %s.", "Bearer %s"} {
			text := fmt.Sprintf(around, token)
			if got := r.Text(text); strings.Contains(got, token[6:]) || !strings.Contains(got, "[redacted:") {
				t.Errorf("%s in %q: %q", name, around, got)
			}
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	r := testRedactor()
	std := base64.StdEncoding.EncodeToString
	for name, text := range map[string]string{
		"plain": secretValue, "quoted": mustJSON(t, secretValue), "query": url.QueryEscape(secretValue), "path": url.PathEscape(secretValue),
		"base64": std([]byte(secretValue)), "base64 behind 1": std([]byte("x" + secretValue)), "base64 behind 2": std([]byte("u:" + secretValue + "!!")),
		"base64 in between": std([]byte("user:" + secretValue + "\n")), "hex": fmt.Sprintf("%x", secretValue), "extra": "an-extra-secret",
		"password": "hunter2-and-more", "of a URL": "s3cr3t-db-pass",
	} {
		got := r.Text("before " + text + " behind")
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " behind") || !strings.Contains(got, "[redacted:") {
			t.Errorf("%s: %q", name, got)
		}
		if i := strings.Index(got, text[len(text)/3:len(text)*2/3]); i >= 0 {
			t.Errorf("%s shows in %q", name, got)
		}
	}
	for _, text := range []string{"true", "12345", "/home/somebody", "/usr/bin:/bin", "/run/agent.sock", "postgres://app@db/x", "go build ./...", "https://example.org/a:b@c"} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"TOKEN", "GITHUB_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "PGPASSWORD", "NPM_AUTH", "STRIPE_API_KEY", "MYAPIKEY", "SSH_PRIVATE_KEY", "DB_PASS", "GOOGLE_CREDENTIALS", "OPENAI_KEY"} {
		if !IsSecretName(name) {
			t.Errorf("%s is no secret", name)
		}
	}
	for _, name := range []string{"PATH", "PWD", "OLDPWD", "HOME", "SSH_AUTH_SOCK", "GIT_AUTHOR_EMAIL", "XAUTHORITY", "KEYBOARD", "TOKEN_FILE", "SECRET_NAME", "SUPERQODE_TOKEN", "PATHEXT", "COMPASS", "AUTHOR"} {
		if IsSecretName(name) {
			t.Errorf("%s is a secret", name)
		}
	}
}

func TestOrdinaryText(t *testing.T) {
	t.Parallel()
	r := New(nil)
	for _, text := range []string{
		"ok  \tgithub.com/seed/superqode/artifacts\t0.644s", "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad", "sha256:" + strings.Repeat("ab", 32),
		"the key is under the mat; they said so", "AKIA is a prefix", "sk-learn is a library", "https://user@example.org/x", "git clone https://github.com/a/b.git",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"diff --git a/x b/x\nindex 1234567..89abcde 100644", "h1:Qjl2uN6+xw5HTmJcIa1JyPZ4VJfHLNkTzZ3nO6yCkX4=", "time=\"2026-11-21\" level=info msg=\"token refreshed\"",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	r := New(nil)
	key := privateKey(t)
	body := strings.Split(key, "\n")[1]
	for name, text := range map[string]string{
		"plain": key, "indented": strings.ReplaceAll(key, "\n", "\n    "), "in JSON": mustJSON(t, key), "cut off": key[:len(key)-40] + "\nand then: (prose) goes on",
		"crlf": strings.ReplaceAll(key, "\n", "\r\n"), "twice": key + "x\n" + key,
		"encrypted": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n" + body + "\n-----END RSA PRIVATE KEY-----",
		"pgp":       "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n" + body + "\n-----END PGP PRIVATE KEY BLOCK-----",
	} {
		got := r.Text("before\n" + text + "\nbehind")
		if strings.Contains(got, body[:20]) || !strings.Contains(got, "PRIVATE KEY") || !strings.HasSuffix(got, "\nbehind") {
			t.Errorf("%s: %q", name, got)
		}
		if name == "cut off" && !strings.Contains(got, "(prose) goes on") {
			t.Errorf("%s: what follows is gone: %q", name, got)
		}
	}
}

// TestWriter holds the law of the writer: whatever the pieces in which a text
// comes, the result is that of the whole text.
func TestWriter(t *testing.T) {
	t.Parallel()
	r := testRedactor()
	rng := mathrand.New(mathrand.NewPCG(1, 2))
	var all strings.Builder
	key := privateKey(t)
	list := []string{secretValue, key, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+secretValue))}
	for _, token := range tokens() {
		list = append(list, token)
	}
	for all.Len() < 3*(chunk+held) {
		for range rng.IntN(3000) {
			all.WriteString("lorem ipsum 0123 "[rng.IntN(17):])
		}
		all.WriteString("\n" + list[rng.IntN(len(list))] + "\n")
	}
	want := r.Text(all.String())
	for _, size := range []int{1, 7, 4096, chunk, chunk + held, 10 * chunk} {
		if size == 1 && testing.Short() {
			continue
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := []byte(all.String()); len(rest) > 0; {
			n := min(len(rest), size)
			if k, err := w.Write(rest[:n]); err != nil || k != n {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in pieces of %d the result is another one", size)
		}
	}
	if strings.Contains(want, secretValue) || strings.Contains(want, strings.Split(key, "\n")[1]) {
		t.Error("a secret shows")
	}
}

func TestNil(t *testing.T) {
	t.Parallel()
	var r *Redactor
	var out bytes.Buffer
	w := r.Writer(&out)
	if _, err := io.WriteString(w, "MY_TOKEN=x"); err != nil || w.Close() != nil || out.String() != "MY_TOKEN=x" || r.Text("y") != "y" {
		t.Error(err, out.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriterFails(t *testing.T) {
	t.Parallel()
	w := New(nil).Writer(full{})
	if _, err := w.Write(make([]byte, 2*(chunk+held))); err == nil {
		t.Error("no error from Write")
	}
	if w.Close() == nil {
		t.Error("no error from Close")
	}
}

func FuzzText(f *testing.F) {
	for _, s := range tokens() {
		f.Add("x "+s+" y", 5)
	}
	f.Add("-----BEGIN PRIVATE KEY-----\nabc", 3)
	f.Add("curl -H 'Authorization: token "+secretValue+"'", 9)
	r, few := testRedactor(), testRedactor()
	r.compared.Store(mostCompared) // it has seen enough for the automaton
	f.Fuzz(func(t *testing.T, text string, at int) {
		masked := r.Text(text)
		few.compared.Store(-int64(len(text)))
		if compared := few.Text(text); compared != masked {
			t.Errorf("the automaton masks %q, comparing %q", masked, compared)
		}
		if r.Text(masked) == "" && masked != "" {
			t.Error("a text vanished")
		}
		if strings.Contains(masked, secretValue) {
			t.Error("the secret shows")
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		cut := min(max(at, 0), len(text))
		_, _ = io.WriteString(w, text[:cut])
		_, _ = io.WriteString(w, text[cut:])
		if err := w.Close(); err != nil || out.String() != masked {
			t.Errorf("in two pieces: %q, whole: %q", out.String(), masked)
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	r := testRedactor()
	line := []byte("2026-11-21T19:11:00Z ok  \tgithub.com/seed/superqode/artifacts\t0.644s --- PASS: TestSomething/with_a_key (0.00s)\n")
	block := bytes.Repeat(line, 1000)
	b.SetBytes(int64(len(block)))
	w := r.Writer(io.Discard)
	for b.Loop() {
		_, _ = w.Write(block)
	}
	_ = w.Close()
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		testRedactor().Text("a text that is long enough")
	}
}

// BenchmarkWorst writes words that give reason to try many rules and never match.
func BenchmarkWorst(b *testing.B) {
	r := testRedactor()
	rng := mathrand.New(mathrand.NewPCG(3, 4))
	words := strings.Fields("curl adobe twitter sk_live_ ghp_ eyj akia sha256~ api- key secret password authorization: facebook -----begin")
	var text bytes.Buffer
	for text.Len() < 1<<20 {
		for range 8 {
			text.WriteString(words[rng.IntN(len(words))] + " ")
		}
		text.WriteByte('\n')
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		w := r.Writer(io.Discard)
		_, _ = w.Write(text.Bytes())
		_ = w.Close()
	}
}
