package redisstore

import (
	"errors"
	"slices"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/namespace"
	"sluice/stockgate/redisconn"
)

// ofShop is a store of a shop on a server.
func ofShop(t *testing.T, server *redistest.Server, name namespace.Name, secret string) *Store {
	o := optionsFor(server, 4)
	o.Name, o.Guard = name, namespace.Claim{Name: name, Secret: []byte(secret)}.Guard()
	r := ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { r.Close() })
	return r
}

// Stores of two names have ledgers of their own for one SKU, hear of their own alone, and have no key in common.
func TestName_StoresOfTwoNamesShareNothing(t *testing.T) {
	server := redistest.Start(t)
	mine, yours := ofShop(t, server, "mine", "a secret of mine"), ofShop(t, server, "yours", "a secret of yours")
	heard := listen(t, yours)
	ledgertest.Until(t, "it listens", func() bool { return heard.begins() > 0 })
	for units, r := range []*Store{mine, yours} {
		ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, int64(5+units), 1))
		ledgertest.Must[[]byte](t)(r.Secret(t.Context()))
		ledgertest.Want(t, "mark", ledgertest.Must[int64](t)(r.Mark(t.Context())), 2)
		ledgertest.Check(t, r.NoteSettlement(t.Context(), "main", "{}"))
	}
	ledgertest.Must[protocol.Stock](t)(mine.SetTotal(t.Context(), "of mine alone", 5, 1))
	for _, c := range []struct {
		r     *Store
		skus  []string
		total int64
	}{{mine, []string{ledgertest.SKU, "of mine alone"}, 5}, {yours, []string{ledgertest.SKU}, 6}} {
		if skus := ledgertest.Must[[]string](t)(c.r.SKUs(t.Context(), 10)); !slices.Equal(skus, c.skus) {
			t.Errorf("%s knows %q, want %q", c.r.name, skus, c.skus)
		}
		ledgertest.Want(t, "total", ledgertest.StockOf(t, c.r).Total, c.total)
	}
	for total := range int64(2) {
		ledgertest.Must[protocol.Stock](t)(mine.SetTotal(t.Context(), "of mine alone", 9+total, 1))
		ledgertest.Must[protocol.Stock](t)(yours.SetTotal(t.Context(), ledgertest.SKU, 9+total, 1))
	}
	ledgertest.Until(t, "its own news", func() bool { return len(heard.heard()) > 0 })
	for _, n := range heard.heard() {
		ledgertest.Want(t, "SKU in the news", n.sku, ledgertest.SKU)
	}
	own := slices.Concat(KeysOf("mine", ledgertest.SKU), KeysOf("mine", "of mine alone"), KeysOf("yours", ledgertest.SKU),
		[]string{"sluice:mine:settlement", "sluice:yours:settlement"})
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		if !slices.Contains(own, key) {
			t.Errorf("%q is in the keys of neither", key)
		}
	}
}

// No call of a store reads or changes what is under a name that another secret has claimed.
func TestName_ClaimOfAnotherSecretLeavesTheLedgersAlone(t *testing.T) {
	server := redistest.Start(t)
	first := ofShop(t, server, "shop", "the secret of the first")
	ledgertest.Must[protocol.Stock](t)(first.SetTotal(t.Context(), ledgertest.SKU, 5, 1))
	other := ofShop(t, server, "shop", "the secret of another")
	_, total := other.SetTotal(t.Context(), ledgertest.SKU, 9, 1)
	_, skus := other.SKUs(t.Context(), 10)
	_, _, read := other.ReadStock(t.Context(), ledgertest.SKU)
	_, create := func() (any, error) {
		_, _, err := other.Create(t.Context(), "new", protocol.Opening{Total: 1})
		return nil, err
	}()
	for what, err := range map[string]error{"check": other.Check(t.Context()), "set": total, "list": skus, "read": read,
		"create": create, "find": other.FindAll(t.Context(), []protocol.OrderName{{SKU: ledgertest.SKU,
			Serial: "s"}})[0].Err} {
		if !errors.Is(err, namespace.ErrClaimed) || !redisconn.Unsent(err) {
			t.Errorf("%s: %v, want ErrClaimed and that nothing was sent", what, err)
		}
	}
	ledgertest.Want(t, "total", ledgertest.StockOf(t, first).Total, 5)
	ledgertest.Want(t, "the SKUs", len(ledgertest.Must[[]string](t)(first.SKUs(t.Context(), 10))), 1)
}

// A server that has lost the claim gets it again from the instances that run, before another shop can have it.
func TestName_IsClaimedAgainAfterTheServerHasLostIt(t *testing.T) {
	server := redistest.Start(t)
	r := ofShop(t, server, "shop", "the secret of the shop")
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, 5, 1))
	claim := server.Client.Get(t.Context(), "sluice:shop:claim").Val()
	server.Kill()
	server.Restart()
	ledgertest.Until(t, "it claims the name again", func() bool {
		_, _, _ = r.ReadStock(t.Context(), ledgertest.SKU)
		return claim != "" && server.Client.Get(t.Context(), "sluice:shop:claim").Val() == claim
	})
}
