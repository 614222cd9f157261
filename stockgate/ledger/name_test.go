package ledger

import (
	"errors"
	"slices"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// ofShop is a store of a shop on a server.
func ofShop(t *testing.T, server *redistest.Server, name redisconn.Name, secret string) *Store {
	o := optionsFor(server, 4)
	o.Name, o.Guard = name, redisconn.Claim{Name: name, Secret: []byte(secret)}.Guard()
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	return r
}

// Stores of two names have ledgers of their own for one SKU, hear of their own alone, and have no key in common.
func TestName_StoresOfTwoNamesShareNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	mine, yours := ofShop(t, server, "mine", "a secret of mine"), ofShop(t, server, "yours", "a secret of yours")
	heard := listen(t, yours)
	testkit.Eventually(t, "it listens", func() bool { return heard.begins() > 0 })
	for units, r := range []*Store{mine, yours} {
		testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, int64(5+units), 1))
		testkit.Must[[]byte](t)(r.Secret(t.Context()))
		testkit.Want(t, "mark", testkit.Must[int64](t)(r.Mark(t.Context())), 2)
		testkit.Check(t, r.NoteSettlement(t.Context(), "main", "{}"))
	}
	testkit.Must[Stock](t)(mine.SetTotal(t.Context(), "of mine alone", 5, 1))
	for _, c := range []struct {
		r     *Store
		skus  []string
		total int64
	}{{mine, []string{testSKU, "of mine alone"}, 5}, {yours, []string{testSKU}, 6}} {
		if skus := testkit.Must[[]string](t)(c.r.SKUs(t.Context(), 10)); !slices.Equal(skus, c.skus) {
			t.Errorf("%s knows %q, want %q", c.r.name, skus, c.skus)
		}
		testkit.Want(t, "total", stockIn(t, c.r).Total, c.total)
	}
	for total := range int64(2) {
		testkit.Must[Stock](t)(mine.SetTotal(t.Context(), "of mine alone", 9+total, 1))
		testkit.Must[Stock](t)(yours.SetTotal(t.Context(), testSKU, 9+total, 1))
	}
	testkit.Eventually(t, "its own news", func() bool { return len(heard.heard()) > 0 })
	for _, n := range heard.heard() {
		testkit.Want(t, "SKU in the news", n.sku, testSKU)
	}
	own := slices.Concat(KeysOf("mine", testSKU), KeysOf("mine", "of mine alone"), KeysOf("yours", testSKU),
		[]string{"sluice:mine:settlement", "sluice:yours:settlement"})
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		if !slices.Contains(own, key) {
			t.Errorf("%q is in the keys of neither", key)
		}
	}
}

// No call of a store reads or changes what is under a name that another secret has claimed.
func TestName_ClaimOfAnotherSecretLeavesTheLedgersAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first := ofShop(t, server, "shop", "the secret of the first")
	testkit.Must[Stock](t)(first.SetTotal(t.Context(), testSKU, 5, 1))
	other := ofShop(t, server, "shop", "the secret of another")
	_, total := other.SetTotal(t.Context(), testSKU, 9, 1)
	_, skus := other.SKUs(t.Context(), 10)
	_, _, read := other.ReadStock(t.Context(), testSKU)
	_, create := func() (any, error) {
		_, _, err := other.Create(t.Context(), "new", Opening{Total: 1})
		return nil, err
	}()
	for what, err := range map[string]error{"check": other.Check(t.Context()), "set": total, "list": skus, "read": read,
		"create": create, "find": other.FindAll(t.Context(), []OrderName{{SKU: testSKU,
			Serial: "s"}})[0].Err} {
		if !errors.Is(err, redisconn.ErrClaimed) || !redisconn.Unsent(err) {
			t.Errorf("%s: %v, want ErrClaimed and that nothing was sent", what, err)
		}
	}
	testkit.Want(t, "total", stockIn(t, first).Total, 5)
	testkit.Want(t, "the SKUs", len(testkit.Must[[]string](t)(first.SKUs(t.Context(), 10))), 1)
}

// A server that has lost the claim gets it again from the instances that run, before another shop can have it.
func TestName_IsClaimedAgainAfterTheServerHasLostIt(t *testing.T) {
	server := redistest.Start(t)
	r := ofShop(t, server, "shop", "the secret of the shop")
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 5, 1))
	claim := server.Client.Get(t.Context(), "sluice:shop:claim").Val()
	server.Kill()
	server.Restart()
	testkit.Eventually(t, "it claims the name again", func() bool {
		_, _, _ = r.ReadStock(t.Context(), testSKU)
		return claim != "" && server.Client.Get(t.Context(), "sluice:shop:claim").Val() == claim
	})
}
