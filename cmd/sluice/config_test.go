package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/testkit"
)

func TestConfigPrint_WritesAFileThatLoadsAgain(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.toml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("00112233", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		if strings.HasSuffix(name, "_FILE") {
			return secret, true
		}
		if strings.Contains(name, "REDIS") {
			return "127.0.0.1:6379", true
		}
		return "http://127.0.0.1:9000", true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		printed := func(text string, changed bool) (string, []config.Setting) {
			c, err := config.Parse(file, []byte(text), env)
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
			var all []admin.Setting
			for _, s := range c.Settings() {
				all = append(all, admin.Setting{Setting: s})
			}
			var b strings.Builder
			printSettings(&b, all, false, changed)
			return b.String(), c.Settings()
		}
		values := func(all []config.Setting) map[string]any {
			m := make(map[string]any)
			for _, s := range all {
				m[s.Key] = s.Value
			}
			return m
		}
		for _, changed := range []bool{false, true} {
			first, want := printed(string(text), changed)
			again, got := printed(first, changed)
			if diff := cmp.Diff(values(want), values(got)); diff != "" || !changed && first != again {
				t.Errorf("%s: the printed file has other values:\n%s\n%s", file, diff, first)
			}
		}
	}
}

// What a running gateway tells of its sales, in JSON, is a file again, too.
func TestConfigPrint_SalesOfARunningGatewayLoadAgain(t *testing.T) {
	const text = `name = "shop"
upstream.targets = ["http://127.0.0.1:9000"]
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
[[sale]]
name = "night"
skus = ["1001"]
starts = 2099-11-11T00:00:00+08:00
ends = 2099-11-12T00:00:00+08:00
`
	c, err := config.Parse("config.toml", []byte(text), config.NoEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	var all []admin.Setting
	for _, s := range c.Settings() {
		all = append(all, admin.Setting{Setting: s})
	}
	wire, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	all = nil
	if err := json.Unmarshal(wire, &all); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	printSettings(&b, all, false, false)
	again, err := config.Parse("config.toml", []byte(b.String()), config.NoEnvironment)
	if err != nil || !again.Sales[0].Starts.Equal(c.Sales[0].Starts) || !again.Sales[0].Ends.Equal(c.Sales[0].Ends) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestCheck_CleanFileHasNoEmptySection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	testkit.Check(t, os.WriteFile(path, []byte(`name = "shop"
server.trusted_proxies = ["10.0.0.0/8"]
upstream.targets = ["http://127.0.0.1:9000"]
stock.source = "off"
[[route]]
name = "all"
match = "/"
gate = "pass"
`), 0o600))
	want := path + ": the file is valid\n\nroutes, limits and memory: add -v\nRedis and the shop: --online\n"
	if out, err := command(t, "check", path); err != nil || out != want {
		t.Errorf("%v, %q; want %q", err, out, want)
	}
}
