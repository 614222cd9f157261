package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

// jsonFlag gives a command that shows something the flag --json.
func jsonFlag(cmd *cobra.Command, asJSON *bool) *cobra.Command {
	cmd.Flags().BoolVar(asJSON, "json", false, "print the gateway's answer, for other programs")
	return cmd
}

// printJSON prints v with the names that the control API has.
func printJSON(cmd *cobra.Command, v any) error {
	to := json.NewEncoder(cmd.OutOrStdout())
	to.SetEscapeHTML(false)
	return to.Encode(v)
}
