package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/cli"
	"sluice/internal/doctor"
	"sluice/internal/settler"
)

func newCheck(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Short: "Try the databases and the webhook, and change nothing; exit code 3 when that fails.",
		Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(*file, os.LookupEnv)
			if err != nil {
				return err
			}
			r := doctor.Report{File: *file}
			if !asJSON {
				r.Each = func(f admin.Finding) { fmt.Fprint(cmd.OutOrStdout(), doctor.Line(f)) }
			}
			if err := settler.Check(cmd.Context(), &r, c); err != nil {
				return err
			}
			if asJSON {
				if err := r.WriteJSON(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			if r.Failed() {
				return cli.ErrOnline
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, for other programs")
	return cmd
}
