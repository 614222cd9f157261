package doctor

import (
	"strings"
	"testing"

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
		got := examined(c)
		c.Routes[0].User, c.Auth.JWTFrom = "$jwt_sub", "$http_authorization"
		header := examined(c)
		c.Auth.JWTFrom = "$cookie_token"
		const noHeader = "config.toml:7: a browser that follows a link sends no Authorization"
		if cookie := examined(c); !strings.Contains(header, noHeader) || strings.Contains(cookie, noHeader) {
			t.Errorf("a token in a header: %q; in a cookie: %q", header, cookie)
		}
		if strings.Contains(got, "config.toml:7: a client can write "+user) != warns {
			t.Errorf("%s: %q", user, got)
		} else if !strings.Contains(got, "fifo, always on; claim within 1m30s, at most 5 people a second") {
			t.Errorf("the room is not described: %q", got)
		}
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
