package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// A page that says which test holds a promise names one that is there, and each row of the table of faults names one.
func TestDocs_PagesNameTestsThatExist(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	for name, text := range all {
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			if !there[m[1]] {
				t.Errorf("%s names the test %s, which is not there", name, m[1])
			}
		}
	}
	_, table, _ := strings.Cut(all["testing.md"], "| fault of a waiting room | tests |\n| --- | --- |\n")
	rows := 0
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		if rows++; !namedTest.MatchString(row) {
			t.Errorf("no test is named for: %s", row)
		}
	}
	if rows < 9 {
		t.Errorf("the table of faults has %d rows", rows)
	}
}

// Each promise, and each outcome of a forwarded request, has a test of the built binary.
func TestDocs_EachPromiseNamesABlackBoxTest(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	blackBox := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			blackBox[m[1]] = true
		}
	}
	_, table, _ := strings.Cut(pages(t)["testing.md"], "## Promises and their tests\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for row := range strings.Lines(table) {
		before, _, _ := strings.Cut(row, "nightly `") // what CI runs
		found := namedTest.FindStringSubmatch(before)
		switch first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " "); {
		case !strings.HasPrefix(row, "| "), first == "---", first == "promise", first == "reasons",
			strings.HasPrefix(first, "`internal"), row == "| outcome | tests in `e2e` |\n":
			continue
		}
		if rows++; found == nil || !blackBox[found[1]] {
			t.Errorf("no test of e2e is named before those of the night: %.60s", row)
		}
	}
	if rows < 12+4 {
		t.Errorf("the tables have %d rows", rows)
	}
}
