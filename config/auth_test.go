package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAuth_KeysAreReadFromTheConfigurationsFolderAndHidden(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"jwt.key": "line 1\nline 2\n", "token.key": "0123456789abcdef\n",
		"short.key": "short\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(token string) (*Config, error) {
		text := "[auth]\njwt_algorithm = \"RS256\"\njwt_key_file = \"jwt.key\"\norder_token_key_file = \"" + token + "\"\n"
		return Parse(filepath.Join(folder, "config.toml"), []byte(whole(text)), environment)
	}
	c, err := parse("token.key")
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Auth.JWTKey) != "line 1\nline 2\n" || string(c.Auth.OrderTokenKey) != "0123456789abcdef" {
		t.Errorf("keys %q and %q", string(c.Auth.JWTKey), string(c.Auth.OrderTokenKey))
	}
	if !slices.Contains(c.Files(), filepath.Join(folder, "jwt.key")) || !slices.Contains(c.Files(),
		filepath.Join(folder, "token.key")) {
		t.Errorf("the keys are not looked at for changes: %q", c.Files())
	}
	if _, err := parse("short.key"); err == nil || !strings.Contains(err.Error(), ":4: auth.order_token_key_file: ") ||
		!strings.Contains(err.Error(), "fewer than 16 bytes") {
		t.Errorf("a short key: %v", err)
	}
}

func TestAuth_EveryPlaceOfAVariableNeedsItsKey(t *testing.T) {
	_, err := Parse("config.toml", []byte(`upstream.targets = ["http://shop"]
limits.concurrency.priority = "$jwt_level=vip"
[[limits.rate]]
name = "a"
key = "$jwt_org"
rate = "1/s"
burst = 1
[[limits.in_flight]]
name = "b"
key = "$signed_org"
max = 1
[[room]]
name = "rush"
bypass = ["10.0.0.0/8", "$jwt_level=vip", "$signed_vip=1"]
[[route]]
name = "order"
match = "POST /order"
gate = "reserve"
sku = "$jwt_sku"
user = "$signed_uid"
quantity = "$jwt_quantity"
require = ["$jwt_level>2"]
`), environment)
	if err == nil {
		t.Fatal("no key is missed")
	}
	for _, key := range []string{"limits.concurrency.priority", "limits.rate[1].key", "limits.in_flight[1].key",
		"room[1].bypass[2]", "room[1].bypass[3]", "route[1].sku", "route[1].user", "route[1].quantity",
		"route[1].require[1]"} {
		if !strings.Contains(err.Error(), ": "+key+": $") {
			t.Errorf("%s may have a variable whose key is not configured:\n%v", key, err)
		}
	}
}
