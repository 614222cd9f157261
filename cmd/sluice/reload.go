package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
)

func newReload() *cobra.Command {
	var at target
	var drop bool
	cmd := &cobra.Command{
		Use: "reload", Short: "Make a running gateway read its configuration again.", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := map[string]string{"overrides": "keep"}
			if drop {
				in["overrides"] = "drop"
			}
			var done admin.Reloaded
			if err := at.callAPI(cmd, "POST", "/reload", in, &done); err != nil {
				return err
			}
			printReload(cmd, &done)
			return nil
		},
	}
	at.addTo(cmd, cmd.Flags(), "configuration `file` of the running gateway")
	cmd.Flags().BoolVar(&drop, "drop-overrides", false, "end the overrides of limits; otherwise they are kept")
	return cmd
}

func printReload(cmd *cobra.Command, done *admin.Reloaded) {
	out := cmd.OutOrStdout()
	if len(done.Restart) > 0 {
		fmt.Fprintf(out, "reloaded: %s runs in part, restart pending\n", done.Config)
	} else {
		fmt.Fprintf(out, "reloaded: %s runs\n", done.Config)
	}
	for _, c := range done.Changed {
		fmt.Fprintf(out, "changed   %s\n", config.Change(c))
	}
	for _, key := range done.Restart {
		fmt.Fprintf(out, "restart   %s changes only with a restart, and stays as it was\n", key)
	}
	if len(done.Kept) > 0 {
		fmt.Fprintf(out, "overrides kept: %s\n", strings.Join(done.Kept, ", "))
	}
	if len(done.Dropped) > 0 {
		fmt.Fprintf(out, "overrides dropped: %s\n", strings.Join(done.Dropped, ", "))
	}
}

func newDrain() *cobra.Command {
	var at target
	cmd := &cobra.Command{
		Use: "drain", Short: "Make a running gateway finish what is in flight, then stop.", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var done struct{ Phase string }
			if err := at.callAPI(cmd, "POST", "/drain", nil, &done); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), done.Phase)
			return err
		},
	}
	at.addTo(cmd, cmd.Flags(), "configuration `file` of the running gateway")
	return cmd
}
