package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes the manual pages, one for each command. Packages call it when they are built.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man <folder>", Short: "Write manual pages into a folder.", Hidden: true, Args: exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "SLUICE", Section: "1", Source: "Sluice " + version}, args[0])
		},
	}
}
