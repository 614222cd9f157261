package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, everyCommand(below)...)
	}
	return all
}

// Commands holds that each command of root has what its help needs. There must be least that run.
func Commands(t *testing.T, root *cobra.Command, least int) {
	t.Helper()
	runnable := 0
	for _, cmd := range everyCommand(root) {
		if cmd.RunE == nil || cmd.Args == nil || cmd.Short == "" || !strings.HasSuffix(cmd.Short, ".") && cmd.HasParent() {
			t.Errorf("%s: runs %v, checks its arguments %v, says %q", cmd.CommandPath(), cmd.RunE != nil, cmd.Args != nil,
				cmd.Short)
		}
		if !cmd.HasSubCommands() {
			runnable++
		}
		seen := map[string]bool{}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || seen[f.Name] {
				t.Errorf("%s: --%s has no help, or is there twice", cmd.CommandPath(), f.Name)
			}
			seen[f.Name] = true
		})
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 120 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line), line)
			}
		}
	}
	if runnable < least {
		t.Errorf("%d commands", runnable)
	}
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" && !cmd.Hidden && cmd.Name() != "version" {
			t.Errorf("%s is in no group of the help", cmd.Name())
		}
	}
}

// Man writes a manual page for each command of root into the folder SLUICE_MAN. What writes them is no part of the
// binary.
func Man(t *testing.T, root *cobra.Command) {
	t.Helper()
	folder := os.Getenv("SLUICE_MAN")
	if folder == "" {
		folder = t.TempDir()
	}
	all := everyCommand(root) // the help, which has no page of its own, is added to it below
	root.DisableAutoGenTag = true
	for _, cmd := range all { // the pages are made of Markdown, in which <key> is HTML, and left out
		cmd.Use, cmd.Long = strings.ReplaceAll(cmd.Use, "<", `\<`), strings.ReplaceAll(cmd.Long, "<", `\<`)
	}
	header := doc.GenManHeader{Title: "SLUICE", Section: "1", Source: "Sluice"}
	if err := doc.GenManTree(root, &header, folder); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range all {
		if cmd.Hidden {
			continue
		}
		arguments := strings.ReplaceAll(strings.Join(strings.Fields(cmd.Use)[1:], " "), `\<`, "<")
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil ||
			!strings.HasPrefix(string(text), ".nh\n.TH \"SLUICE\" \"1\"") ||
			!strings.Contains(strings.ReplaceAll(string(text), `\&`, ""), cmd.CommandPath()+" "+arguments) {
			t.Errorf("%s with %q: %.200q, %v", name, arguments, text, err)
		}
	}
}
