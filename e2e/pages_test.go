package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A page that does not parse is told with its file and line, and what was there goes on; a file dropped in is found
// without a word to the gate.
func TestPages_AreReloadedAndABadOneChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page("page.html", "first $reason")
	g := gate(t, `stock.source = "off"`, "[upstream]\ntargets = [\"http://127.0.0.1:1\"]",
		"[responses]\ntemplate_dir = \""+dir+"\"",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"")
	got := func(language string) string {
		return g.ask("GET", "/", "Accept: text/html", "Accept-Language: "+language).body
	}
	if text := got("en"); text != "first no_upstream" {
		t.Fatalf("%q, want the page of its own", text)
	}
	page("page.html", "second\n$reson")
	soon(t, "the bad page is told", func() bool { return strings.Contains(g.log.String(), "page.html:2: ") })
	if text := got("en"); text != "first no_upstream" {
		t.Errorf("%q, want the page that was there before", text)
	}
	page("page.html", "second $title")
	page("ja.toml", `no_upstream = "お店につながりません"`)
	soon(t, "the good page is shown", func() bool { return got("ja") == "second お店につながりません" })
	g.logs(t, "responses.template_dir")
}
