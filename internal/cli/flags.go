package cli

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
)

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
	case formerNames[cmd.CommandPath()+" "+cmd.Flags().Arg(0)] != "": // with a flag that it had
		err = fmt.Errorf("unknown command %q: it is now %q", cmd.Flags().Arg(0),
			formerNames[cmd.CommandPath()+" "+cmd.Flags().Arg(0)])
	case errors.As(err, &unknown) && formerNames[cmd.CommandPath()+" --"+unknown.GetSpecifiedName()] != "":
		err = fmt.Errorf("unknown flag --%s: it is now %q", unknown.GetSpecifiedName(),
			formerNames[cmd.CommandPath()+" --"+unknown.GetSpecifiedName()])
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		name := unknown.GetSpecifiedName()
		err = fmt.Errorf("unknown flag -%s%s", name, Meant(nearFlag(cmd, name)))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		err = fmt.Errorf("unknown flag --%s%s", name, Meant(nearFlag(cmd, name)))
	}
	return Misuse(cmd, err)
}

// otherNames are names that flags have in other programs, each with those that sluice's commands have for the same.
var otherNames = map[string][]string{
	"f": {"config"}, "file": {"config"}, "cfg": {"config"},
	"data": {"body"}, "data-raw": {"body"},
	"uid":  {"user"},
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
	if near := config.Nearest(name, names); near != "" && len(name) > 1 {
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

// Meant is the question behind a message; "" for an empty suggestion.
func Meant(suggestion string) string {
	if suggestion == "" {
		return ""
	}
	return ", did you mean " + suggestion + "?"
}

// Exactly wants as many arguments as the usage line of a command names: <must>, [may].
func Exactly(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Use)[1:]
	for i, word := range words {
		if i >= len(args) && strings.HasPrefix(word, "<") {
			return Misuse(cmd, fmt.Errorf("%s is missing: %s", word, cmd.UseLine()))
		}
	}
	if len(args) > len(words) {
		extra := args[len(words)]
		return Misuse(cmd, fmt.Errorf("unexpected argument %q: %s%s", extra, cmd.UseLine(), Meant(nearArgument(cmd, extra))))
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

// NumbersLast moves negative numbers behind a "--": in "stock add 1001 -4" they are no flags. A number behind a flag,
// as in "--limit -1", belongs to that.
func NumbersLast(args []string) []string {
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
			return Misuse(cmd, fmt.Errorf("unknown flag -%s, did you mean --%s?", name, name))
		}
	}
	return nil
}

// ConfigFlag adds -c, --config. The default is what to holds.
func ConfigFlag(cmd *cobra.Command, flags *pflag.FlagSet, to *string, usage string) {
	flags.StringVarP(to, "config", "c", *to, usage)
	_ = cmd.RegisterFlagCompletionFunc("config", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
	})
}

// CompleteBy completes the first argument by what the configuration names.
func CompleteBy(words func(*config.Config) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		file, err := cmd.Flags().GetString("config")
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := config.Load(file, os.LookupEnv)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := words(c)
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

// choice is a flag that takes one of some words.
type choice struct {
	to    *string
	words []string
}

// ChoiceFlag adds such a flag. Its default is what to holds; "" = none.
func ChoiceFlag(cmd *cobra.Command, flags *pflag.FlagSet, to *string, name, usage string, words ...string) {
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
