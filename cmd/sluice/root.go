package main

import (
	"github.com/spf13/cobra"

	"sluice/internal/cli"
)

// Groups of commands, as the help lists them.
const (
	groupRun         = "run"
	groupCheck       = "check"
	groupSale        = "sale"
	groupStock       = "stock"
	groupReservation = "reservation"
	groupOps         = "ops"
)

// newRoot is the command line of sluice.
func newRoot() *cobra.Command {
	root := cli.Root("sluice", "A reverse proxy for flash sales. Start with: sluice demo")
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"}, &cobra.Group{ID: groupCheck, Title: "Check:"},
		&cobra.Group{ID: groupSale, Title: "Sales:"}, &cobra.Group{ID: groupStock, Title: "Stock:"},
		&cobra.Group{ID: groupReservation, Title: "Reservations:"},
		&cobra.Group{ID: groupOps, Title: "Operate a running gateway:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRun, newRun(), newDemo(), newInit())
	add(groupCheck, newCheck(), newExplain(), newConfig(), newLoadtest())
	add(groupSale, newSale(), newRoom())
	add(groupStock, newStock())
	add(groupReservation, newReservation())
	add(groupOps, newStatus(), newWhy(), newOverride(), newLimit(), newReload(), newDrain(), newHealthcheck())
	root.AddCommand(newSettle())
	return root
}
