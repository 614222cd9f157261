package config

import (
	"os"
	"testing"
)

func TestEnvironmentIsExpandedAndRequestVariablesAreNot(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"plain":                 "plain",
		":${PORT}":              ":8081",
		"${PORT}${PORT}":        "80818081",
		"${PORT:-1}":            "8081",
		"${NONE:-1}":            "1",
		"${NONE:-}":             "",
		"${NONE:-a:-b$c}":       "a:-b$c",
		"${EMPTY}":              "",
		"${EMPTY:-x}":           "x",
		"${MONEY}":              "$100 ${PORT}",
		"$remote_addr:$path_id": "$remote_addr:$path_id",
		"{$sku}":                "{$sku}",
		"$$":                    "$$",
		"$${PORT}":              "$${PORT}",
		"$$${PORT}":             "$$8081",
		"$":                     "$",
		"a$":                    "a$",
		"价 ${PORT}":             "价 8081",
	} {
		got, err := expand(text, environment)
		if err != nil || got != want {
			t.Errorf("expand(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${NONE}", "${", "${}", "${PORT", "${:-x}", "${A-B}", "${1A}", "${PORT:+x}"} {
		if got, err := expand(text, environment); err == nil {
			t.Errorf("expand(%q) = %q, want an error", text, got)
		}
	}
}

func TestEnvironmentIsNotLookedUpForComments(t *testing.T) {
	asked := ""
	_, err := Parse("config.toml", []byte(whole("# ${SECRET}\n[log]\nlevel = \"${LEVEL}\" # ${OTHER}")), func(name string) (string, bool) {
		asked += name + " "
		return map[string]string{"LEVEL": "info"}[name], name == "LEVEL"
	})
	if err != nil || asked != "REDIS_ADDR LEVEL " {
		t.Errorf("asked for %q, %v", asked, err)
	}
}

func TestAddressOfRedisComesFromTheEnvironmentByDefault(t *testing.T) {
	t.Setenv("REDIS_ADDR", "redis:6380")
	c, err := Parse("config.toml", []byte(whole("")), os.LookupEnv)
	if err != nil || c.Stock.Redis.Addresses[0] != "redis:6380" {
		t.Errorf("got %v, %v", c, err)
	}
}
