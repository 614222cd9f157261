package driver

// newCounterCodes takes from a string: -1 unknown, 0 not enough, 1 done.
func newCounterCodes(w way, k *keys) decision {
	return &scripted{
		way: w, taking: read("counter_codes"), giving: read("counter_codes_back"),
		keys: func(o *order) []string { return []string{k.stock.of(o)} },
		args: func(o *order) []any { return []any{o.quantity} },
		read: codes(map[int64]why{-1: unknown, 0: notEnough, 1: taken}),
	}
}
