package main

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

func everyCommand(n *node) []*node {
	all := []*node{n}
	for _, one := range n.below {
		all = append(all, everyCommand(one)...)
	}
	return all
}

// A command that main does not know to run would end in a panic.
func TestEveryCommandCanBeRun(t *testing.T) {
	root := commandTree("sluice", "", new(commands))
	if n := len(root.leaves()); n < 30 {
		t.Fatalf("%d commands", n)
	}
	for _, leaf := range root.leaves() {
		if leaf.does() == nil {
			t.Errorf("%s cannot be run", leaf.path())
		}
	}
	if root.does() != nil {
		t.Error("sluice alone does something")
	}
}

func TestHelpIsWholeAndFitsATerminal(t *testing.T) {
	for _, one := range everyCommand(commandTree("sluice", "An edge gate.", new(commands))) {
		var text strings.Builder
		one.writeHelp(&text)
		for line := range strings.Lines(text.String()) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > helpWidth {
				t.Errorf("%s: too long: %s", one.path(), line)
			}
		}
		seen := map[string]bool{}
		for _, above := range one.line() {
			above.flags.VisitAll(func(f *pflag.Flag) {
				if f.Usage == "" || seen[f.Name] {
					t.Errorf("%s: --%s has no help, or is there twice", one.path(), f.Name)
				}
				if seen[f.Name] = true; !strings.Contains(text.String(), "--"+f.Name) {
					t.Errorf("%s: the help lacks --%s", one.path(), f.Name)
				}
			})
		}
		for _, below := range one.below {
			if below.help == "" || !strings.Contains(text.String(), " "+below.name) {
				t.Errorf("%s: the help lacks %s", one.path(), below.path())
			}
		}
	}
}

// typed has a flag, or an argument, of each kind.
type typed struct {
	One typedOne `cmd:"" help:"One." aliases:"uno"`
	Two typedTwo `cmd:"" help:"Two."`
}

type typedOne struct {
	Shared typedShared `embed:""`
	Below  typedBelow  `cmd:"" help:"Below."`
}

type typedShared struct {
	TakeOver bool   `short:"t" help:"A switch."`
	Kind     string `enum:",a,b" help:"One of these."`
}

type typedBelow struct {
	SKU   string   `arg:"" help:"A name."`
	Delta int64    `arg:"" optional:"" default:"7" help:"A number."`
	Names []string `help:"A list." placeholder:"NAME"`
	Line  []string `short:"H" sep:"none" help:"Lines."`
	Limit *int     `help:"A number, or none." placeholder:"N"`
}

type typedTwo struct {
	Token string `help:"A file." type:"existingfile" placeholder:"FILE"`
	Must  string `help:"Must be there." required:"" placeholder:"WORD"`
}

func (b *typedBelow) Validate() error {
	if b.SKU == "bad" {
		return errors.New("bad is bad")
	}
	return nil
}

func TestCommandLineFillsTheStruct(t *testing.T) {
	four, minus := 4, -4
	for line, want := range map[string]typedBelow{
		"one below x":                                {SKU: "x", Delta: 7},
		"uno below x 3":                              {SKU: "x", Delta: 3},
		"one below x -3 --names a,b --names c":       {SKU: "x", Delta: -3, Names: []string{"a", "b", "c"}},
		"one below -H a,b x -Hc":                     {SKU: "x", Delta: 7, Line: []string{"a,b", "c"}},
		"one below --limit=4 x":                      {SKU: "x", Delta: 7, Limit: &four},
		"one below x -9 --limit -4":                  {SKU: "x", Delta: -9, Limit: &minus},
		"one below --limit -4 -- -x":                 {SKU: "-x", Delta: 7, Limit: &minus},
		"one --take-over --kind a below x":           {SKU: "x", Delta: 7},
		"one below x --kind= --take-over=false -t 2": {SKU: "x", Delta: 2},
	} {
		var all typed
		meant, help, err := commandTree("try", "", &all).parse(strings.Fields(line))
		if err != nil || help || meant.path() != "try one below" || !reflect.DeepEqual(all.One.Below, want) {
			t.Errorf("%s: %+v, help %v, %v", line, all.One.Below, help, err)
		}
	}
}

func TestMisuseSaysWhereAndWhatElse(t *testing.T) {
	for line, want := range map[string]string{
		"":                           `try: which command? one or two`,
		"one":                        `try one: which command? below`,
		"onne":                       `try: unknown command "onne", did you mean "one"?`,
		"zzz":                        `try: unknown command "zzz": it is none of one, two`,
		"one bellow x":               `try one: unknown command "bellow", did you mean "below"?`,
		"one below":                  `try one below: <sku> is missing: try one below <sku> [<delta>] [flags]`,
		"one below x many":           `try one below: <delta>: "many" is no whole number`,
		"one below x 1 2":            `try one below: unexpected argument "2": try one below <sku> [<delta>] [flags]`,
		"one below bad":              `try one below: bad is bad`,
		"one --take-ove below x":     `try one: unknown flag --take-ove, did you mean --take-over?`,
		"one below x --take-ver":     `try one below: unknown flag --take-ver, did you mean --take-over?`,
		"one below x --zzz":          `try one below: unknown flag --zzz`,
		"one below x -z":             `try one below: unknown flag -z`,
		"one below x --kind c":       `try one below: --kind: "c": it must be a or b`,
		"one below x --kind":         `try one below: --kind needs a value: --kind=a|b`,
		"one below x --limit 1s":     `try one below: --limit: "1s" is no whole number`,
		"one below x --take-over=no": `try one below: --take-over: "no": it must be true or false`,
		"two":                        `try two: --must=WORD is missing: try two --must=WORD [flags]`,
		"two --token=.":              `try two: --token: . is a folder`,
		"two --token=/no/such/file":  `try two: --token: stat /no/such/file: no such file or directory`,
	} {
		_, help, err := commandTree("try", "", new(typed)).parse(strings.Fields(line))
		var wrong *misuse
		if !errors.As(err, &wrong) || help {
			t.Errorf("%s: %v", line, err)
		} else if got := wrong.at.path() + ": " + wrong.Error(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, got, want)
		}
	}
}

// Whoever asks for help has not understood yet what else must be there.
func TestHelpIsGivenAnywhere(t *testing.T) {
	for line, want := range map[string]string{
		"--help": "try", "-h": "try", "one --help": "try one", "--help one below": "try one below", "one below -h": "try one below",
		"one below --help bad": "try one below", "two --help": "try two", "one -h below x 1": "try one below",
	} {
		meant, help, err := commandTree("try", "", new(typed)).parse(strings.Fields(line))
		if err != nil || !help || meant.path() != want {
			t.Errorf("%s: help %v of %v, %v", line, help, meant, err)
		}
	}
}

func TestFieldsAreNamedAsOneWouldTypeThem(t *testing.T) {
	var got []string
	for _, name := range []string{"SKU", "TakeOver", "RequestID", "JSONLines", "Ops"} {
		got = append(got, dashed(name))
	}
	if want := []string{"sku", "take-over", "request-id", "json-lines", "ops"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestHelpIsAWordToo(t *testing.T) {
	for line, want := range map[string]string{"help": "Usage: sluice <command>", "help stock set": "Usage: sluice stock set", "stock help": ""} {
		var c commands
		meant, help, err := commandTree("sluice", "", &c).parse(asked(strings.Fields(line)))
		if help != (want != "") || help == (err != nil) {
			t.Errorf("%s: %v, %v", line, help, err)
			continue
		}
		var out strings.Builder
		if help {
			meant.writeHelp(&out)
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %s", line, out.String())
		}
	}
}
