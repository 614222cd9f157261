package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
	"sluice/internal/periodic"
)

func newReload() *cobra.Command {
	at := target{fileTold: true}
	var drop bool
	cmd := &cobra.Command{
		Use: "reload", Short: "Make a running gateway read its configuration again.", Args: cli.Exactly,
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
	at.addTo(cmd, cmd.Flags(), aboutGateway)
	cmd.Flags().BoolVar(&drop, "drop-overrides", false, "end the overrides of limits; otherwise they are kept")
	return cmd
}

func printReload(cmd *cobra.Command, done *admin.Reloaded) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "reloaded: %s runs\n", done.Config)
	for _, c := range done.Changed {
		fmt.Fprintf(out, "changed   %s\n", c)
	}
	for _, w := range done.Warnings {
		fmt.Fprintf(out, "warn      %s\n", w)
	}
	if len(done.Kept) > 0 {
		fmt.Fprintf(out, "overrides kept: %s\n", strings.Join(done.Kept, ", "))
	}
	if len(done.Dropped) > 0 {
		fmt.Fprintf(out, "overrides dropped: %s\n", strings.Join(done.Dropped, ", "))
	}
}

// newDrain drains one instance: a hook that ends a container must not end the fleet.
func newDrain() *cobra.Command {
	var at target
	var fleet, noWait bool
	cmd := &cobra.Command{
		Use: "drain", Short: "Make a running gateway finish what is in flight, then stop.", Args: cli.Exactly,
		Long: "Make a running gateway finish what is in flight, then stop. The command waits until it\n" +
			"has stopped: its addresses are free then. With --fleet it does not wait.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var before admin.Status
			if !fleet && !noWait {
				if err := at.callAPI(cmd, "GET", "/status", nil, &before); err != nil {
					return err
				}
			}
			var in any
			if fleet {
				in = map[string]string{"scope": admin.ScopeFleet}
			}
			var done admin.DrainStarted
			if err := at.callAPI(cmd, "POST", "/drain", in, &done); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, strings.Join(append([]string{done.Phase}, done.Instances...), " "))
			if len(done.Missing) > 0 {
				fmt.Fprintf(out, "no answer from %s: drain them by themselves\n", strings.Join(done.Missing, ", "))
				return cli.ErrReported
			}
			if !before.Started.IsZero() {
				return at.awaitEnd(cmd, &before)
			}
			return nil
		},
	}
	at.addTo(cmd, cmd.Flags(), aboutGateway)
	cmd.Flags().BoolVar(&fleet, "fleet", false, "drain all instances that run now; each ends")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it has stopped")
	return cmd
}

// drainPoll is how often a gateway that drains is asked whether it has stopped.
const drainPoll = 100 * time.Millisecond

// awaitEnd waits until the gateway that said before has stopped: its address does not answer, or another gateway does.
func (t *target) awaitEnd(cmd *cobra.Command, before *admin.Status) error {
	for {
		var now admin.Status
		err := t.callAPI(cmd, "GET", "/status", nil, &now)
		switch {
		case errors.Is(err, adminclient.ErrNoAnswer), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return nil
		case err == nil && !now.Started.Equal(before.Started):
			return nil
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		if !periodic.Pause(cmd.Context(), drainPoll) {
			return cmd.Context().Err()
		}
	}
}
