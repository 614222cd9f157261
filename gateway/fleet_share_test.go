package gateway

import (
	"log/slog"
	"testing"

	"sluice/admin"
	"sluice/config"
	"sluice/limiter"
)

// divided is a configuration with three places in a window, 100 slots and a rate, of so many instances; 0 = as many as
// are counted.
func divided(t *testing.T, scope, instances string) *config.Config {
	t.Helper()
	text := "name = \"shop\"\n" +
		"upstream.targets = [\"http://127.0.0.1:1\"]\nstock.source = \"off\"\nstock.redis.addresses = [\"127.0.0.1:1\"]\n" +
		"fleet.instances = " + instances + "\n[limits.window]\nsize = \"1s\"\nmax = 3\nmax_per_sku = 0\n" +
		"max_delay = \"0s\"\nscope = \"" + scope + "\"\n[limits.concurrency]\nmax_in_flight = 100\nscope = \"" + scope +
		"\"\n[[limits.rate]]\nname = \"r\"\nkey = \"$remote_addr\"\nrate = \"1/s\"\nburst = 12\nscope = \"" + scope +
		"\"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n"
	c, err := config.Parse("test", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put has the limiters be those of c.
func (in *limiters) put(c *config.Config) {
	_, use := in.Prepare(c)
	use()
}

// admits is how many requests the windows let into one of them, how many slots there are, and what is left of a key.
func (in *limiters) admits(window int64) (requests, slots, tokens int) {
	for {
		if _, ok := in.windows.now.Load().Acquire(window*1e9, nil); !ok {
			break
		}
		requests++
	}
	tokens, _, _ = in.rates.Named("r").Peek(window*1e9, []byte("k"))
	return requests, in.concurrency.all.Max(), tokens
}

// An instance that is not counted yet admits nothing, but for one slot; one that has begun keeps what it has when the
// instances are to be counted from now on.
func TestLimiters_FleetIsDividedByTheInstances(t *testing.T) {
	in := newLimiters(divided(t, "fleet", "0"), func() int64 { return 0 }, slog.New(slog.DiscardHandler))
	defer in.Close()
	in.put(divided(t, "fleet", "0"))
	if _, health := in.CheckPart(); health == admin.Healthy {
		t.Error("it is ready, and the instances are not counted")
	}
	type part struct{ requests, slots, tokens int }
	for i, c := range []struct {
		scope, instances string
		counted          limiter.Share // is told behind the reload
		want             part
	}{
		{"fleet", "0", limiter.Share{}, part{0, 1, 0}},
		{"fleet", "0", limiter.Share{Rank: 2, Of: 3}, part{1, 33, 4}},
		{"fleet", "0", limiter.Share{Rank: 0, Of: 3}, part{1, 34, 4}},
		{"instance", "0", limiter.Share{}, part{3, 100, 12}},
		{"instance", "0", limiter.Share{Rank: 0, Of: 4}, part{3, 100, 12}},
		{"fleet", "3", limiter.Share{Rank: 0, Of: 4}, part{1, 33, 4}},
		{"fleet", "0", limiter.Share{Rank: 0, Of: 1}, part{3, 100, 12}},
	} {
		in.put(divided(t, c.scope, c.instances))
		if c.counted.Of > 0 {
			in.SetShare(c.counted)
		}
		var got part
		got.requests, got.slots, got.tokens = in.admits(int64(20 * (i + 1)))
		if got.slots == 34 && c.want.slots == 33 && c.instances == "3" { // the turn is random
			got.slots = 33
		}
		if got != c.want {
			t.Errorf("scope %q of %s, counted %+v: %+v, want %+v", c.scope, c.instances, c.counted, got, c.want)
		}
		if _, health := in.CheckPart(); (health == admin.Healthy) != (i > 0) {
			t.Errorf("%d: health %v", i, health)
		}
	}
}

// Scopes that become those of a fleet before it is counted change nothing until it is.
func TestLimiters_WhatWasInForceStaysUntilTheFleetIsCounted(t *testing.T) {
	in := newLimiters(divided(t, "instance", "0"), func() int64 { return 0 }, slog.New(slog.DiscardHandler))
	defer in.Close()
	in.put(divided(t, "instance", "0"))
	in.put(divided(t, "fleet", "0"))
	if requests, slots, tokens := in.admits(10); requests != 3 || slots != 100 || tokens != 12 {
		t.Errorf("%d, %d, %d, want the whole", requests, slots, tokens)
	}
	in.SetShare(limiter.Share{Rank: 1, Of: 2})
	if _, slots, tokens := in.admits(20); slots != 50 || tokens != 6 {
		t.Errorf("%d slots, %d tokens, want the halves", slots, tokens)
	}
}
