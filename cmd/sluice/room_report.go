package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/internal/cli"
	"sluice/room"
)

func newRoomReport(at *target) *cobra.Command {
	return &cobra.Command{
		Use: "report <name>", Short: "Tell what became of the people of a waiting room.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			var all struct{ Rooms []admin.Room }
			if err := at.callAPI(cmd, "GET", "/rooms", nil, &all); err != nil {
				return err
			}
			for i := range all.Rooms {
				if all.Rooms[i].Name == args[0] {
					reportRoom(cmd.OutOrStdout(), &all.Rooms[i])
					return nil
				}
			}
			return fmt.Errorf("there is no waiting room %q; \"sluice room status\" shows all", args[0])
		},
		ValidArgsFunction: cli.CompleteBy(roomNames),
	}
}

func reportRoom(w io.Writer, r *admin.Room) {
	fmt.Fprintf(w, "room       %s is %s\n", r.Name, r.Phase)
	fmt.Fprintf(w, "people     of %d people %d were called, %d claimed a pass and %d placed an order\n",
		max(r.People, r.Called), r.Called, r.Claimed, r.Used)
	fmt.Fprintf(w, "numbers    %d were given out\n", r.Issued)
	if r.Used+r.Expired > 0 {
		fmt.Fprintf(w, "passes     with %.0f %% of those decided an order was placed; %d were not used in time\n",
			100*r.Conversion, r.Expired)
	}
	if r.WaitP90 > 0 {
		ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
		fmt.Fprintf(w, "waits      half of those who claimed were called within %v, nine of ten within %v\n", ms(r.WaitP50),
			ms(r.WaitP90))
	}
	if r.Order != room.Draw {
		fmt.Fprintln(w, "order      first come, first served")
		return
	}
	fmt.Fprintf(w, "order      a draw among %d; SHA-256 of the seed: %s\n", r.Early, r.Commit)
	if r.DrawnBy == "" {
		fmt.Fprintln(w, "draw       not made yet")
		if r.BeaconRound > 0 {
			fmt.Fprintf(w, "beacon     round %d, published at %s: sluice room beacon %s --round %d --signature HEX\n",
				r.BeaconRound, clock(r.BeaconAt), r.Name, r.BeaconRound)
		}
		return
	}
	fmt.Fprintf(w, "seed       %s\n", r.Seed)
	if r.DrawnBy == room.ByBeacon {
		fmt.Fprintf(w, "beacon     round %d: %s\n", r.BeaconRound, r.Beacon)
	} else {
		fmt.Fprintln(w, "beacon     none: the shop has drawn, and the commitment alone stands")
	}
	fmt.Fprintf(w, "threshold  %d of %d; /.sluice/room/%s/draw has all steps\n", r.Threshold, room.ScoreEnd, r.Name)
}
