package main

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
)

// node is a word of the command line and what may follow it. The fields of its struct say so by their tags:
//
//	cmd:""    a command below this one
//	embed:""  more fields of this one
//	arg:""    an argument, known by its place; it must be there unless it is optional:""
//	          anything else is a flag
//
// and name, help, default, enum:"a,b" (an empty one among them: it may be left empty), type:"existingfile"; of a flag
// short, placeholder, required:"", sep:"none" (a list is not cut at its commas); of a command aliases. Without name:"" it is the field's, TakeOver as take-over.
// Whatever of this has Validate() error is asked when the line is read.
//
// Nothing here finds a method by its name: a program that does must carry every method of every type it has.
type node struct {
	name, help string
	aliases    []string
	above      *node
	below      []*node
	into       any // points to the struct
	flags      *pflag.FlagSet
	args       []argument
	checks     []validator
}

type argument struct {
	name, help string
	optional   bool
	value      *value
}

type validator interface{ Validate() error }

// commandTree is the tree of the commands in a struct, under the name of the program.
func commandTree(name, help string, into any) *node {
	root := grow(name, help, reflect.ValueOf(into).Elem())
	var wanted bool
	root.flags.AddFlag(&pflag.Flag{Name: "help", Shorthand: "h", Usage: "Show the help of a command.",
		Value: &value{to: reflect.ValueOf(&wanted).Elem()}, NoOptDefVal: "true"})
	return root
}

func grow(name, help string, fields reflect.Value) *node {
	n := &node{name: name, help: help, into: fields.Addr().Interface(), flags: pflag.NewFlagSet(name, pflag.ContinueOnError)}
	n.flags.SortFlags = false
	n.read(fields)
	return n
}

func (n *node) read(fields reflect.Value) {
	if all := fields.Addr(); all.CanInterface() { // what is not exported says it through who embeds it
		if check, ok := all.Interface().(validator); ok {
			n.checks = append(n.checks, check)
		}
	}
	for i := range fields.NumField() {
		field, to := fields.Type().Field(i), fields.Field(i)
		has := func(key string) bool { _, ok := field.Tag.Lookup(key); return ok }
		name, help := field.Tag.Get("name"), field.Tag.Get("help")
		if name == "" {
			name = dashed(field.Name)
		}
		switch {
		case has("embed"):
			n.read(to)
		case has("cmd"):
			one := grow(name, help, to)
			one.above, one.aliases = n, listed(field.Tag.Get("aliases"))
			n.below = append(n.below, one)
		case has("arg"):
			n.args = append(n.args, argument{name, help, has("optional"), newValue(field.Tag, to)})
		default:
			v := newValue(field.Tag, to)
			flag := &pflag.Flag{Name: name, Shorthand: field.Tag.Get("short"), Usage: help, Value: v}
			if v.isSwitch() {
				flag.NoOptDefVal = "true"
			}
			n.flags.AddFlag(flag)
		}
	}
}

// path is what one types to get here: sluice stock set.
func (n *node) path() string {
	if n.above == nil {
		return n.name
	}
	return n.above.path() + " " + n.name
}

// line is every command from the program's to this one.
func (n *node) line() []*node {
	if n.above == nil {
		return []*node{n}
	}
	return append(n.above.line(), n)
}

// allFlags are those that this command takes: of the commands above it, and its own.
func (n *node) allFlags() *pflag.FlagSet {
	all := pflag.NewFlagSet(n.name, pflag.ContinueOnError)
	all.SortFlags = false
	for _, one := range n.line() {
		all.AddFlagSet(one.flags)
	}
	return all
}

// leaves are the commands at and below this one that can be run.
func (n *node) leaves() (all []*node) {
	if len(n.below) == 0 {
		return []*node{n}
	}
	for _, one := range n.below {
		all = append(all, one.leaves()...)
	}
	return all
}

// dashed is TakeOver as take-over, and RequestID as request-id.
func dashed(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, c := range letters {
		begins := i > 0 && unicode.IsUpper(c) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func listed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
