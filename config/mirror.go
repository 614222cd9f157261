package config

import "slices"

// checkMirror wants a key of the shop that can show what a ledger has free.
func (s *Stock) checkMirror(r *report) {
	const key = "stock.reserve.write_back"
	shows := []string{"counter", "counter_users", "hash_left", "hash_sold"}
	switch {
	case !s.Reserve.WriteBack:
	case s.Source != "redis":
		r.fail(key, "writes into the shop's Redis, but stock.source is %q; write \"redis\", or drop this", s.Source)
	case !slices.Contains(shows, s.Layout.Type):
		r.fail(key, "cannot write a %q: stock.layout.type must be \"counter\", \"counter_users\", \"hash_left\" or \"hash_sold\"", s.Layout.Type)
	}
}
