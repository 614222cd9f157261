package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update has the tests write what they saw into docs/testing.md and docs/adaptive.svg.
var update = flag.Bool("update", false, "write what is seen into docs")

const page = root + "/docs/testing.md"

// part is what stands on the page between <!-- name --> and <!-- /name -->.
func part(t *testing.T, name string) (before, text, after string) {
	t.Helper()
	whole, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	before, text, begins := strings.Cut(string(whole), "<!-- "+name+" -->\n")
	text, after, ends := strings.Cut(text, "<!-- /"+name+" -->\n")
	if !begins || !ends {
		t.Fatalf("%s has no part %q", page, name)
	}
	return before, text, after
}

// write sets a part of the page.
func write(t *testing.T, name, text string) {
	t.Helper()
	before, _, after := part(t, name)
	text = before + "<!-- " + name + " -->\n" + text + "<!-- /" + name + " -->\n" + after
	if err := os.WriteFile(filepath.FromSlash(page), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
