package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish. In bash: source <(sluice completion bash)"`
}

func (c *completionCommand) Run(root *node) error {
	all := placesOf(root)
	switch c.Shell {
	case "fish":
		fishCompletion(os.Stdout, all)
	case "zsh":
		fmt.Println("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit")
		bashCompletion(os.Stdout, all)
	default:
		bashCompletion(os.Stdout, all)
	}
	return nil
}

// choice is one command, and the words that may follow it.
type choice struct {
	path  string // "sluice stock set"
	words []completed
}

// completed is a word and what it means.
type completed struct{ word, help string }

func placesOf(c *node) (all []choice) {
	here := choice{path: c.path()}
	for _, one := range c.below {
		here.words = append(here.words, completed{one.name, one.help})
	}
	c.allFlags().VisitAll(func(f *pflag.Flag) { here.words = append(here.words, completed{"--" + f.Name, f.Usage}) })
	all = []choice{here}
	for _, one := range c.below {
		all = append(all, placesOf(one)...)
	}
	return all
}

// bashCompletion finds the command by the words so far, and offers what may follow it; files where that is nothing.
func bashCompletion(to io.Writer, all []choice) {
	fmt.Fprint(to, "_sluice() {\n  local path=sluice word words=\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"$path $word\" in\n")
	var paths []string
	for _, p := range all[1:] {
		paths = append(paths, "'"+p.path+"'")
	}
	fmt.Fprintf(to, "      %s) path=\"$path $word\" ;;\n    esac\n  done\n  case \"$path\" in\n", strings.Join(paths, "|"))
	for _, p := range all {
		var words []string
		for _, w := range p.words {
			words = append(words, w.word)
		}
		fmt.Fprintf(to, "    '%s') words='%s' ;;\n", p.path, strings.Join(words, " "))
	}
	fmt.Fprint(to, "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _sluice sluice\n")
}

func fishCompletion(to io.Writer, all []choice) {
	fmt.Fprint(to, "function __sluice_at\n  set -l path sluice\n  for word in (commandline -opc)[2..-1]\n    switch \"$path $word\"\n      case")
	for _, p := range all[1:] {
		fmt.Fprintf(to, " '%s'", p.path)
	}
	fmt.Fprint(to, "\n        set path \"$path $word\"\n    end\n  end\n  test \"$path\" = \"$argv[1]\"\nend\n")
	for _, p := range all {
		for _, w := range p.words {
			option := "-a " + w.word
			if name, ok := strings.CutPrefix(w.word, "--"); ok {
				option = "-l " + name
			}
			help := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(w.help)
			fmt.Fprintf(to, "complete -c sluice -n '__sluice_at \"%s\"' %s -d '%s'\n", p.path, option, help)
		}
	}
}
