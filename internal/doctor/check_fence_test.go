package doctor

import (
	"strings"
	"testing"
	"time"

	"sluice/config"
)

func TestCheckFence_HoldThatAnOrderCanOutlastIsNoFence(t *testing.T) {
	for hold, warned := range map[time.Duration]bool{10 * time.Second: true, 11 * time.Second: false} {
		c := config.Default()
		c.Stock.Reserve.OnNotFound, c.Stock.Reserve.ReservationTTL, c.Upstream.Timeout = "release_after_ttl", hold,
			10*time.Second
		said := examined(c, (*Report).checkReserve)
		if got := strings.Contains(said, `on_not_found is "release_after_ttl", but`); got != warned {
			t.Errorf("hold %v: warned: %v\n%s", hold, got, said)
		}
	}
}

func TestCheckReserve_WarnsOfForgedUsersAndOfObserving(t *testing.T) {
	for user, forged := range map[string]bool{"$cookie_uid": true, "$json_user": true, "$jwt_sub": false,
		"$signed_uid": false} {
		c := config.Default()
		c.Routes = []config.Route{{Name: "order", Gate: "reserve", User: user}}
		c.Mode = "observe"
		said := examined(c, (*Report).checkReserve)
		if got := strings.Contains(said, "a client can write any "+user); got != forged {
			t.Errorf("user %s: warned: %v\n%s", user, got, said)
		}
		if !strings.Contains(said, "forwarded to the shop without a reservation") {
			t.Errorf("observe: no warning\n%s", said)
		}
	}
}

func TestCheckRoutes_WarnOfAConstantSKU(t *testing.T) {
	for sku, constant := range map[string]bool{"sku": true, "1001": true, "$path_sku": false, "": false} {
		c := config.Default()
		c.Routes = []config.Route{{Name: "order", Gate: "check", SKU: sku}}
		if got := strings.Contains(examined(c, (*Report).listRoutes), "the same for every request"); got != constant {
			t.Errorf("sku %q: warned: %v", sku, got)
		}
	}
}

func TestCheckQueue_WarnsWhereAnOrderMayBeForgottenOrStuck(t *testing.T) {
	const promise, again = "a 202 is no promise", "is never sent again"
	for what, c := range map[string]struct {
		change     func(*config.Config)
		want, none string
	}{
		"no replicas": {func(c *config.Config) {}, promise, "gone with this process"},
		"replicas":    {func(c *config.Config) { c.Stock.Redis.WaitReplicas = 1 }, "at most 32 at once", promise},
		"memory":      {func(c *config.Config) { c.Stock.Source = "memory" }, "gone with this process", promise},
		"no fence":    {func(c *config.Config) { c.Stock.Reserve.OnNotFound = "keep" }, again, "by_status"},
		"fence":       {func(c *config.Config) {}, "at most 32 at once", again},
		"by key": {func(c *config.Config) { c.Stock.Reserve.StatusURL, c.Queue.Redeliver = "", "by_key" },
			"at most 32 at once", again},
		"direct": {func(c *config.Config) { c.Routes[0].Delivery = "direct" }, "a person buys", promise},
	} {
		t.Run(what, func(t *testing.T) {
			f := config.Default()
			f.Routes = []config.Route{{Name: "order", Gate: "reserve", User: "$jwt_sub", Delivery: "queue"}}
			f.Stock.Source, f.Stock.Reserve.StatusURL = "redis", "http://shop/{serial}"
			f.Stock.Reserve.OnNotFound = "release_after_deadline"
			c.change(f)
			said := examined(f, (*Report).checkReserve)
			if !strings.Contains(said, c.want) || strings.Contains(said, c.none) {
				t.Errorf("want %q and not %q:\n%s", c.want, c.none, said)
			}
		})
	}
}
