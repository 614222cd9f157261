package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("config.toml", []byte(whole(text)), environment)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfig_RoutesKeepTheOrderOfTheFile(t *testing.T) {
	c := parse(t, `[[route]]
name = "z"
match = "/z"
gate = "check"
sku = "$path_sku"
[[route]]
name = "a"
match = "/"
gate = "pass"`)
	want := []Route{
		{Name: "z", Match: "/z", Gate: "check", SKU: "$path_sku", Quantity: "1", Sources: "all", SKUForm: "text",
			Delivery: "direct", Require: []string{}},
		{Name: "a", Match: "/", Gate: "pass", Quantity: "1", Sources: "all", SKUForm: "text",
			Delivery: "direct", Require: []string{}},
	}
	if !reflect.DeepEqual(c.Routes, want) {
		t.Errorf("got %v, want %v", c.Routes, want)
	}
}

func TestConfig_ValuesOfTheFileReplaceTheDefaults(t *testing.T) {
	c := parse(t, `mode = "observe"
[server]
listen = ["127.0.0.1:0", "unix:/run/s.sock"]
read_timeout = "1m30s"
max_body_size = "1.5MiB"
[limits.connection]
request_rate = "600/m"
[upstream]
targets = ["unix:/run/shop.sock", "https://[::1]:9443/"]
pass_host = false
[responses.classes.sold_out]
code = -1
redirect = "https://shop.example/over"`)
	got := []any{c.Mode, c.Server.Listen[1], c.Server.ReadTimeout, c.Server.MaxBodySize, c.Limits.Connection.RequestRate,
		c.Upstream.PassHost, c.Responses.Classes.SoldOut.Code, c.Responses.Classes.SoldOut.Status,
		c.Server.IdleTimeout}
	want := []any{"observe", "unix:/run/s.sock", 90 * time.Second, Size(1572864), PerSecond(10),
		false, -1, 409, 75 * time.Second}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
}

func TestNetworks_PrivateMeansAddressesThatTheInternetDoesNotHave(t *testing.T) {
	c := parse(t, "[server]\ntrusted_proxies = [\"203.0.113.0/24\", \"private\"]")
	inside := func(text string) bool {
		return slices.ContainsFunc(c.Server.Trusted(),
			func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(text)) })
	}
	for _, address := range []string{"203.0.113.9", "10.1.2.3", "172.31.0.1", "192.168.1.1", "127.0.0.1", "::1",
		"fd00::1"} {
		if !inside(address) {
			t.Errorf("%s is not trusted", address)
		}
	}
	for _, address := range []string{"203.0.114.1", "172.32.0.1", "11.0.0.1", "100.64.0.1", "2001:db8::1", "fe80::1"} {
		if inside(address) {
			t.Errorf("%s is trusted", address)
		}
	}
}

func TestConfig_MissingFileSaysHowToGetOne(t *testing.T) {
	_, err := Load("testdata/none.toml", nil)
	want := `testdata/none.toml: no such file; write one with "sluice init", or name another file`
	if fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Load("testdata", nil)
	if fmt.Sprint(err) != "testdata: read: is a directory; write the path of a file that sluice may read" {
		t.Errorf("got %v", err)
	}
}

func TestConfig_FileLargerThanItsBoundIsRejected(t *testing.T) {
	if _, err := Parse("config.toml", make([]byte, maxText+1), nil); err == nil {
		t.Error("accepted")
	}
}

func TestConfig_SecretIsReadFromBesideTheFileAndNeverPrinted(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("redis.txt", "pa$$ word\r\n")
	token := write("token.txt", "hush-hush-hush-hush")
	path := write("config.toml", whole("[stock.redis]\npassword_file = \"redis.txt\"\n[admin]\nlisten = "+
		"\":8090\"\ntoken_file = \""+token+"\""))
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Stock.Redis.Password) != "pa$$ word" || string(c.Admin.Token) != "hush-hush-hush-hush" {
		t.Errorf("password %q, token %q", string(c.Stock.Redis.Password), string(c.Admin.Token))
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprintf("%v %+v %#v", *c, *c, *c), string(encoded)} {
		if strings.Contains(printed, "pa$$") || strings.Contains(printed, "hush") {
			t.Errorf("a secret is printed: %s", printed)
		}
	}
}

func TestConfig_CertificateIsFoundFromBesideTheFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "config.toml")
	if err := os.WriteFile(path, []byte(whole("[server.tls]\ncert_file = \"tls.crt\"\nkey_file = \"/run/tls.key\"")),
		0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if pair := *c.Server.TLS; pair.CertFile != filepath.Join(folder, "tls.crt") || pair.KeyFile != "/run/tls.key" {
		t.Errorf("found at %q and %q", pair.CertFile, pair.KeyFile)
	}
}

func TestConfig_SecretLargerThanItsBoundIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(path, make([]byte, 4<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Parse("config.toml", []byte(whole("[admin]\ntoken_file = \""+path+"\"")), nil)
	want := "config.toml:2: admin.token_file: " + path + " is larger than 4KiB; write the value alone into it"
	if fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestConfig_PlaceOfAKeyIsItsLineOrThatOfTheTableAroundIt(t *testing.T) {
	c := parse(t, "[[route]]\nname = \"a\"\nmatch = \"/\"\ngate = \"pass\"\n[[route]]\nname = \"b\"\nmatch = "+
		"\"/b\"\ngate = \"pass\"")
	for key, want := range map[string]string{
		"route[2].match": "config.toml:7", "route[1].sku": "config.toml:1", "route[2]": "config.toml:5",
		"log.level": "config.toml", "": "config.toml",
	} {
		if got := c.At(key); got != want {
			t.Errorf("At(%q) = %q, want %q", key, got, want)
		}
	}
	err := c.Errorf("route[2].match", "%q: no method %s", "/b", "FETCH")
	if want := `config.toml:7: route[2].match: "/b": no method FETCH`; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestConfig_DefaultsAreNotShared(t *testing.T) {
	Default().Server.Listen[0] = "changed"
	if got := Default().Server.Listen[0]; got != ":8080" {
		t.Errorf("got %q", got)
	}
}

func TestConfig_AdminNeedsNoTokenWhereOnlyThisMachineReachesIt(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:8090", "127.9.9.9:1", "[::1]:8090", "localhost:8090",
		"unix:/run/admin.sock"} {
		parse(t, "[admin]\nlisten = \""+address+"\"")
	}
}

func TestConfig_FreePortsOfTheKernelAreNeverTheSame(t *testing.T) {
	parse(t, "[server]\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\n[ops]\nlisten = \"127.0.0.1:0\"")
}

func TestConfig_RulesOfOthersAreReportedWithTheRest(t *testing.T) {
	text := "upstream.targets = [\"http://a\"]\n[[route]]\nname = \"x\"\nmatch = \"wrong\"\ngate = " +
		"\"pass\"\n[limits.window]\nmax_delay = \"99s\"\n"
	_, err := Parse("f", []byte(text), nil, func(c *Config) []error {
		return []error{c.Errorf("route[1].match",
			"is wrong")}
	})
	want := "f:4: route[1].match: is wrong\nf:7: limits.window.max_delay: 1m39s must be from 0s to 630ms"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestConfig_MistakesOfAllStagesAreNamedTogether(t *testing.T) {
	text := `upstream.targets = ["http://127.0.0.1:9000"]
[[route]]
name = "a"
match = "/a"
gate = "check"
[[route]]
name = "b"
macth = "/b"
gate = "pass"
[[route]]
name = "c"
match = "/"
gate = "passs"
[limits.window]
max_delay = "99s"
`
	_, err := Parse("f", []byte(text), nil)
	want := `f:2: route[1].sku: is missing: gate "check" must know what is bought; write where it is found, like ` +
		`"$path_sku"
f:8: route[2].macth: unknown key; did you mean "match"?
f:13: route[3].gate: "passs" is not known; write "pass", "limit", "check" or "reserve"
f:15: limits.window.max_delay: 1m39s must be from 0s to 630ms`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestListen_IsOneAddressOrAList(t *testing.T) {
	c, err := Parse("config.toml", []byte(whole("server.listen = \":80\"\nadmin.listen = [\"127.0.0.1:81\"]\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Server.Listen) != 1 || c.Server.Listen[0] != ":80" || c.Admin.Listen != "127.0.0.1:81" {
		t.Errorf("server %q, admin %q", c.Server.Listen, c.Admin.Listen)
	}
	if _, err := Parse("config.toml", []byte(whole("ops.listen = [\":80\", \":81\"]\n")), nil); err == nil {
		t.Error("two addresses of ops.listen are accepted")
	}
}
