package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/internal/cli"
)

func newStatus() *cobra.Command {
	var at target
	var watch, asJSON, fleet bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the state of a running gateway; --watch shows it live.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/status"
			if fleet {
				path = "/fleet"
			}
			switch {
			case watch && fleet:
				return cli.Misuse(cmd, errors.New("--watch and --fleet: name one of them"))
			case watch:
				return watchStatus(cmd, &at)
			case asJSON:
				var raw json.RawMessage
				if err := at.callAPI(cmd, "GET", path, nil, &raw); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				return err
			case fleet:
				return printFleet(cmd, &at)
			}
			return printStatus(cmd, &at)
		},
	}
	at.addTo(cmd, cmd.Flags(), aboutGateway)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it live, once a second; q or Ctrl-C ends it")
	cmd.Flags().BoolVar(&fleet, "fleet", false, "show all instances of the fleet, and in what they differ")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the gateway's answer, for other programs")
	return cmd
}

func watchStatus(cmd *cobra.Command, at *target) error {
	if err := at.check(cmd); err != nil {
		return err
	}
	to, err := at.openRunning()
	if err != nil {
		return err
	}
	return Watch(to, at.asked)
}

func printStatus(cmd *cobra.Command, at *target) error {
	var s admin.Status
	if err := at.callAPI(cmd, "GET", "/status", nil, &s); err != nil {
		return err
	}
	var past struct{ Seconds []admin.Second }
	if s.Second != nil {
		if err := at.callAPI(cmd, "GET", fmt.Sprintf("/history?after=%d", s.Second.At-60), nil, &past); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), View{Width: 200, Height: 200, Admin: at.asked}.Draw(&s, past.Seconds,
		"")); err != nil {
		return err
	}
	if !s.Ready {
		return cli.ErrReported
	}
	return nil
}

// printFleet shows a line for each instance. It fails where one is not ready, or where they differ.
func printFleet(cmd *cobra.Command, at *target) error {
	var all admin.Fleet
	if err := at.callAPI(cmd, "GET", "/fleet", nil, &all); err != nil {
		return err
	}
	if len(all.Instances) == 0 {
		return errors.New("fleet: this instance shares nothing with others: stock.source is not \"redis\", and no limit " +
			"has the scope \"fleet\"; ask for it alone: sluice status")
	}
	text, good := Fleet(&all)
	if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
		return err
	}
	if !good {
		return cli.ErrReported
	}
	return nil
}
