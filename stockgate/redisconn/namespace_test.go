package redisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A key is of one name and one SKU, or of one name and one part.
func TestName_NoTwoNamesOrSKUsHaveAKeyInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) Name {
			return Name(rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,5}`).Draw(t,
				"name"))
		})
		sku, part := rapid.StringMatching(`[^{}]{1,6}`), rapid.StringMatching(`[a-z]{1,2}`)
		type place struct {
			of        Name
			sku, part string
		}
		draw := func() place { return place{name.Draw(t, "of"), sku.Draw(t, "sku"), part.Draw(t, "part")} }
		a, b := draw(), draw()
		if x, y := a.of.SKUKey(a.sku, a.part), b.of.SKUKey(b.sku, b.part); (x == y) != (a == b) {
			t.Fatalf("%+v and %+v: %q and %q", a, b, x, y)
		}
		for _, key := range []string{b.of.Key(b.part), b.of.Key(b.part + ":" + b.sku), b.of.Tagged(b.part, b.sku, b.part)} {
			if a.of.SKUKey(a.sku, a.part) == key {
				t.Fatalf("%+v: %q is a key of %+v too", a, key, b)
			}
		}
	})
}

func TestName_AColonOrABraceIsInNone(t *testing.T) {
	for name, want := range map[Name]bool{"shop": true, "shop-7f3a.eu_1": true, "": false, "a:b": false, "a{": false,
		"a}": false} {
		if name.Valid() != want {
			t.Errorf("%q: valid is %v", name, !want)
		}
	}
}

// link is a client of server that a claim guards.
func link(t *testing.T, server *redistest.Server, c Claim) *Client {
	t.Helper()
	l, err := New(Options{Addresses: []string{server.Addr}, PoolSize: 2, Guard: c.Guard(),
		ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second, BreakerErrors: Unbroken,
		BreakerPause: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// writes is a write of a client.
func writes(t *testing.T, l *Client) error {
	return l.Do(t.Context(), func(ctx context.Context, r Commands) error { return r.Incr(ctx, "writes").Err() }, nil)
}

func TestClaim_IsOfTheFirstSecret(t *testing.T) {
	server := redistest.Start(t)
	write := func(name Name, secret string, looks bool) error {
		return writes(t, link(t, server, Claim{Name: name, Secret: []byte(secret), Looks: looks}))
	}
	for i, c := range []struct {
		name   Name
		secret string
		looks  bool
		held   bool
	}{
		{"shop", "of a visitor", true, true}, // who claims nothing
		{"shop", "", false, true},            // nor does a gateway without a secret
		{"shop", "first", false, true},
		{"shop", "first", false, true}, // another instance
		{"shop", "other", false, false},
		{"shop", "other", true, false},
		{"shop", "", false, false}, // the name has a secret now
		{"shop-2", "other", false, true},
	} {
		if err := write(c.name, c.secret, c.looks); (err == nil) != c.held || err != nil && !errors.Is(err, ErrClaimed) {
			t.Errorf("%d: %+v: %v", i, c, err)
		}
	}
	if n := server.Client.Get(t.Context(), "writes").Val(); n != "5" {
		t.Errorf("%s writes, want those of clients that hold the name", n)
	}
	server.Client.Del(t.Context(), Name("shop").ClaimKey()) // as an operator does who has changed the secret
	if err := write("shop", "other", false); err != nil {
		t.Error(err)
	}
	if err := write("shop", "first", false); err == nil {
		t.Error("the secret from before the change holds the name still")
	}
	if text := server.Client.Get(t.Context(), "sluice:shop:claim").Val(); len(text) != 32 {
		t.Errorf("the claim is %q, want a fingerprint of 32 digits", text)
	}
}

// What began while Redis was away, and what has run for long, writes nothing under a name that is another shop's now.
func TestClaim_IsLookedAtWheneverAConnectionIsOpened(t *testing.T) {
	server := redistest.Start(t)
	looks := func(secret string) *Client {
		return link(t, server, Claim{Name: "shop", Secret: []byte(secret), Looks: true})
	}
	server.Kill()
	early := looks("mine")
	if err := writes(t, early); err == nil || errors.Is(err, ErrClaimed) {
		t.Errorf("Redis is away: %v", err)
	}
	server.Restart()
	unclaimed, secretless := looks("mine"), looks("")
	for _, l := range []*Client{early, unclaimed, secretless} {
		testkit.Eventually(t, "it writes under a free name", func() bool { return writes(t, l) == nil })
	}
	before := ""
	claim := func() { server.Client.Set(t.Context(), "sluice:shop:claim", "of another", 0) }
	claim()
	for _, l := range []*Client{early, unclaimed} { // which look until their own shop has claimed the name
		testkit.Eventually(t, "a client hears of the claim", func() bool {
			err := writes(t, l)
			before = server.Client.Get(t.Context(), "writes").Val()
			return errors.Is(err, ErrClaimed) && Unsent(err)
		})
	}
	server.Kill()
	server.Restart()
	claim()
	testkit.Eventually(t, "a client without a secret hears of the claim", func() bool {
		return errors.Is(writes(t, secretless), ErrClaimed)
	})
	if after := server.Client.Get(t.Context(), "writes").Val(); before == "" || after != "" {
		t.Errorf("%q writes, and %q after the claim", before, after)
	}
}

// A name that is free costs a client that only looks one call a second.
func TestClaim_FreeNameIsLookedAtOnceASecond(t *testing.T) {
	server, now := redistest.Start(t), time.Now()
	g := Claim{Name: "shop", Secret: []byte("mine"), Looks: true}.guard(func() time.Time { return now })
	looks := func() error {
		t.Helper()
		verdict, lasts, err := g.Check(t.Context(), server.Client)
		if lasts || err != nil {
			t.Fatalf("%v, lasts %v", err, lasts)
		}
		return verdict
	}
	if err := looks(); err != nil {
		t.Error(err)
	}
	server.Client.Set(t.Context(), "sluice:shop:claim", "of another", 0)
	if now = now.Add(time.Second - 1); looks() != nil {
		t.Error("Redis is asked within a second")
	}
	if now = now.Add(1); !errors.Is(looks(), ErrClaimed) {
		t.Error("the claim is not seen a second later")
	}
}
