package config

import (
	"strings"
	"testing"
)

// whole adds what every configuration needs where text lacks it, below text, so that its lines stay.
func whole(text string) string {
	if !strings.Contains(text, "upstream") {
		text += "\n[upstream]\ntargets = [\"http://127.0.0.1:9000\"]\n"
	}
	if !strings.Contains(text, "[[route]]") && !strings.Contains(text, "\nroute =") && !strings.HasPrefix(text,
		"route") && !strings.HasPrefix(text, "[route]") {
		text += "\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n"
	}
	return text
}

// environment of the tests.

func environment(name string) (string, bool) {
	value, ok := map[string]string{"PORT": "8081", "EMPTY": "", "MONEY": "$100 ${PORT}", "GATE": "resreve"}[name]
	return value, ok
}

func TestConfig_EveryMistakeNamesItsLineKeyAndWayOut(t *testing.T) {
	for _, list := range [][]mistake{syntaxMistakes, keyMistakes, typeMistakes, valueMistakes, contradictions,
		notAvailable} {
		for _, m := range list {
			t.Run(strings.SplitN(m.want, "\n", 2)[0], func(t *testing.T) {
				_, err := Parse("config.toml", []byte(whole(m.text)), environment)
				if err == nil {
					t.Fatalf("accepted:\n%s", m.text)
				}
				if got := strings.ReplaceAll(err.Error(), "config.toml", ""); got != m.want {
					t.Errorf("\n%s\n got %s\nwant %s", m.text, got, m.want)
				}
			})
		}
	}
}

// mistake is a piece of a file and what is said of it, without the file's name.
type mistake struct{ text, want string }
