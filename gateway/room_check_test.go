package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/config"
)

const good = `upstream.targets = ["http://127.0.0.1:9"]
stock.source = "redis"
auth.room_key_file = "KEY"
[[sale]]
name = "rush"
skus = ["1"]
starts = 2026-11-11T00:00:00+08:00
ends = 2026-11-11T02:00:00+08:00
[[room]]
name = "rush"
sale = "rush"
[[route]]
name = "order"
match = "POST /{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
room = "rush"
`

func TestCheck_FindsWhatDoesNotFit(t *testing.T) {
	key := filepath.Join(t.TempDir(), "room.key")
	if err := os.WriteFile(key, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{`room_key_file = "KEY"`, `jwt_issuer = "x"`, "auth.room_key_file: is missing"},
		{`source = "redis"`, `source = "memory"`, "room[1]: instances share a room through Redis"},
		{`room = "rush"`, `room = "other"`, `route[1].room: "other" is no [[room]]`},
		{`room = "rush"`, ``, `room[1].name: no route has room = "rush"`},
		{`user = "$cookie_uid"`, ``, "route[1].room: is of a user"},
		{`sale = "rush"`, `sale = "other"`, `room[1].sale: "other" is no [[sale]]`},
		{`gate = "reserve"`, `gate = "limit"`, "room[1].sale: the room follows the units of stock ledgers"},
		{`sale = "rush"`, "sale = \"rush\"\nbypass = [\"10.0.0.0/8\"]", ""},
		{`sale = "rush"`, "sale = \"rush\"\nbypass = [\"10.0.0\"]", `room[1].bypass: "10.0.0" is neither a CIDR`},
		{`sale = "rush"`, "sale = \"rush\"\nbypass = [\"$cookie_vip=1\"]", `room[1].bypass: "$cookie_vip=1" is not proven`},
		{`sale = "rush"`, "sale = \"rush\"\norder = \"draw\"\nbeacon = true", ""},
		{`sale = "rush"`, "sale = \"rush\"\nbeacon_chain = \"00 1 1s\"", "room[1].beacon_chain: "},
		{`ends = 2026-11-11T02:00:00`, "ends = 2026-11-11T00:00:03", ""},
		{"ends = 2026-11-11T02:00:00+08:00\n[[room]]",
			"ends = 2026-11-11T00:00:02+08:00\n[[room]]\norder = \"draw\"\nbeacon = true",
			"room[1].beacon: round 33841013, the first one after the start of sale \"rush\", is " +
				"published at 2026-11-11T00:00:03+08:00"},
		{`sale = "rush"`, ``, "room[1].per_second: is 0, and without a sale"},
		{`sale = "rush"`, "order = \"draw\"\nper_second = 5",
			"room[1].order: \"draw\" is among those who came before a start"},
	} {
		text := strings.ReplaceAll(strings.Replace(good, c.old, c.new, 1), "KEY", key)
		loaded, err := config.Parse("config.toml", []byte("name = \"shop\"\n"+text), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.new, err)
		}
		var said []string
		for _, err := range checkRooms(loaded) {
			said = append(said, err.Error())
		}
		got := strings.Join(said, "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: %s\nwant %s", c.new, got, c.want)
		}
	}
}

func TestCheck_RoomKeyFileThatCannotBeReadIsReportedOnce(t *testing.T) {
	text := strings.Replace(good, "KEY", filepath.Join(t.TempDir(), "none"), 1)
	_, err := config.Parse("config.toml", []byte("name = \"shop\"\n"+text), nil, Validate)
	if err == nil || !strings.Contains(err.Error(), "no such file") ||
		strings.Count(err.Error(), "auth.room_key_file") != 1 {
		t.Errorf("%v; want one message, which names the cause", err)
	}
}
