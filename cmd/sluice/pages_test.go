package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// shownCommand is a command on a page: in a code span, or in a block of what one types.
var shownCommand = regexp.MustCompile("(?m)(?:`|^\\$ |^    |^)sluice ([a-z][^`\n|&;)#>]*)")

// What pages tell people to type is understood.
func TestPages_CommandsOnPagesAreThere(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../examples/*.md", "../../examples/*/*.md",
		"../../deploy/*.md"} {
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
	cmd, rest, err := newRoot().Find(words)
	if err != nil || !cmd.HasParent() {
		t.Errorf("%s: %q is no command", page, "sluice "+text)
		return 0
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(strings.TrimRight(name, ",.:]…"), "="); isFlag && name != "" && !hasFlag(cmd, name) {
			t.Errorf("%s: %q: %s has no flag --%s", page, "sluice "+text, cmd.CommandPath(), name)
		}
	}
	return 1
}

// hasFlag reports whether cmd or a command below it has a flag: "stock … --config FILE" is said of all that are below.
func hasFlag(cmd *cobra.Command, name string) bool {
	if cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil ||
		cmd.PersistentFlags().Lookup(name) != nil {
		return true
	}
	return slices.ContainsFunc(cmd.Commands(), func(below *cobra.Command) bool { return hasFlag(below, name) })
}
