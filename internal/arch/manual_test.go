package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// manual is the folder of the manual's pages.
const manual = root + "/docs"

var (
	manualLink = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	tomlBlock  = regexp.MustCompile("(?sm)^```toml\n(.*?)^```$")
)

func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(manual, "*.md"))
	if err != nil || len(names) < 15 {
		t.Fatalf("pages %q, %v", names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		all[filepath.Base(name)] = read(t, name)
	}
	return all
}

// anchor is what a heading is called in a link.
func anchor(heading string) string {
	heading = strings.ToLower(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(heading, ""))
	return "#" + strings.ReplaceAll(strings.TrimSpace(heading), " ", "-")
}

func TestDocs_PagesLinkToWhatIsThere(t *testing.T) {
	all := pages(t)
	anchors := map[string]bool{}
	for name, text := range all {
		for _, h := range heading.FindAllStringSubmatch(text, -1) {
			anchors[name+anchor(h[1])] = true
		}
	}
	for name, text := range all {
		for _, m := range manualLink.FindAllStringSubmatch(text, -1) {
			to := m[1]
			if to == "" {
				to = name
			}
			if _, err := os.Stat(filepath.Join(manual, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, to)
			}
			if _, ours := all[to]; ours && m[2] != "" && !anchors[to+m[2]] {
				t.Errorf("%s links to %s%s: there is no such heading", name, to, m[2])
			}
		}
	}
}
