// Command sluice-settle books in a database what the ledgers of Sluice have decided. It is the program that opens
// databases; the gateway does not.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"sluice/internal/cli"
	"sluice/internal/settler"
	"sluice/stockgate/redisconn"
)

// Groups of commands, as the help lists them.
const (
	groupRun    = "run"
	groupShow   = "show"
	groupRepair = "repair"
)

func main() { os.Exit(cli.Run(newRoot(), os.Args[1:])) }

// newRoot is the command line of sluice-settle.
func newRoot() *cobra.Command {
	file := "config.toml"
	root := cli.Root("sluice-settle", "Book what the ledgers of Sluice have decided in a database.")
	cli.ConfigFlag(root, root.PersistentFlags(), &file, "take [settle] and the Redis of this configuration `file`")
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"}, &cobra.Group{ID: groupShow, Title: "Show:"},
		&cobra.Group{ID: groupRepair, Title: "Repair:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRun, newService(&file, "run", "Book orders", settler.Run),
		newService(&file, "work", "Send the jobs of settled orders to a webhook", settler.Work), newMigrate(&file), newDemo())
	add(groupShow, newCheck(&file), newStatus(&file), newVerify(&file), newReport(&file), newOrders(&file))
	add(groupRepair, newRebuild(&file), newRetry(&file), newSolve(&file), newArchive(&file), newMove(&file))
	root.AddCommand(newCheckNew(&file))
	for _, c := range root.Commands() {
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error { return redisconn.WithRemedy(run(cmd, args)) }
		}
	}
	return root
}
