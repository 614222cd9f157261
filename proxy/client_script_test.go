package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const askClient = "GET /.sluice/client.js HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

func TestClientScript_IsSmallAndCacheable(t *testing.T) {
	up := &recorder{}
	addr, _ := gateway(t, options(up))
	plain, text := talk(t, addr, askClient+"\r\n")
	packed, zipped := talk(t, addr, askClient+"Accept-Encoding: gzip, br\r\n\r\n")
	if plain.StatusCode != 200 || plain.Header.Get("Content-Encoding") != "" ||
		packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v, packed %v", plain, packed)
	}
	if len(zipped) > 3<<10 {
		t.Errorf("%d bytes gzipped, more than 3 KiB", len(zipped))
	}
	r, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	if unzipped, err := io.ReadAll(r); err != nil || string(unzipped) != text {
		t.Errorf("packed it is another script: %v", err)
	}
	for _, resp := range []*http.Response{plain, packed} {
		h := resp.Header
		if h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("Cache-Control") != "public, max-age=300" ||
			h.Get("Vary") != "Accept-Encoding" || h.Get("ETag") == "" {
			t.Errorf("header %v", h)
		}
	}
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("two representations have one strong ETag")
	}
	again, text := talk(t, addr, askClient+"If-None-Match: "+plain.Header.Get("ETag")+"\r\n\r\n")
	if again.StatusCode != 304 || text != "" {
		t.Errorf("with its ETag: %d %q", again.StatusCode, text)
	}
	head, text := talk(t, addr, strings.Replace(askClient, "GET", "HEAD", 1)+"\r\n")
	if head.StatusCode != 200 || text != "" {
		t.Errorf("HEAD: %d %q", head.StatusCode, text)
	}
	if got := up.all(); len(got) != 0 {
		t.Errorf("the upstream was asked: %q", got)
	}
}

func TestClientScript_IsAskedForWithAQueryToo(t *testing.T) {
	addr, _ := gateway(t, options(&recorder{}))
	resp, _ := talk(t, addr, strings.Replace(askClient, ".js", ".js?v=2", 1)+"\r\n")
	if resp.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("with a query: %v", resp.Header)
	}
}

// Browsers of 2017 can read it: there is nothing of ECMAScript 2018 and later that their parsers reject.
func TestClientScript_IsES2017(t *testing.T) {
	text := newClientScript(transientReasons()).Plain
	for _, later := range []string{`\?\.[a-zA-Z(\[]`, `\?\?`, `\.\.\.`, `catch\s*\{`, `\bfor await\b`, `\d_\d`,
		`#[a-z]+\b[^"]`, `Object\.fromEntries`, `\.finally\(`, `(?s)/[^/\n]*\(\?<`} {
		if m := regexp.MustCompile(later).Find(text); m != nil {
			t.Errorf("later than ES2017: %q", m)
		}
	}
	if bytes.Contains(text, []byte("\n//")) {
		t.Error("comments are served")
	}
}

func TestClientScript_KeepsItsRules(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	served := filepath.Join(t.TempDir(), "client.js")
	if err := os.WriteFile(served, newClientScript(transientReasons()).Plain, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, "testdata/client_rules.js", served).CombinedOutput()
	if err != nil || !strings.Contains(string(out), " rules, ") {
		t.Errorf("%v\n%s", err, out)
	}
}
