package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/config"
	"sluice/config/position"
	"sluice/config/report"
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
	root := parent("sluice", "A gateway for flash sales. Start with: sluice demo")
	var printVersion bool // cobra's own --version needs text/template, and with it 11 MB
	root.Flags().BoolVarP(&printVersion, "version", "v", false, "print the version")
	which := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if printVersion && len(args) == 0 {
			return newVersion().RunE(cmd, nil)
		}
		return which(cmd, args)
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.DisableSuggestions = true // parent suggests
	root.SetFlagErrorFunc(flagError)
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
	add(groupStock, newSettlement())
	add(groupOps, newStatus(), newWhy(), newOverride(), newLimit(), newReload(), newDrain(), newHealthcheck())
	root.AddCommand(newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version.", Args: exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "sluice", version)
			return err
		},
	}
}

// usageError is a command line that cannot be understood.
type usageError struct {
	command string // whose help tells more
	err     error
}

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

// misuse is a usageError of cmd, or nil if err is nil.
func misuse(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return &usageError{cmd.CommandPath(), err}
}

// formerNames are commands that have another name now.
var formerNames = map[string]string{
	"sluice rehearse":         "sluice loadtest",
	"sluice reservation show": "sluice reservation get",
}

// parent is a command that does nothing itself: it names the commands below it.
func parent(use, short string) *cobra.Command {
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
				return misuse(cmd, fmt.Errorf("which command? %s", either(names)))
			}
			if now := formerNames[cmd.CommandPath()+" "+args[0]]; now != "" {
				return misuse(cmd, fmt.Errorf("unknown command %q: it is now %q", args[0], now))
			}
			if near := report.Nearest(args[0], names); near != "" {
				return misuse(cmd, fmt.Errorf("unknown command %q, did you mean %q?", args[0], near))
			}
			return misuse(cmd, fmt.Errorf("unknown command %q: it is none of %s", args[0], strings.Join(names, ", ")))
		},
	}
}

// flagError says what is wrong with a flag, and what could have been meant.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &bad):
		f := bad.GetFlag()
		err = fmt.Errorf("--%s: %w", f.Name, bad.Unwrap())
		if errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
			err = fmt.Errorf("--%s: %q is no number that fits; write one like --%s=10", f.Name, bad.GetValue(), f.Name)
		}
	case errors.As(err, &bare):
		value, _ := pflag.UnquoteUsage(bare.GetFlag())
		err = fmt.Errorf("--%s needs a value: --%s=%s", bare.GetFlag().Name, bare.GetFlag().Name, value)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		name := unknown.GetSpecifiedName()
		err = fmt.Errorf("unknown flag -%s%s", name, meant(nearFlag(cmd, name)))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		err = fmt.Errorf("unknown flag --%s%s", name, meant(nearFlag(cmd, name)))
	}
	return misuse(cmd, err)
}

// otherNames are names that flags have in other programs, each with those that sluice's commands have for the same.
var otherNames = map[string][]string{
	"f": {"config"}, "file": {"config"}, "cfg": {"config"},
	"data": {"body"}, "data-raw": {"body"},
	"id": {"request-id"}, "uid": {"user"},
	"addr": {"admin"}, "address": {"admin", "ip"}, "host": {"admin"}, "url": {"admin", "to"},
	"listen": {"from"}, "upstream": {"to"}, "target": {"to"},
	"duration": {"for"}, "follow": {"watch"},
}

// nearFlag is the flag of cmd that name could mean: one with the same meaning or a similar name; "" = none.
func nearFlag(cmd *cobra.Command, name string) string {
	for _, other := range otherNames[name] {
		if cmd.Flags().Lookup(other) != nil {
			return "--" + other
		}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := report.Nearest(name, names); near != "" && len(name) > 1 {
		return "--" + near
	}
	return ""
}

// nearArgument is the flag with which cmd takes an argument that it has no place for; "" = none.
func nearArgument(cmd *cobra.Command, arg string) string {
	if strings.HasSuffix(arg, ".toml") && cmd.Flags().Lookup("config") != nil {
		return "--config " + arg
	}
	if cmd.Flags().Lookup(arg) != nil {
		return "--" + arg
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && cmd.Flags().Lookup("config") != nil {
		return "--config " + arg
	}
	return ""
}

// nearKey is the key of the configuration that is most like key; "" = none is.
func nearKey(c *config.Config, key string) string {
	var keys []string
	for _, s := range c.Settings() {
		keys = append(keys, position.WithoutIndexes(s.Key))
	}
	return report.Nearest(key, keys)
}

// meant is the question behind a message; "" for an empty suggestion.
func meant(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return ", did you mean " + suggestion + "?"
}

// exactly wants as many arguments as the usage line of a command names: <must>, [may].
func exactly(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Use)[1:]
	for i, word := range words {
		if i >= len(args) && strings.HasPrefix(word, "<") {
			return misuse(cmd, fmt.Errorf("%s is missing: %s", word, cmd.UseLine()))
		}
	}
	if len(args) > len(words) {
		extra := args[len(words)]
		return misuse(cmd, fmt.Errorf("unexpected argument %q: %s%s", extra, cmd.UseLine(), meant(nearArgument(cmd, extra))))
	}
	return nil
}

// either is "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// numbersLast moves negative numbers behind a "--": in "stock add 1001 -4" they are no flags. A number behind a flag,
// as in "--limit -1", belongs to that.
func numbersLast(args []string) []string {
	var words, numbers []string
	for i, a := range args {
		if a == "--" {
			return args
		}
		_, err := strconv.ParseInt(a, 10, 64)
		if err == nil && a[0] == '-' && (i == 0 || !strings.HasPrefix(args[i-1], "-")) {
			numbers = append(numbers, a)
		} else {
			words = append(words, a)
		}
	}
	if len(numbers) == 0 {
		return args
	}
	return append(append(words, "--"), numbers...)
}

// oneDash finds a long flag that is written with one dash: "-config FILE" would be read as "-c onfig".
func oneDash(root *cobra.Command, args []string) error {
	cmd, _, err := root.Find(args)
	if err != nil {
		return nil // told by the command itself
	}
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		if a == "--" {
			return nil
		}
		if strings.HasPrefix(a, "-") && len(name) > 1 && name[0] != '-' && cmd.Flags().Lookup(name) != nil {
			return misuse(cmd, fmt.Errorf("unknown flag -%s, did you mean --%s?", name, name))
		}
	}
	return nil
}

// choice is a flag that takes one of some words.
type choice struct {
	to    *string
	words []string
}

// choiceFlag adds such a flag. Its default is what to holds; "" = none.
func choiceFlag(cmd *cobra.Command, flags *pflag.FlagSet, to *string, name, usage string, words ...string) {
	flags.Var(&choice{to, words}, name, usage)
	if err := cmd.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
}

// Set implements pflag.Value.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return fmt.Errorf("%q: it must be %s", text, either(c.words))
	}
	*c.to = text
	return nil
}

// String implements pflag.Value.
func (c *choice) String() string {
	if c.to == nil {
		return ""
	}
	return *c.to
}

// Type implements pflag.Value.
func (c *choice) Type() string { return strings.Join(c.words, "|") }
