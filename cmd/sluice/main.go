// Command sluice is a gateway for flash sales: a reverse proxy that forwards only the orders that can still succeed, at
// the rate that the shop can bear.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"sluice/internal/buildinfo"
	"sluice/internal/loadtest/sandbox"
)

var version = buildinfo.Version()

// Exit codes, the same for all commands.
const (
	exitFailed = 1 // invalid or failed
	exitUsage  = 2
	exitOnline = 3 // an online check failed, or nothing was found
	exitReject = 4 // explain: the request would be rejected
)

// errReported ends a command whose output says already what is wrong.
var errReported = errors.New("failed")

func main() {
	root := newRoot()
	args := numbersLast(os.Args[1:])
	if err := oneDash(root, args); err != nil {
		os.Exit(exitCode(err))
	}
	root.SetArgs(args)
	os.Exit(exitCode(root.Execute()))
}

// exitCode reports err on standard error and returns the exit code for it.
func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "sluice: %s\nsluice: see %s --help\n", harmless(usage.Error()), usage.command)
		return exitUsage
	case errors.Is(err, errFailedOnline), errors.Is(err, errNotFound), errors.Is(err, sandbox.ErrRedisAway):
		return exitOnline
	case errors.Is(err, errRejected):
		return exitReject
	case !errors.Is(err, errReported):
		fmt.Fprintln(os.Stderr, "sluice:", harmless(err.Error()))
	}
	return exitFailed
}

// harmless replaces what could disturb a terminal, or change the direction of its text: clients choose SKUs, users and
// serials.
func harmless(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, text)
}
