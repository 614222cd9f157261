package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"sluice/config"
)

// misuse is a command line that cannot be understood, and the command up to which it was.
type misuse struct {
	at  *node
	err error
}

func (m *misuse) Error() string { return m.err.Error() }
func (m *misuse) Unwrap() error { return m.err }

// parse fills the structs by args, and finds the command that is meant; or whether its help is wanted. An error is a *misuse.
func (n *node) parse(args []string) (meant *node, help bool, err error) {
	if meant, err = n.find(args); err != nil {
		return nil, false, &misuse{meant, err}
	}
	if help = n.flags.Changed("help"); help {
		return meant, true, nil
	}
	if len(meant.below) > 0 {
		return nil, false, &misuse{meant, fmt.Errorf("which command? %s", either(meant.words()))}
	}
	if err := meant.complete(); err != nil {
		return nil, false, &misuse{meant, err}
	}
	return meant, false, nil
}

// find reads the flags of this command up to the next command, and goes on there.
func (n *node) find(args []string) (meant *node, err error) {
	flags := n.allFlags()
	flags.SetInterspersed(len(n.below) == 0)
	flags.Usage = func() {}
	if len(n.below) == 0 {
		args = numbersLast(args, flags)
	}
	if err := flags.Parse(args); err != nil {
		return n, misread(err, flags)
	}
	words := flags.Args()
	if len(n.below) == 0 {
		return n, n.place(words, flags.Changed("help"))
	}
	if len(words) == 0 {
		return n, nil
	}
	for _, one := range n.below {
		if one.name == words[0] || slices.Contains(one.aliases, words[0]) {
			return one.find(words[1:])
		}
	}
	if near := config.Nearest(words[0], n.words()); near != "" {
		return n, fmt.Errorf("unknown command %q, did you mean %q?", words[0], near)
	}
	return n, fmt.Errorf("unknown command %q: it is none of %s", words[0], strings.Join(n.words(), ", "))
}

// place sets the arguments; whoever asks for help may leave some out.
func (n *node) place(words []string, help bool) error {
	for i, arg := range n.args {
		switch {
		case i < len(words):
			if err := arg.value.Set(words[i]); err != nil {
				return fmt.Errorf("<%s>: %w", arg.name, err)
			}
		case !arg.optional && !help:
			return fmt.Errorf("<%s> is missing: %s", arg.name, n.usage())
		}
	}
	if extra := len(n.args); len(words) > extra {
		return fmt.Errorf("unexpected argument %q: %s", words[extra], n.usage())
	}
	return nil
}

// complete refuses what is there but not enough, or does not go together.
func (n *node) complete() (err error) {
	for _, one := range n.line() {
		one.flags.VisitAll(func(f *pflag.Flag) {
			if v := f.Value.(*value); v.required && !f.Changed && err == nil {
				err = fmt.Errorf("--%s=%s is missing: %s", f.Name, v.Type(), n.usage())
			}
		})
	}
	for _, one := range n.line() {
		for _, check := range one.checks {
			if err == nil {
				err = check.Validate()
			}
		}
	}
	return err
}

// misread says what is wrong with a flag, and what could have been meant.
func misread(err error, flags *pflag.FlagSet) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("--%s: %w", bad.GetFlag().Name, bad.Unwrap())
	case errors.As(err, &bare):
		return fmt.Errorf("--%s needs a value: --%s=%s", bare.GetFlag().Name, bare.GetFlag().Name, bare.GetFlag().Value.Type())
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("unknown flag --%s, did you mean --%s?", unknown.GetSpecifiedName(), near)
		}
		return fmt.Errorf("unknown flag --%s", unknown.GetSpecifiedName())
	}
	return err
}

// words are the names of the commands below.
func (n *node) words() (all []string) {
	for _, one := range n.below {
		all = append(all, one.name)
	}
	return all
}

// numbersLast moves negative numbers behind a "--": in "stock add 1001 -4" they are no flags. In "--units -1" it is one
// that belongs to a flag.
func numbersLast(args []string, flags *pflag.FlagSet) []string {
	var words, numbers []string
	for i, a := range args {
		if a == "--" {
			return args
		}
		_, err := strconv.ParseInt(a, 10, 64)
		if err == nil && a[0] == '-' && (i == 0 || !awaits(args[i-1], flags)) {
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

// awaits tells whether the next word is the value of this one.
func awaits(word string, flags *pflag.FlagSet) bool {
	name, long := strings.CutPrefix(word, "--")
	f := flags.Lookup(name)
	return long && f != nil && f.NoOptDefVal == ""
}
