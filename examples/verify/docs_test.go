package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The manual of the shop, in its two languages.
const (
	english = "../../docs/shop.md"
	chinese = "../../docs/shop.zh-CN.md"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks gives the fenced code of a page, each with its language before the first line.
func blocks(page string) (all []string) {
	for _, m := range regexp.MustCompile("(?sm)^```([a-z]+\n.*?)^```$").FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestDocs_ManualHoldsTheProgramsThatAreTested(t *testing.T) {
	for _, page := range []string{english, chinese} {
		all := blocks(read(t, page))
		for file, language := range map[string]string{"verify.go": "go", "Verify.java": "java", "verify.php": "php",
			"verify.mjs": "js"} {
			if !slices.Contains(all, language+"\n"+read(t, file)) {
				t.Errorf("%s does not hold %s as it is", page, file)
			}
		}
	}
}

// The manual's own example, field by field, has the signature that the manual shows.
func TestDocs_ManualsExampleIsSigned(t *testing.T) {
	key := regexp.MustCompile("`(sluice-example-[^`]*)`")
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\|$")
	value := regexp.MustCompile("(?m)^v1=[0-9a-f]{64}$")
	for _, page := range []string{english, chinese} {
		text := read(t, page)
		keys, rows, values := key.FindStringSubmatch(text), row.FindAllStringSubmatch(text, -1), value.FindAllString(text, -1)
		if len(keys) != 2 || len(rows) != 7 || len(values) != 1 {
			t.Fatalf("%s: found %d keys, %d fields and %d signatures", page, len(keys)/2, len(rows), len(values))
		}
		if rows[0][1] != "v1" || !verify([]string{keys[1]}, values[0], rows[1][1], rows[2][1], rows[3][1], rows[4][1],
			rows[5][1], rows[6][1]) {
			t.Errorf("%s: the example's signature is not that of its fields", page)
		}
	}
}

func TestDocs_ManualsAreOfEqualRank(t *testing.T) {
	e, c := read(t, english), read(t, chinese)
	if !slices.Equal(blocks(e), blocks(c)) {
		t.Error("the blocks of code differ")
	}
	for _, mark := range []string{"\n## ", "\n### ", "\n|", "\n- ", "\n1. ", "\n5. "} {
		if n, m := strings.Count(e, mark), strings.Count(c, mark); n != m || n == 0 {
			t.Errorf("%q: %d in English, %d in Chinese", mark, n, m)
		}
	}
}

func TestDocs_ManualsLinkToWhatIsThere(t *testing.T) {
	for _, page := range []string{english, chinese} {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}
