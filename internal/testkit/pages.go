package testkit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Pages holds the commands of root that pages tell people to type against root. There must be least of them.
func Pages(t *testing.T, root *cobra.Command, least int) {
	t.Helper()
	// In a code span, or in a block of what one types.
	shown := regexp.MustCompile("(?m)(?:`|^\\$ |^    |^)" + root.Name() + " ([a-z][^`\n|&;)#>]*)")
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
			for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
				seen += checkShown(t, root, page, m[1])
			}
		}
	}
	if seen < least {
		t.Errorf("only %d commands are on the pages: is the pattern right?", seen)
	}
}

// checkShown counts a text as a command, and looks whether its words and flags are there.
func checkShown(t *testing.T, root *cobra.Command, page, text string) int {
	words := strings.Fields(text)
	cmd, rest, err := root.Find(words)
	if err != nil || !cmd.HasParent() {
		t.Errorf("%s: %q is no command", page, root.Name()+" "+text)
		return 0
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(strings.TrimRight(name, ",.:]…"), "="); isFlag && name != "" && !hasFlag(cmd, name) {
			t.Errorf("%s: %q: %s has no flag --%s", page, root.Name()+" "+text, cmd.CommandPath(), name)
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
