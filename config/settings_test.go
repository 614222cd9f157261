package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const adjustable = `[upstream]
targets = ["http://shop:9000"]
[limits.window]
max = 100
[[limits.rate]]
name = "per_ip"
rate = "20/s"
burst = 40
[[route]]
name = "order"
match = "/"
gate = "limit"
[stock.reserve]
status_url = "http://root:hush@shop/orders/{serial}?key=hush"
`

func adjusted(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("config.toml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfig_SettingsTellWhereEachValueIsFromAndNoSecret(t *testing.T) {
	c := adjusted(t, adjustable)
	found := map[string]Setting{}
	for _, s := range c.Settings() {
		found[s.Key] = s
	}
	for key, want := range map[string]Setting{
		"limits.window.max":        {Value: 100, Origin: "config.toml:4"},
		"limits.window.size":       {Value: "10ms", Origin: "default"},
		"limits.rate[1].rate":      {Value: "20/s", Origin: "config.toml:7"},
		"limits.rate[1].max_keys":  {Value: 1_000_000, Origin: "default"},
		"server.max_body_size":     {Value: "256KiB", Origin: "default"},
		"mode":                     {Value: "enforce", Origin: "default"},
		"stock.reserve.status_url": {Value: "http://(secret)@shop/orders/{serial}?(secret)", Origin: "config.toml:14"},
	} {
		want.Key = key
		if diff := cmp.Diff(want, found[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	text, err := json.Marshal(c.Settings())
	if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "root") {
		t.Errorf("%v: a secret is shown: %s", err, text)
	}
}

func TestConfig_WithChangesOneValueAndNothingElse(t *testing.T) {
	c := adjusted(t, adjustable)
	next, err := c.With(map[string]any{"limits.window.max": 50.0, "limits.rate[per_ip].rate": "600/m",
		"route[order].max_in_flight": 3.0, "mode": "observe", "limits.concurrency.queue_timeout": "1s"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{"mode", "enforce", "observe"}, {"limits.window.max", 100, 50}, {"limits.concurrency.queue_timeout", "200ms", "1s"},
		{"limits.rate[1].rate", "20/s", "10/s"}, {"route[1].max_in_flight", 0, 3},
	}
	if diff := cmp.Diff(want, Changes(c, next)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if c.Limits.Window.Max != 100 || c.Limits.Rates[0].Rate != 20 || c.Routes[0].MaxInFlight != 0 {
		t.Error("the original has changed too")
	}
}

func TestConfig_WithRejectsWhatAFileMayNotSay(t *testing.T) {
	c := adjusted(t, adjustable)
	for key, one := range map[string]struct {
		value any
		says  string
	}{
		"limits.window.max":           {10.0, "config.toml:4: limits.window.max: 10 is below limits.window.max_per_sku (20)"},
		"limits.window.maxx":          {10.0, "is no key"},
		"limits.window":               {10.0, "has no single value"},
		"limits.rate[nobody].burst":   {10.0, `no [[rate]] is called "nobody"`},
		"limits.rate[per_ip].rate":    {10.0, "has no unit"},
		"limits.window.max_per_sku":   {1.5, "wants a whole number"},
		"limits.observe_only[window]": {"yes", "wants true or false"},
		"limits.observe_only[none]":   {true, `limits.observe_only[1]: "none" is not known; write "connection", "window"`},
		"limits.rate[per_ip":          {1.0, "has no single value"},
		"":                            {1.0, "has no single value"},
		"limits.rate[per_ip].name.x":  {1.0, "is no key"},
		"limits.window.max[1]":        {1.0, "no [[max]]"},
	} {
		_, err := c.With(map[string]any{key: one.value})
		if err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%q = %v: %v; want %q", key, one.value, err, one.says)
		}
	}
}

func TestConfig_OverrideCanBeCopiedAsTOML(t *testing.T) {
	for key, one := range map[string]struct {
		value any
		want  string
	}{
		"mode":                        {"observe", "mode = \"observe\"\n"},
		"limits.window.max":           {50.0, "[limits.window]\nmax = 50\n"},
		"limits.rate[per.ip].rate":    {"20/s", "# in the [[limits.rate]] with name = \"per.ip\":\nrate = \"20/s\"\n"},
		"limits.observe_only[window]": {true, "# beside the names that are there:\n[limits]\nobserve_only = [\"window\"]\n"},
		"limits.observe_only[per-ip]": {false, "# in [limits], remove \"per-ip\" from observe_only\n"},
	} {
		if got := InTOML(key, one.value); got != one.want {
			t.Errorf("%s: %q, want %q", key, got, one.want)
		}
	}
}

// Whatever is named as a key, a configuration stays as it is, and what comes out is valid.
func FuzzWithKeepsTheOriginal(f *testing.F) {
	for _, key := range []string{"limits.window.max", "limits.rate[per_ip].burst", "[", "route[", "a.b[c].d",
		"route[order]x"} {
		f.Add(key, 7.0)
	}
	f.Fuzz(func(t *testing.T, key string, value float64) {
		c := adjusted(t, adjustable)
		next, err := c.With(map[string]any{key: value})
		if diff := Changes(adjusted(t, adjustable), c); len(diff) > 0 {
			t.Errorf("the original has changed: %v", diff)
		}
		if err == nil && len(Changes(c, next)) > 1 {
			t.Errorf("%q changed %v", key, Changes(c, next))
		}
	})
}

// What is wrong by a password, or holds one and is wrong by something else, is told of without it: a reload puts it
// into the log, on record, and before everybody who may look.
func TestConfig_MistakeDoesNotTellAPassword(t *testing.T) {
	for _, lines := range []string{
		"[stock.redis]\naddresses = [\"redis://u:PLANTED@127.0.0.1:6379\"]",
		"[stock.redis]\naddresses = [\"redis://:PLANT/ED@PLANTED@127.0.0.1:6379\"]",
		"[stock.redis]\naddresses = [\"u:PLANTED@127.0.0.1:6379\"]",
		"[traces]\nendpoint = \"ftp://u:PLANTED@127.0.0.1:4318\"",
		"[traces]\nendpoint = \"ftp://127.0.0.1:4318/?key=PLANTED\"",
		"[traces]\nendpoint = \"http://u:PLANTED%zz@127.0.0.1:4318\"",
	} {
		_, err := Parse("config.toml", []byte(whole(lines)), nil)
		if err == nil || strings.Contains(err.Error(), "PLANTED") || !strings.Contains(err.Error(), "(secret)") {
			t.Errorf("%s\n%v", lines, err)
		}
	}
	for _, target := range []string{"http://u:PLANTED@127.0.0.1:9", "http://127.0.0.1:9/?key=PLANTED",
		"http://u:PLANTED @127.0.0.1:9"} {
		_, err := Parse("config.toml", []byte("[server]\nlisten = [\"127.0.0.1:0\"]\n[upstream]\ntargets = "+
			"[\""+target+"\"]\n"), nil)
		if err == nil || strings.Contains(err.Error(), "PLANTED") {
			t.Errorf("%s\n%v", target, err)
		}
	}
}

func TestRateOverrides_BurstTakesAsLongToEarn(t *testing.T) {
	r := Rate{Rate: 20, Burst: 40, Overrides: map[string]string{"vip": "100/s", "slow": "1/m", "free": "off"}}
	want := []RateOverride{{Pattern: "free"}, {"slow", PerSecond(1.0 / 60), 1}, {"vip", 100, 200}}
	if diff := cmp.Diff(want, r.RateOverrides()); diff != "" {
		t.Error(diff)
	}
}

// Instances of one shop have one fingerprint, on whatever machine they run: but not with other values in what the file
// takes from the environment.
func TestConfig_FingerprintIsOfWhatInstancesHaveInCommon(t *testing.T) {
	of := func(text, target string) string {
		c, err := Parse("config.toml", []byte(text), func(name string) (string, bool) {
			return map[string]string{"SHOP": target}[name], name == "SHOP"
		})
		if err != nil {
			t.Fatal(err)
		}
		return c.Version()
	}
	text := strings.Replace(adjustable, "http://shop:9000", "${SHOP}", 1)
	usual := of(text, "http://shop:9000")
	for name, same := range map[string]string{
		"a listener": "server.listen = [\"127.0.0.1:9999\"]\n", "a folder": "server.state_dir = \"/var/lib/other\"\n",
		"a comment": "# of this machine\n",
	} {
		if got := of(same+text, "http://shop:9000"); got != usual {
			t.Errorf("%s makes %s of %s", name, got, usual)
		}
	}
	if of(text, "http://shop:9001") == usual {
		t.Error("another upstream in the environment has the same fingerprint")
	}
	if of(strings.Replace(text, "burst = 40", "burst = 41", 1), "http://shop:9000") == usual {
		t.Error("another burst has the same fingerprint")
	}
}
