package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

const (
	helpWidth = 80
	helpLeft  = 24 // what is longer has its text in the next line
)

// byDefault ends the text about a flag or an argument.
func (v *value) byDefault() string {
	if v.first == "" {
		return ""
	}
	return " (default: " + v.first + ")"
}

// usage is the command with what it takes, in one line.
func (n *node) usage() string {
	text := n.path()
	for _, arg := range n.args {
		text += " " + arg.String()
	}
	n.flags.VisitAll(func(f *pflag.Flag) {
		if v := f.Value.(*value); v.required {
			text += " --" + f.Name + "=" + v.Type()
		}
	})
	if len(n.below) > 0 {
		text += " <command>"
	}
	return text + " [flags]"
}

// String is how it stands in the usage: <left>, and [<file>] when it can be left out.
func (a argument) String() string {
	if a.optional {
		return "[<" + a.name + ">]"
	}
	return "<" + a.name + ">"
}

// writeHelp tells all there is to know about a command, in lines that a terminal does not break.
func (n *node) writeHelp(to io.Writer) {
	fmt.Fprintf(to, "Usage: %s\n\n%s\n", n.usage(), strings.Join(wrapped(n.help, helpWidth), "\n"))
	var rows [][2]string
	for _, arg := range n.args {
		rows = append(rows, [2]string{arg.String(), arg.help + arg.value.byDefault()})
	}
	writeRows(to, "Arguments", rows)
	rows = nil
	n.allFlags().VisitAll(func(f *pflag.Flag) {
		v := f.Value.(*value)
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		if !v.isSwitch() {
			name += "=" + v.Type()
		}
		rows = append(rows, [2]string{name, f.Usage + v.byDefault()})
	})
	writeRows(to, "Flags", rows)
	if len(n.below) == 0 {
		return
	}
	rows = nil
	for _, one := range n.leaves() {
		name := strings.TrimPrefix(one.path(), n.line()[0].name+" ")
		if len(one.aliases) > 0 {
			name += " (" + strings.Join(one.aliases, ", ") + ")"
		}
		rows = append(rows, [2]string{name, one.help})
	}
	writeRows(to, "Commands", rows)
	fmt.Fprintf(to, "\nRun \"%s <command> --help\" for more about a command.\n", n.path())
}

// writeRows writes names and their texts in two columns.
func writeRows(to io.Writer, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	width := 0
	for _, row := range rows {
		if n := utf8.RuneCountInString(row[0]); n <= helpLeft {
			width = max(width, n)
		}
	}
	indent := strings.Repeat(" ", 2+width+2)
	fmt.Fprintf(to, "\n%s:\n", title)
	for _, row := range rows {
		left := "  " + row[0]
		text := strings.Join(wrapped(row[1], helpWidth-len(indent)), "\n"+indent)
		switch n := utf8.RuneCountInString(left); {
		case text == "":
			fmt.Fprintln(to, left)
		case n+2 > len(indent):
			fmt.Fprintf(to, "%s\n%s%s\n", left, indent, text)
		default:
			fmt.Fprintf(to, "%s%s%s\n", left, indent[n:], text)
		}
	}
}

// wrapped is text in lines of at most so many characters; a longer word has a line of its own.
func wrapped(text string, width int) (lines []string) {
	used := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if len(lines) == 0 || used+1+n > width {
			lines, used = append(lines, word), n
			continue
		}
		lines[len(lines)-1] += " " + word
		used += 1 + n
	}
	return lines
}
