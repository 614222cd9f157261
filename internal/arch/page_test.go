package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ARCHITECTURE.md shows the request path as it stands in the code.
func TestPage_ShowsTheRequestPathAsItIs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join("..", "..", "proxy", "handle.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, begin := range []string{"func (p *Proxy) Handle(", "func (p *Proxy) admit("} {
		_, rest, found := strings.Cut(string(code), begin)
		body, _, ended := strings.Cut(rest, "\n}\n")
		if !found || !ended || !strings.Contains(string(page), begin+body+"\n}\n") {
			t.Errorf("%s…) is not on the page as it stands in proxy/handle.go", begin)
		}
	}
}
