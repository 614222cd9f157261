package config

import (
	"os"
	"testing"
)

func TestEnv_EnvironmentIsNotLookedUpForComments(t *testing.T) {
	asked := ""
	_, err := Parse("config.toml", []byte(whole("# ${SECRET}\n[log]\nlevel = \"${LEVEL}\" # ${OTHER}")),
		func(name string) (string, bool) {
			asked += name + " "
			return map[string]string{"LEVEL": "info"}[name], name == "LEVEL"
		})
	if err != nil || asked != "REDIS_ADDR LEVEL " {
		t.Errorf("asked for %q, %v", asked, err)
	}
}

func TestEnv_AddressOfRedisComesFromTheEnvironmentByDefault(t *testing.T) {
	t.Setenv("REDIS_ADDR", "redis:6380")
	c, err := Parse("config.toml", []byte(whole("")), os.LookupEnv)
	if err != nil || c.Stock.Redis.Addresses[0] != "redis:6380" {
		t.Errorf("got %v, %v", c, err)
	}
}
