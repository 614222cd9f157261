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

func TestPages_ExamplesAreComparedWithoutTheirComments(t *testing.T) {
	a, b := examples("```toml\na = 1 # one\n```"), examples("```toml\na = 1   # 一\n```")
	if len(a) != 1 || !slices.Equal(a, b) {
		t.Errorf("%q and %q differ only in a comment", a, b)
	}
	if slices.Equal(a, examples("```toml\na = 2\n```")) {
		t.Error("two examples that differ are not told apart")
	}
	if examples("```\n a ─► b\n```") != nil {
		t.Error("a picture is taken for an example")
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
