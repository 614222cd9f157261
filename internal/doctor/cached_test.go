package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/config"
)

func TestDoctor_CheckWarnsOfAPersonsPageThatIsGivenToAll(t *testing.T) {
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

func TestDoctor_CheckWarnsOfAConditionThatAClientMeetsByItself(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for condition, warning := range map[string]string{
		"$cookie_vip=1":           "config.toml:7: a client can write $cookie_vip as it likes",
		"$http_x_level>=2":        "config.toml:7: a client can write $http_x_level as it likes",
		"$remote_addr!=192.0.2.1": "", "$signed_vip=1": "", "$jwt_level>=2": "",
	} {
		text := "upstream.targets = [\"http://127.0.0.1:9\"]\nauth = { jwt_algorithm = \"HS256\", jwt_key_file = \"" + key +
			"\", cookie_key_file = \"" + key + "\" }\n[[route]]\nname = \"page\"\nmatch = \"/\"\ngate = \"limit\"\n" +
			"require = [\"" + condition + "\"]"
		c, err := config.Parse("config.toml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := examined(c)
		if strings.Contains(got, "a client can write") != (warning != "") || !strings.Contains(got, warning) {
			t.Errorf("%s: want %q in %q", condition, warning, got)
		}
	}
}

func TestDoctor_CheckWarnsOfANameThatEndsAtADot(t *testing.T) {
	for user, warning := range map[string]string{
		"$cookie_connect.sid": "config.toml:6: the name in \"$cookie_connect.sid\" ends at the dot; write " +
			"$cookie('connect.sid'), or $(cookie_connect).sid where the rest is text",
		"$(cookie_connect).sid": "", "$cookie('connect.sid')": "", "$json_a.b": "", "$cookie_a.$cookie_b": "",
	} {
		c, err := config.Parse("config.toml", []byte("upstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\n"+
			"name = \"page\"\nmatch = \"/\"\ngate = \"limit\"\nuser = \""+user+"\"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := examined(c)
		if strings.Contains(got, "ends at the dot") != (warning != "") || !strings.Contains(got, warning) {
			t.Errorf("%s: want %q in %q", user, warning, got)
		}
	}
}

func TestDoctor_CheckWarnsWhereOtherRequestsHaveNoRoute(t *testing.T) {
	for match, warns := range map[string]bool{"POST /orders": true, "GET /": true, "/": false, "/{rest...}": false} {
		c, err := config.Parse("config.toml", []byte("upstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\n"+
			"name = \"some\"\nmatch = \""+match+"\"\ngate = \"limit\"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := examined(c); strings.Contains(got, "404 no_route") != warns {
			t.Errorf("%q: %q", match, got)
		}
	}
}
