package namespace

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/redistest"
	"sluice/stockgate/redisconn"
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

func TestClaim_IsOfTheFirstSecret(t *testing.T) {
	server := redistest.Start(t)
	link, err := redisconn.New(redisconn.Options{Addresses: []string{server.Addr}, PoolSize: 2,
		ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second, BreakerErrors: redisconn.Unbroken,
		BreakerPause: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	hold := func(name Name, secret string, looks bool) error {
		c := Claim{Name: name, Link: link, Secret: []byte(secret), Looks: looks}
		return c.Hold(t.Context())
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
		{"shop-2", "other", false, true},
	} {
		if err := hold(c.name, c.secret, c.looks); (err == nil) != c.held || err != nil && !errors.Is(err, ErrClaimed) {
			t.Errorf("%d: %+v: %v", i, c, err)
		}
	}
	if n := server.Client.DBSize(t.Context()).Val(); n != 2 {
		t.Errorf("%d keys, want one for each name", n)
	}
	server.Client.Del(t.Context(), Name("shop").ClaimKey()) // as an operator does who has changed the secret
	if err := hold("shop", "other", false); err != nil {
		t.Error(err)
	}
	if err := hold("shop", "first", false); err == nil {
		t.Error("the secret from before the change holds the name still")
	}
	if text := server.Client.Get(t.Context(), "sluice:shop:claim").Val(); len(text) != 32 {
		t.Errorf("the claim is %q, want a fingerprint of 32 digits", text)
	}
}
