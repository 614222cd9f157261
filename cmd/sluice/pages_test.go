package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownCommand is a command on a page: in a code span, or in a block of what one types.
var shownCommand = regexp.MustCompile("(?m)(?:`|^\\$ |^    |^)sluice ([a-z][^`\n|&;)#>]*)")

// What pages tell people to type is understood.
func TestCommandsOnPagesAreThere(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../examples/*.md", "../../examples/*/*.md", "../../deploy/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range shownCommand.FindAllStringSubmatch(string(text), -1) {
				seen += checkShown(t, page, m[1])
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands are on the pages: is the pattern right?", seen)
	}
}

// checkShown counts a text as a command, and looks whether its words and flags are there.
func checkShown(t *testing.T, page, text string) int {
	words := strings.Fields(text)
	n := commandTree("sluice", "", new(commands))
	for len(words) > 0 {
		i := slices.IndexFunc(n.below, func(one *node) bool { return one.name == words[0] || slices.Contains(one.aliases, words[0]) })
		if i < 0 {
			break
		}
		n, words = n.below[i], words[1:]
	}
	if n.above == nil {
		t.Errorf("%s: %q is no command", page, "sluice "+text)
		return 0
	}
	all := n.allFlags()
	for _, below := range n.leaves() { // "stock … --config FILE" is said of all that are below
		all.AddFlagSet(below.flags)
	}
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(strings.TrimRight(name, ",.:]…"), "="); isFlag && name != "" && all.Lookup(name) == nil {
			t.Errorf("%s: %q: %s has no flag --%s", page, "sluice "+text, n.path(), name)
		}
	}
	return 1
}
