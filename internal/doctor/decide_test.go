package doctor

import (
	"strings"
	"testing"

	"sluice/config"
)

func TestDoctor_CheckSaysWhatDoesNotHoldWhereAnotherProxyForwards(t *testing.T) {
	const decide, slots = "[[decide]]\nlisten = \"127.0.0.1:8092\"\n", "hold a slot until POST /settle"
	for _, c := range []struct{ gate, more, says string }{
		{"limit", decide, slots}, {"limit", "", ""}, {"pass", decide, ""},
		{"limit", "cache = \"1s\"\n" + decide, "config.toml:6: pages are kept"},
		{"limit", "timeout = \"1s\"\n" + decide, "config.toml:6: the time of the proxy that asks"},
	} {
		parsed, err := config.Parse("config.toml", []byte("upstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\n"+
			"name = \"page\"\nmatch = \"/\"\ngate = \""+c.gate+"\"\n"+c.more), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := examined(parsed)
		if !strings.Contains(got, c.says) || c.says == "" && strings.Contains(got, slots) {
			t.Errorf("%q: want %q in %q", c.more, c.says, got)
		}
	}
}
