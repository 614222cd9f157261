// Command sluice is a gateway for flash sales: a reverse proxy that forwards only the orders that can still succeed, at
// the rate that the shop can bear.
package main

import (
	"errors"
	"os"

	"sluice/internal/cli"
	"sluice/internal/loadtest"
)

var version = cli.Version()

// exitReject is the exit code of explain where the request would be rejected.
const exitReject = 4

func main() { os.Exit(cli.Run(newRoot(), os.Args[1:], quietCode)) }

// quietCode is the exit code of an error whose command has said what is wrong; 0 = it is printed.
func quietCode(err error) int {
	switch {
	case errors.Is(err, errFailedOnline), errors.Is(err, errNotFound), errors.Is(err, loadtest.ErrRedisAway):
		return cli.ExitOnline
	case errors.Is(err, errRejected):
		return exitReject
	}
	return 0
}
