package driver

// newVariants takes from the counter of a product's variant, which alone decides; the product's own counter follows:
// -1 unknown, 0 not enough, 1 done.
func newVariants(w way, k *keys) decision {
	return &scripted{
		way: w, taking: read("variants"), giving: read("variants_back"),
		keys: func(o *order) []string { return []string{k.stock.of(o), k.parent.of(o)} },
		args: func(o *order) []any { return []any{o.quantity} },
		read: codes(map[int64]why{-1: unknown, 0: notEnough, 1: taken}),
	}
}
