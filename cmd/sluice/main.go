// Command sluice is a gateway for flash sales: a reverse proxy that forwards only the orders that can still succeed, at
// the rate that the shop can bear.
package main

import (
	"os"

	"sluice/internal/cli"
)

var version = cli.Version()

func main() { os.Exit(cli.Run(newRoot(), os.Args[1:])) }
