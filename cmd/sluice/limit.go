package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
)

// newLimit is the commands for one key of a limit by key.
func newLimit() *cobra.Command {
	cmd, at := parentOf("limit", "Show, or reset, one key of a limit on all instances.", aboutGateway)
	cmd.AddCommand(
		newLimitKey(at, "show <limit> <value>...", "Show what one key has left: sluice limit show per_ip 203.0.113.7.",
			"GET"),
		newLimitKey(at, "reset <limit> <value>...", "Give one key of a rate its whole burst back.", "DELETE"))
	return cmd
}

// newLimitKey is a command that asks for one key. A key with several variables has a value for each.
func newLimitKey(at *target, use, short, method string) *cobra.Command {
	var here bool
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error { return cli.Exactly(cmd, args[:min(len(args), 2)]) },
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"value": args[1:]}
			if here {
				query.Set("scope", admin.ScopeInstance)
			}
			var all admin.KeyStates
			path := "/limits/" + adminclient.Segment(args[0]) + "/key?" + query.Encode()
			if err := at.callAPI(cmd, method, path, nil, &all); err != nil {
				return err
			}
			return printKey(cmd, &all)
		},
		ValidArgsFunction: cli.CompleteBy(func(c *config.Config) []string { return c.Limits.KeyedNames() }),
	}
	instanceFlag(cmd, &here)
	return cmd
}

// printKey shows a line for each instance. An instance without an answer makes the command fail.
func printKey(cmd *cobra.Command, all *admin.KeyStates) error {
	rows := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
	for _, s := range all.Instances {
		fmt.Fprintf(rows, "%s\t%s\n", cmp.Or(s.Instance, "this instance"), keyLine(&s))
	}
	for _, id := range all.Missing {
		fmt.Fprintf(rows, "%s\tno answer\n", id)
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	faulty := slices.ContainsFunc(all.Instances, func(s admin.KeyState) bool { return s.Fault != "" })
	if faulty || len(all.Missing) > 0 {
		return cli.ErrReported
	}
	return nil
}

// keyLine says in one line how a key stands.
func keyLine(s *admin.KeyState) string {
	var parts []string
	switch {
	case s.Fault != "":
		return s.Fault
	case s.Off:
		return fmt.Sprintf("not counted: override %q is \"off\"", s.Override)
	case s.PerSecond == 0:
		return fmt.Sprintf("%d of %d in flight", s.InFlight, s.Max)
	case s.Reset:
		parts = append(parts, "reset")
	}
	parts = append(parts, fmt.Sprintf("%d of %d left", s.Left, s.Max))
	if s.WaitMS > 0 {
		parts = append(parts, fmt.Sprintf("the next in %v", time.Duration(s.WaitMS)*time.Millisecond))
	}
	if s.WholeMS > 0 {
		parts = append(parts, fmt.Sprintf("all in %v", time.Duration(s.WholeMS)*time.Millisecond))
	}
	if s.Override != "" {
		parts = append(parts, fmt.Sprintf("override %q", s.Override))
	}
	return strings.Join(parts, ", ")
}

// instanceFlag adds --instance: a change of the one instance that is asked, and not of its fleet.
func instanceFlag(cmd *cobra.Command, here *bool) {
	cmd.Flags().BoolVar(here, "instance", false, "this instance alone, and not all of its fleet")
}
