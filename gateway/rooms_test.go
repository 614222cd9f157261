package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/sale"
)

// Redis' clock is behind, and there is no sale. A room's times are Redis': by this machine's clock, who is called has
// missed it at once.
func TestRooms_WithoutASaleTheyGoByRedisClock(t *testing.T) {
	t.Parallel()
	redis, turn := redistest.StartWithClock(t)
	turn(-8 * time.Second)
	key := filepath.Join(t.TempDir(), "room.key")
	testkit.Check(t, os.WriteFile(key, []byte("0123456789abcdef\n"), 0o600))
	parse := func(rooms string) *config.Config {
		return testkit.Must[*config.Config](t)(config.Parse("config.toml", []byte(`name = "shop"
			upstream.targets = ["http://127.0.0.1:1"]
			stock.source = "redis"
			stock.redis.addresses = ["`+redis.Addr+`"]
			auth.room_key_file = "`+key+`"
			`+rooms+`
			[[route]]
			name = "all"
			match = "/"
			gate = "limit"`), nil))
	}
	room := parse("[[room]]\nname = \"r\"\n")
	goesByRedis := func(g *Gateway) bool {
		apart := time.Until(g.schedule.Wall())
		_, wrong := g.schedule.Skew()
		return wrong && apart > -9*time.Second && apart < -7*time.Second
	}
	degraded := func(g *Gateway) (found bool) {
		for _, c := range g.Checks() {
			if _, health := c.Probe(); c.Name == "clock" && health == admin.Degraded {
				found = true
			}
		}
		return found
	}
	g := testkit.Must[*Gateway](t)(New(room, Options{}, slog.New(slog.DiscardHandler)))
	defer g.Close()
	if !goesByRedis(g) || !degraded(g) {
		t.Errorf("from the start on its clock is %v ahead, told: %v", time.Until(g.schedule.Wall()), degraded(g))
	}
	later := testkit.Must[*Gateway](t)(New(parse(""), Options{}, slog.New(slog.DiscardHandler)))
	defer later.Close()
	testkit.Check(t, later.Apply(room))
	if !goesByRedis(later) || !degraded(later) {
		t.Errorf("after a reload its clock is %v ahead, told: %v", time.Until(later.schedule.Wall()), degraded(later))
	}
}

// A reload renames a sale. Until the room of the former name has ended, its tick must not say that the sale has no
// hours.
func TestSaleFollower_SaleThatIsNotConfiguredAnyMoreIsAsItWas(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	one := sale.Sale{Name: "rush", SKUs: []string{"1001"}, Starts: now.Add(-time.Hour), Ends: now.Add(time.Hour)}
	schedule, err := sale.New(sale.Options{Now: func() int64 { return now.UnixNano() }}, []sale.Sale{one})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(schedule.Close)
	f := &saleFollower{roomSources: roomSources{Schedule: schedule}, name: "rush"}
	before := f.sale()
	one.Name = "renamed"
	schedule.Use([]sale.Sale{one}, false)
	if got := f.sale(); got != before || got.Starts != one.Starts.UnixMilli() || got.Ended {
		t.Errorf("%+v, was %+v", got, before)
	}
}
