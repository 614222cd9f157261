package config

import (
	"slices"
	"time"
)

// driver is one way to take stock as shops do, and what it reads of [stock.layout].
type driver struct {
	name   string
	types  []string // of layout, that read the same keys; the first is the one to propose
	needs  []string // keys without which it cannot work
	reads  []string // further keys that it reads where they are given
	buyers bool     // it takes for known users alone
}

// drivers are those that stock.layout.driver may name.
func drivers() []driver {
	counter, sold, left := []string{"counter"}, []string{"hash_sold"}, []string{"hash_left"}
	users, mark := []string{"users_key"}, []string{"mark_key"}
	return []driver{
		{name: "hash_ordered", types: sold},
		{name: "hash_bought", types: sold, needs: []string{"status_field"}, reads: []string{"orders_key"}},
		{name: "counter_codes", types: counter},
		{name: "counter_users", types: []string{"counter_users", "counter"}, needs: users, buyers: true},
		{name: "hash_instock", types: left, needs: mark},
		{name: "hash_instock_script", types: left, needs: mark},
		{name: "watch", types: counter},
		{name: "lock", types: counter, needs: []string{"lock_key"}},
		{name: "list_users", types: []string{"list"}, needs: users, buyers: true},
		{name: "variants", types: counter, needs: []string{"parent_key"}},
	}
}

// driver finds the row of the driver that is named.
func (l *Layout) driver() (driver, bool) {
	all := drivers()
	i := slices.IndexFunc(all, func(d driver) bool { return d.name == l.Driver })
	if i < 0 {
		return driver{}, false
	}
	return all[i], true
}

// checkDriver refuses a driver whose layout is another, or that would ignore what stands beside it.
func (s *Stock) checkDriver(r *report) {
	s.Layout.checkKeysOfDriver(r)
	if s.Layout.Driver == "" {
		return
	}
	d, ok := s.Layout.driver()
	if !ok {
		var names []string
		for _, d := range drivers() {
			names = append(names, d.name)
		}
		r.oneOf("stock.layout.driver", s.Layout.Driver, names...)
		return
	}
	if s.Source != "redis" {
		r.fail("stock.layout.driver", "%q works in Redis, but stock.source is %q; write source = \"redis\"", d.name, s.Source)
	}
	if !slices.Contains(d.types, s.Layout.Type) {
		r.fail("stock.layout.driver", "%q takes from a layout of another type than %q; write type = %q", d.name, s.Layout.Type, d.types[0])
	}
	s.checkIgnored(r, d)
	if s.Reserve.StatusURL != "" {
		r.fail("stock.reserve.status_url", "is asked for orders of the ledger, and driver %q keeps none; drop one", d.name)
	}
	if s.Reserve.Fence != "none" {
		r.fail("stock.reserve.fence", "is for orders of the ledger, and driver %q keeps none; drop one", d.name)
	}
}

// checkIgnored wants the keys that d needs, and refuses those that it would not look at.
func (s *Stock) checkIgnored(r *report, d driver) {
	l := &s.Layout
	for _, k := range []struct{ name, value string }{
		{"status_key", l.StatusKey}, {"status_field", l.StatusField}, {"sold_out_flag", l.SoldOutFlag}, {"users_key", l.UsersKey},
		{"orders_key", l.OrdersKey}, {"parent_key", l.ParentKey}, {"lock_key", l.LockKey}, {"mark_key", l.MarkKey},
	} {
		needed, read := slices.Contains(d.needs, k.name), slices.Contains(d.reads, k.name)
		switch {
		case needed && k.value == "":
			r.fail("stock.layout."+k.name, "is missing: driver %q needs it", d.name)
		case k.value != "" && !needed && !read:
			r.fail("stock.layout."+k.name, "is not read by driver %q; drop it", d.name)
		}
	}
	if l.SoldOutAt != 0 {
		r.fail("stock.layout.sold_out_at", "is not read by driver %q, which sells down to 0; drop it", d.name)
	}
}

// checkKeysOfDriver checks the keys that only drivers read.
func (l *Layout) checkKeysOfDriver(r *report) {
	for _, k := range []struct{ name, value string }{{"orders_key", l.OrdersKey}, {"parent_key", l.ParentKey}, {"lock_key", l.LockKey}} {
		if k.value != "" {
			r.skuKey("stock.layout."+k.name, k.value)
		}
	}
	if names := variablesOf(l.MarkKey); l.MarkKey != "" {
		r.variables("stock.layout.mark_key", l.MarkKey, append(skuNames(), "serial", "user")...)
		if !slices.Contains(names, "serial") {
			r.fail("stock.layout.mark_key", "%q has no $serial: all orders would share it; write it like \"mark:{$sku}:$serial\"", l.MarkKey)
		}
	}
	between(r, "stock.layout.mark_ttl", l.MarkTTL, time.Second, 365*24*time.Hour)
}

// checkBuyers wants a user where the driver takes for known users alone.
func (c *Config) checkBuyers(r *report, t *Route, at string) {
	if d, ok := c.Stock.Layout.driver(); ok && d.buyers && t.User == "" {
		r.fail(at+".user", "is missing: driver %q takes for known users alone; write where the user is found, like \"$cookie_uid\"", d.name)
	}
}
