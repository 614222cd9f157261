package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the module as seen from this package.
const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	block   = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	comment = regexp.MustCompile(`(?m)[ \t]*#.*$`)
)

func TestPages_LinkToWhatIsThere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no page in %s: %v", root, err)
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(page), m[1])
			}
		}
	}
}

// Both READMEs are of equal rank: the same chapters, the same commands and configurations, as many rows of figures.
func TestPages_ReadmesSayTheSame(t *testing.T) {
	english, chinese := read(t, filepath.Join(root, "README.md")), read(t, filepath.Join(root, "README.zh-CN.md"))
	if e, c := strings.Count(english, "\n## "), strings.Count(chinese, "\n## "); e != c {
		t.Errorf("%d chapters in English, %d in Chinese", e, c)
	}
	if e, c := examples(english), examples(chinese); !slices.Equal(e, c) {
		t.Errorf("the examples differ:\n%q\n%q", e, c)
	}
	if e, c := strings.Count(english, "\n|"), strings.Count(chinese, "\n|"); e != c {
		t.Errorf("%d rows of tables in English, %d in Chinese", e, c)
	}
}

// examples gives the blocks of code of a page without their comments; pictures are none.
func examples(page string) []string {
	var all []string
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		if !strings.ContainsAny(m[1], "►│▼▲") {
			all = append(all, comment.ReplaceAllString(m[1], ""))
		}
	}
	return all
}

// ARCHITECTURE.md shows Handle as it stands in the code, and names files that exist.
func TestPages_ArchitectureShowsTheCodeAsItIs(t *testing.T) {
	page, code := read(t, filepath.Join(root, "ARCHITECTURE.md")), read(t, filepath.Join(root, "proxy", "handle.go"))
	_, rest, _ := strings.Cut(code, "func (p *Proxy) Handle(")
	if body, _, _ := strings.Cut(rest, "\n}\n"); body == "" || !strings.Contains(page, body) {
		t.Error("Handle is not on the page as it stands in proxy/handle.go")
	}
	paths := regexp.MustCompile("`(?:go doc \\./)?([a-z]+[0-9]*(?:/[a-z_.0-9]+)+)`")
	for _, m := range paths.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("the page names %s, which is not there", m[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
