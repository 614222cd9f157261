package stockgate

import (
	"testing"

	"sluice/proxy/reject"
)

func TestGate_UseKeepsWhatIsKnownUnlessItIsOfOtherKeys(t *testing.T) {
	now := int64(1)
	o := options()
	o.Now = func() int64 { return now }
	g, skus := hot(t, o)
	sku := skus[reject.UnknownSKU]
	for _, step := range []struct {
		what    string
		allow   bool // unknown_sku
		other   bool // keys
		unknown reject.Reason
		soldOut reject.Reason
	}{
		{"as it was", false, false, reject.UnknownSKU, reject.SoldOut},
		{"unknown SKUs are allowed", true, false, reject.Admitted, reject.SoldOut},
		{"and rejected again", false, false, reject.UnknownSKU, reject.SoldOut},
		{"other keys, which must be read first", false, true, reject.Admitted, reject.Admitted},
	} {
		now++
		o.AllowUnknown = step.allow
		use, err := g.Prepare(o, step.other)
		if err != nil {
			t.Fatal(err)
		}
		use()
		unknown, soldOut := g.Closed(now, sku), g.Closed(now, skus[reject.SoldOut])
		if unknown != step.unknown || soldOut != step.soldOut {
			t.Errorf("%s: %v and %v, want %v and %v", step.what, unknown, soldOut, step.unknown, step.soldOut)
		}
	}
}
