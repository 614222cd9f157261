package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var named = regexp.MustCompile(`(?m)^Test: \./(\S+) (\S+)$`)

// A planted bug whose tests were renamed would be tried in vain; one that no page tells of is forgotten.
func TestArch_PlantedBugsAreListedAndNameTestsThatAreThere(t *testing.T) {
	patches, err := filepath.Glob(filepath.Join(root, "tools", "planted", "bugs", "*.patch"))
	if err != nil || len(patches) < 10 {
		t.Fatalf("%d planted bugs, %v", len(patches), err)
	}
	page := read(t, filepath.Join(root, "docs", "testing.md"))
	for _, patch := range patches {
		text, name := read(t, patch), strings.TrimSuffix(filepath.Base(patch), ".patch")
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("docs/testing.md does not list %s", name)
		}
		suites := named.FindAllStringSubmatch(text, -1)
		if len(suites) == 0 {
			t.Errorf("%s names no test", name)
		}
		for _, s := range suites {
			tests := testsIn(t, s[1])
			for want := range strings.SplitSeq(s[2], "|") {
				if !strings.Contains(tests, "func "+want+"(t *testing.T)") {
					t.Errorf("%s: there is no %s in %s", name, want, s[1])
				}
				if !strings.Contains(page, want) {
					t.Errorf("docs/testing.md does not say that %s finds %s", want, name)
				}
			}
		}
	}
}

// testsIn is the text of all tests in a folder.
func testsIn(t *testing.T, folder string) (all string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		all += read(t, file)
	}
	return all
}
