package ledger

import (
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// Who has a prefix knows of nobody, is known to nobody, and says which keys are its own.
func TestAPrefixKeepsWhatBelongsToNoSKUApart(t *testing.T) {
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	plain := must[*Redis](t)(NewRedis(o))
	defer plain.Close()
	o.Prefix = "sluice:apart:"
	apart := must[*Redis](t)(NewRedis(o))
	defer apart.Close()
	heard := listen(t, plain)
	eventually(t, "it listens", func() bool { return heard.begins() > 0 })

	must[Stock](t)(apart.SetTotal(t.Context(), "mine", 5, 1))
	must[[]byte](t)(apart.Secret(t.Context()))
	must[int64](t)(apart.Mark(t.Context()))
	if skus := must[[]string](t)(apart.SKUs(t.Context(), 10)); !slices.Equal(skus, []string{"mine"}) {
		t.Errorf("it knows %q", skus)
	}
	if skus := must[[]string](t)(plain.SKUs(t.Context(), 10)); len(skus) != 0 {
		t.Errorf("the others know %q", skus)
	}
	must[Stock](t)(apart.SetTotal(t.Context(), "mine", 9, 1)) // news: units came
	must[Stock](t)(plain.SetTotal(t.Context(), "yours", 5, 1))
	must[Stock](t)(plain.SetTotal(t.Context(), "yours", 9, 1))
	eventually(t, "its own news", func() bool { return len(heard.heard()) > 0 })
	for _, n := range heard.heard() {
		if n.sku != "yours" {
			t.Errorf("it heard of %q", n.sku)
		}
	}
	own := KeysOf(o.Prefix, "mine")
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		if !slices.Contains(own, key) && !strings.Contains(key, "yours") && key != registry {
			t.Errorf("%q is nobody's", key)
		}
	}
}
