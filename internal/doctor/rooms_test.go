package doctor

import (
	"strings"
	"testing"

	"sluice/config"
)

func TestCheckWarnsOfARoomInWhichClientsInventUsers(t *testing.T) {
	for user, warns := range map[string]bool{"$cookie_uid": true, "$http_x_user": true, "$remote_addr": false} {
		text := "upstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\nname = \"order\"\nmatch = \"/\"\n" +
			"gate = \"limit\"\nroom = \"rush\"\nuser = \"" + user + "\"\n[[room]]\nname = \"rush\"\nper_second = 5\n"
		c, err := config.Parse("config.toml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := examined(c); strings.Contains(got, "config.toml:7: a client can write "+user) != warns {
			t.Errorf("%s: %q", user, got)
		}
	}
}
