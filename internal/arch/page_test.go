package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxPageLines is what one page has.
const maxPageLines = 140

// ARCHITECTURE.md shows the request path as it stands in the code, names files that are there, and stays one page.
func TestPage_ShowsTheCodeAsItIs(t *testing.T) {
	page, code := read(t, filepath.Join(root, "ARCHITECTURE.md")), read(t, filepath.Join(root, "proxy", "handle.go"))
	_, rest, _ := strings.Cut(code, "func (p *Proxy) Handle(")
	if body, _, _ := strings.Cut(rest, "\n}\n"); body == "" || !strings.Contains(page, body) {
		t.Error("Handle is not on the page as it stands in proxy/handle.go")
	}
	if n := strings.Count(page, "\n"); n > maxPageLines {
		t.Errorf("the page has %d lines, more than %d", n, maxPageLines)
	}
	paths := regexp.MustCompile("`(?:go doc \\./)?([a-z]+[0-9]*(?:/[a-z_.0-9]+)+)`")
	for _, m := range paths.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("the page names %s, which is not there", m[1])
		}
	}
}

// Every folder of the map is there, and every package is on the map: itself, or by the folder above it.
func TestPage_MapsEveryPackage(t *testing.T) {
	_, text, _ := strings.Cut(read(t, filepath.Join(root, "ARCHITECTURE.md")), "## Map")
	text, _, _ = strings.Cut(text, "## Request path")
	for _, p := range list(t) {
		name := filepath.Base(p.short())
		if !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(text) &&
			!below(p.short(), "internal/...") && !below(p.short(), "examples/...") && !below(p.short(), "config/...") &&
			!below(p.short(), "e2e/...") && !below(p.short(), "tools/...") && p.short() != module {
			t.Errorf("%s is not on the map of ARCHITECTURE.md", p.short())
		}
	}
}
