// Command sluice is an edge gate for flash sales: a reverse proxy that lets through only the orders that can still
// succeed, at the pace that the shop can bear.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

var version = "dev" // set when it is built

// Exit codes, the same for all commands.
const (
	exitFailed = 1 // invalid or failed
	exitUsage  = 2
	exitOnline = 3 // an online check failed, or nothing was found
	exitReject = 4 // explain: the request would be rejected
)

type commands struct {
	Run         runCommand         `cmd:"" help:"Run the gate."`
	Demo        demoCommand        `cmd:"" help:"A shop, a gate and a crowd in one process; at the end, what happened."`
	Rehearse    rehearseCommand    `cmd:"" help:"Rehearse a sale with a crowd and a stand-in shop; say what to change."`
	Init        initCommand        `cmd:"" help:"Write a first config.toml."`
	Check       checkCommand       `cmd:"" help:"Say all that is wrong with a configuration, and what it amounts to."`
	Explain     explainCommand     `cmd:"" help:"Which route, limits and keys a request would meet."`
	Config      configCommand      `cmd:"" help:"The configuration as it is in force."`
	Status      statusCommand      `cmd:"" help:"How a running gate is; --watch shows it live."`
	Override    overrideCommand    `cmd:"" help:"Give a limit another number, or close a SKU, for a while."`
	Reload      reloadCommand      `cmd:"" help:"Have a running gate read its configuration again."`
	Drain       drainCommand       `cmd:"" help:"Have a running gate finish what is under way, and end."`
	Stock       stockCommand       `cmd:"" help:"Read and set the stock."`
	Sale        saleCommand        `cmd:"" help:"See the sales, and pause, resume or end one."`
	Reservation reservationCommand `cmd:"" help:"See what became of orders, and decide those that nobody else can."`
	Why         whyCommand         `cmd:"" help:"What became of a request? Exit code 3 where that is not known."`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask a running gate whether it is alive; for containers."`
	Completion  completionCommand  `cmd:"" help:"Print what completes sluice's commands in a shell."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

type versionCommand struct{}

func (versionCommand) Run() error {
	fmt.Println("sluice", version)
	return nil
}

func main() {
	var c commands
	meant, help, err := commandTree("sluice", "An edge gate for flash sales. Start with: sluice demo", &c).
		parse(asked(os.Args[1:]))
	var wrong *misuse
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "sluice: %v\nsluice: see %s --help\n", wrong, wrong.at.path())
		os.Exit(exitUsage)
	case help:
		meant.writeHelp(os.Stdout)
		return
	}
	if err := meant.does()(); err != nil {
		if errors.Is(err, errOnline) || errors.Is(err, errNotFound) {
			os.Exit(exitOnline)
		}
		if errors.Is(err, errRejected) {
			os.Exit(exitReject)
		}
		if !errors.Is(err, errSaid) {
			fmt.Fprintln(os.Stderr, "sluice:", err)
		}
		os.Exit(exitFailed)
	}
}

// asked is the line with "help stock set" as "stock set --help".
func asked(line []string) []string {
	if len(line) > 0 && line[0] == "help" {
		return append(slices.Clone(line[1:]), "--help")
	}
	return line
}

// errSaid ends a command whose output has already said what is wrong.
var errSaid = errors.New("failed")

// does is what the command is for; nil = nothing by itself. A command below another one is given what that was told.
func (n *node) does() func() error {
	switch it := n.into.(type) {
	case interface{ Run() error }:
		return it.Run
	case interface{ Run(*node) error }:
		return func() error { return it.Run(n.line()[0]) }
	case interface{ Run(*stockCommand) error }:
		return func() error { return it.Run(n.above.into.(*stockCommand)) }
	case interface{ Run(*saleCommand) error }:
		return func() error { return it.Run(n.above.into.(*saleCommand)) }
	case interface {
		Run(*reservationCommand) error
	}:
		return func() error { return it.Run(n.above.into.(*reservationCommand)) }
	}
	return nil
}
