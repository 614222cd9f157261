// Command sluice is an edge gate for flash sales: a reverse proxy that lets through only the orders that can still
// succeed, at the pace that the shop can bear.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

var version = "dev" // set when it is built

// Exit codes, the same for all commands.
const (
	exitFailed = 1 // invalid or failed
	exitUsage  = 2
	exitOnline = 3 // an online check failed, or nothing was found
)

type commands struct {
	Run         runCommand         `cmd:"" help:"Run the gate."`
	Demo        demoCommand        `cmd:"" help:"A shop, a gate and a crowd in one process; at the end, what happened."`
	Init        initCommand        `cmd:"" help:"Write a first config.toml."`
	Check       checkCommand       `cmd:"" help:"Say everything that is wrong with a configuration, and what it amounts to."`
	Explain     explainCommand     `cmd:"" help:"Which route, limits and keys a request would meet."`
	Config      configCommand      `cmd:"" help:"The configuration as it is in force."`
	Status      statusCommand      `cmd:"" help:"How a running gate is; --watch shows it live."`
	Override    overrideCommand    `cmd:"" help:"Give a limit another number, or close a SKU, for a while."`
	Reload      reloadCommand      `cmd:"" help:"Have a running gate read its configuration again."`
	Drain       drainCommand       `cmd:"" help:"Have a running gate finish what is under way, and end."`
	Stock       stockCommand       `cmd:"" help:"Read and set the stock."`
	Sale        saleCommand        `cmd:"" help:"See the sales, and pause, resume or end one."`
	Reservation reservationCommand `cmd:"" help:"See what became of orders, and decide those that nobody else can."`
	Why         whyCommand         `cmd:"" help:"Why was a request refused, or what became of it? Exit code 3 when nothing is remembered of it."`
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
	parser := kong.Must(&c, kong.Name("sluice"),
		kong.Description("An edge gate for flash sales. Start with: sluice demo"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	call, err := parser.Parse(numbersLast(os.Args[1:]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		fmt.Fprintln(os.Stderr, "sluice: see sluice --help")
		os.Exit(exitUsage)
	}
	if err := call.Run(); err != nil {
		if errors.Is(err, errOnline) || errors.Is(err, errNotFound) {
			os.Exit(exitOnline)
		}
		if !errors.Is(err, errSaid) {
			fmt.Fprintln(os.Stderr, "sluice:", err)
		}
		os.Exit(exitFailed)
	}
}

// errSaid ends a command whose output has already said what is wrong.
var errSaid = errors.New("failed")

// numbersLast moves negative numbers behind a "--": in "stock add 1001 -4" they are no flags.
func numbersLast(args []string) []string {
	var words, numbers []string
	for _, a := range args {
		if _, err := strconv.ParseInt(a, 10, 64); err == nil && strings.HasPrefix(a, "-") {
			numbers = append(numbers, a)
		} else if words = append(words, a); a == "--" {
			return args
		}
	}
	if len(numbers) == 0 {
		return args
	}
	return append(append(words, "--"), numbers...)
}
