package redisstore

import (
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// Who has a prefix knows of nobody, is known to nobody, and says which keys are its own.
func TestPrefix_KeepsWhatBelongsToNoSKUApart(t *testing.T) {
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	plain := ledgertest.Must[*Store](t)(New(o))
	defer plain.Close()
	o.Prefix = "sluice:apart:"
	apart := ledgertest.Must[*Store](t)(New(o))
	defer apart.Close()
	heard := listen(t, plain)
	ledgertest.Until(t, "it listens", func() bool { return heard.begins() > 0 })
	ledgertest.Must[protocol.Stock](t)(apart.SetTotal(t.Context(), "mine", 5, 1))
	ledgertest.Must[[]byte](t)(apart.Secret(t.Context()))
	ledgertest.Must[int64](t)(apart.Mark(t.Context()))
	if skus := ledgertest.Must[[]string](t)(apart.SKUs(t.Context(), 10)); !slices.Equal(skus, []string{"mine"}) {
		t.Errorf("it knows %q", skus)
	}
	if skus := ledgertest.Must[[]string](t)(plain.SKUs(t.Context(), 10)); len(skus) != 0 {
		t.Errorf("the others know %q", skus)
	}
	ledgertest.Must[protocol.Stock](t)(apart.SetTotal(t.Context(), "mine", 9, 1))
	ledgertest. // news: units came
			Must[protocol.Stock](t)(plain.SetTotal(t.Context(), "yours", 5, 1))
	ledgertest.Must[protocol.Stock](t)(plain.SetTotal(t.Context(), "yours", 9, 1))
	ledgertest.Until(t, "its own news", func() bool { return len(heard.heard()) > 0 })
	for _, n := range heard.heard() {
		if n.sku != "yours" {
			t.Errorf("it heard of %q", n.sku)
		}
	}
	own := KeysOf(o.Prefix, "mine")
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		if !slices.Contains(own, key) && !strings.Contains(key, "yours") && key != registryKey {
			t.Errorf("%q is nobody's", key)
		}
	}
}
