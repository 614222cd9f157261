package doctor

import (
	"strings"
	"testing"

	"sluice/config"
)

func TestCheckWarnsOfAPersonsPageThatIsGivenToAll(t *testing.T) {
	for more, warns := range map[string]bool{"": false, "cache = \"1s\"": false, "user = \"$cookie_u\"": false,
		"cache = \"1s\"\nuser = \"$cookie_u\"": true} {
		c, err := config.Parse("config.toml",
			[]byte("upstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\nname = \"page\"\nmatch = \"/\"\ngate = \"limit\"\n"+
				more), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := examined(c); strings.Contains(got, "config.toml:6: the route knows its user") != warns {
			t.Errorf("%q: %q", more, got)
		}
	}
}
