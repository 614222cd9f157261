package doctor

import (
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/testkit"
)

func TestRooms_CheckWarnsOfARoomInWhichClientsInventUsers(t *testing.T) {
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

func TestRooms_CheckListsThem(t *testing.T) {
	c := testkit.LimitConfig(t, "")
	c.Rooms = []config.Room{{Name: "night", Sale: "n5", Order: "fifo", Opens: 30 * time.Minute,
		ClaimWithin: 90 * time.Second, Pass: 10 * time.Minute, Overshoot: 1.3}}
	want := "fifo, opens 30m0s before sale n5, claim within 1m30s, pass for 10m0s, overshoot 1.3"
	if said := examined(c); !strings.Contains(said, want) {
		t.Errorf("want %q in:\n%s", want, said)
	}
}

func TestRoutes_CheckWarnsOfAQuantityThatNothingCompares(t *testing.T) {
	c := testkit.LimitConfig(t, "")
	for gate, warns := range map[string]bool{"check": true, "reserve": false, "limit": false} {
		c.Routes[0].Gate, c.Routes[0].Quantity = gate, "$json_qty"
		if said := examined(c); strings.Contains(said, "does not compare the quantity") != warns {
			t.Errorf("%s:\n%s", gate, said)
		}
	}
}

func TestCheck_MemoryHasTheWaitingRooms(t *testing.T) {
	for want, parked := range map[string][]int{
		" + tables 16) + 48;":             nil,
		" + tables 16 + rooms 81) + 48;":  {10_240}, // 18 + 50 + 50,000 × 256 B
		" + tables 16 + rooms 149) + 48;": {10_240, 10_240},
		" + tables 16 + rooms 275) + 48;": {1_000_000}, // one for each connection at most
	} {
		c := testkit.LimitConfig(t, "")
		for _, n := range parked {
			c.Rooms = append(c.Rooms, config.Room{Name: "rush", MaxParked: n})
		}
		if said := examined(c); !strings.Contains(said, want) {
			t.Errorf("%v\nwant %q in:\n%s", parked, want, said)
		}
	}
}
