// Package cli holds what the command lines of both binaries share: how commands are found and Misuse is reported. It
// has no command of its own, but version.
package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"sluice/config"
)

// Exit codes, the same for all commands.
const (
	ExitFailed = 1 // invalid or failed
	ExitUsage  = 2
	ExitOnline = 3 // an online check failed, or nothing was found
)

// Exit ends a command whose output says already what is wrong, with an exit code.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Errors of commands that have said what is wrong.
var (
	ErrReported error = Exit(ExitFailed)
	ErrOnline   error = Exit(ExitOnline)
)

// Run runs a command line and returns its exit code.
func Run(root *cobra.Command, args []string) int {
	args = NumbersLast(args)
	err := oneDash(root, args)
	if err == nil {
		root.SetArgs(args)
		err = root.Execute()
	}
	var usage *UsageError
	var exit Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "%s: %s\n", usage.Command, harmless(usage.Error()))
		if !usage.Moved {
			fmt.Fprintf(os.Stderr, "%s: see %s --help\n", root.Name(), usage.Command)
		}
		return ExitUsage
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", root.Name(), harmless(err.Error()))
	return ExitFailed
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

// Root is the command line of a binary, with its version.
func Root(name, short string) *cobra.Command {
	root := Parent(name, short)
	var printVersion bool // cobra's own --version needs text/template, and with it 11 MB
	root.Flags().BoolVarP(&printVersion, "version", "v", false, "print the version")
	version := &cobra.Command{
		Use: "version", Short: "Print the version.", Args: Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), name, Version())
			return err
		},
	}
	which := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if printVersion && len(args) == 0 {
			return version.RunE(cmd, nil)
		}
		return which(cmd, args)
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.DisableSuggestions = true // Parent suggests
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(version)
	root.SetHelpCommand(help())
	return root
}

// help replaces cobra's command, which answers a name that it does not know with the help of the whole binary.
func help() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Show the help of a command.", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if about, _, err := cmd.Root().Find(args); err == nil {
				for _, c := range about.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, c.Name()+"\t"+c.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return Misuse(cmd, err)
			}
			if len(rest) > 0 && about.HasSubCommands() {
				return about.RunE(about, rest) // it says which commands there are
			}
			return about.Help()
		},
	}
}

// UsageError is a command line that cannot be understood.
type UsageError struct {
	Command string // whose help tells more
	Moved   bool   // into another binary: there is no help
	Err     error
}

func (u *UsageError) Error() string { return u.Err.Error() }
func (u *UsageError) Unwrap() error { return u.Err }

// Misuse is a UsageError of cmd, or nil if err is nil.
func Misuse(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{Command: cmd.CommandPath(), Err: err}
}

// formerNames are commands, and flags of them, that have another name now.
var formerNames = map[string]string{
	"sluice override end":              "sluice stock end",
	"sluice override pause":            "sluice stock pause",
	"sluice rehearse":                  "sluice loadtest",
	"sluice reservation show":          "sluice reservation get",
	"sluice reservation adopt":         "sluice stock recover SKU --from FILE --apply",
	"sluice stock adopt":               "sluice stock recover SKU --from FILE|settle --apply",
	"sluice stock recreate":            "sluice stock recover SKU --total N --from FILE|settle|none --apply",
	"sluice stock thaw":                "sluice stock recover SKU --from none --apply",
	"sluice why --request-id":          "sluice why REQUEST-ID",
	"sluice stock resume --reconciled": "sluice stock recover SKU --from none --apply",
}

// Parent is a command that does nothing itself: it names the commands below it.
func Parent(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			if len(args) == 0 {
				return Misuse(cmd, fmt.Errorf("which command? %s", either(names)))
			}
			if now := formerNames[cmd.CommandPath()+" "+args[0]]; now != "" {
				return Misuse(cmd, fmt.Errorf("unknown command %q: it is now %q", args[0], now))
			}
			if near := config.Nearest(args[0], names); near != "" {
				return Misuse(cmd, fmt.Errorf("unknown command %q, did you mean %q?", args[0], near))
			}
			return Misuse(cmd, fmt.Errorf("unknown command %q: it is none of %s", args[0], strings.Join(names, ", ")))
		},
	}
}
