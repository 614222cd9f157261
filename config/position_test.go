package config

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPosition_MistakesInRepeatedTablesAreNamedByTheirOwnLines(t *testing.T) {
	text := `[upstream]
targets = ["http://127.0.0.1:9000"]

[[route]]
name = "first"
match = "/a"
gaet = "pass"

[[route]]
name = "second"
match = "/b"
gate = 7

[[limits.rate]]
name = "per-ip"
rate = "20"

[[route]]
name = "third"
match = "/c"
gate = "pass"
quantty = "2"
`
	_, err := Parse("config.toml", []byte(text), nil)
	want := `config.toml:7: route[1].gaet: unknown key; did you mean "gate"?
config.toml:12: route[2].gate: wants a string, not a whole number; write "7"
config.toml:16: limits.rate[1].rate: "20" has no unit; write "20/s" or "20/m"
config.toml:22: route[3].quantty: unknown key; did you mean "quantity"?`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}
