package gateway

import (
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/testkit"
	"sluice/proxy"
)

// wired is a gate that does not listen, as a file with these limits wants it.
func wired(t *testing.T, limits string) (*Gateway, *config.Config) {
	t.Helper()
	c := testkit.LimitConfig(t, limits)
	g := gatewayOf(t, c)
	return g, c
}

// What was admitted in a window before a reload counts in that window after it, by the new maxima.
func TestForget_ReloadForgetsNoWindow(t *testing.T) {
	g, c := wired(t, "limits.window.max_delay = \"0s\"\nlimits.window.max = 5\nlimits.window.max_per_sku = 3")
	full := time.Hour.Nanoseconds() // of the gate's clock; the window is full from here on
	take := func(c *config.Config, sku string) bool {
		ask, _ := g.limits.Prepare(c)
		_, ok := g.proxyOptions(&runtime{config: c}, ask).Windows.Acquire(full, []byte(sku))
		return ok
	}
	for i, want := range []bool{true, true, true, false} {
		if ok := take(c, "1001"); ok != want {
			t.Fatalf("request %d: admitted %v", i+1, ok)
		}
	}
	for _, limits := range []string{
		"limits.window.max_delay = \"0s\"\nlimits.window.max = 5\nlimits.window.max_per_sku = 3\nserver.max_body_size = " +
			"\"1KiB\"",
		"limits.window.max_delay = \"0s\"\nlimits.window.max = 4\nlimits.window.max_per_sku = 2",
	} {
		next := testkit.LimitConfig(t, limits)
		if err := g.Apply(next); err != nil {
			t.Fatal(err)
		}
		c = next
		if take(c, "1001") {
			t.Errorf("after a reload one more of the SKU is admitted in a window that was full:\n%s", limits)
		}
	}
	if !take(c, "1002") || take(c, "1003") {
		t.Error("want room for one more of all SKUs, of 4, and no further one")
	}
}

// The clock of every limit counts from the start of the gate. One that counts from 1970 jumps when the clock is set.
func TestForget_ClockOfTheLimitsCannotBeSet(t *testing.T) {
	before := time.Now()
	g, c := wired(t, "limits.window.max = 50")
	for name, clock := range map[string]func() int64{
		"the gate's":                  g.now,
		"the proxy's":                 g.proxy.Now,
		"the proxy's, after a reload": g.proxyOptions(&runtime{config: c}, proxy.Limiters{}).Now,
	} {
		first := clock()
		second := clock()
		if since := time.Since(before).Nanoseconds(); first < 0 || first > second || second > since {
			t.Errorf("%s clock says %d, then %d, within %d ns", name, first, second, since)
		}
	}
}
