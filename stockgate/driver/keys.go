package driver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/stockgate/link"
)

// keys are those of one driver.
type keys struct {
	stock, users, orders, parent, lock, mark template
	parts                                    int // of a SKU, in all of them
}

// Check refuses keys that could not work: one for all SKUs or orders, or, on a cluster, keys of one SKU in several slots.
func (l Layout) Check(cluster bool) error {
	_, err := compileKeys(l, cluster)
	return err
}

// needs says which of its keys each driver reads, by their names in the configuration.
func needs(driver string) []string {
	switch driver {
	case counterUsers, listUsers:
		return []string{"users_key"}
	case hashInStock, hashInStockOnce:
		return []string{markName}
	case locked:
		return []string{"lock_key"}
	case variants:
		return []string{"parent_key"}
	}
	return nil
}

// compileKeys reads the keys of l, and refuses what Check does.
func compileKeys(l Layout, cluster bool) (*keys, error) {
	k := &keys{}
	var errs []error
	for _, one := range []struct {
		name, text string
		to         *template
	}{
		{"key", l.Key, &k.stock}, {"users_key", l.UsersKey, &k.users}, {"orders_key", l.OrdersKey, &k.orders},
		{"parent_key", l.ParentKey, &k.parent}, {"lock_key", l.LockKey, &k.lock}, {markName, l.MarkKey, &k.mark},
	} {
		t, err := compile(one.name, l.Prefix, one.text)
		*one.to = t
		errs = append(errs, err)
		k.parts = max(k.parts, t.parts())
	}
	for _, name := range append(needs(l.Driver), "key") {
		errs = append(errs, k.needs(name, l.Driver))
	}
	if len(k.mark) > 0 && l.MarkTTL < time.Second {
		errs = append(errs, errors.New("mark_ttl: it must be 1s or more"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cluster {
		return k, k.oneSlot(l)
	}
	return k, nil
}

// needs refuses a key that is missing or that all SKUs, or all orders, would share.
func (k *keys) needs(name, driver string) error {
	t := map[string]template{"key": k.stock, "users_key": k.users, "lock_key": k.lock, "parent_key": k.parent, markName: k.mark}[name]
	switch {
	case len(t) == 0:
		return fmt.Errorf("%s: driver %q needs it", name, driver)
	case !t.names(whole) && t.parts() == 0:
		return fmt.Errorf("%s: it names no $sku, so all SKUs would share it", name)
	case name == markName && !t.names(serial):
		return fmt.Errorf("%s: it names no $serial, so all orders of a SKU would be one", name)
	}
	return nil
}

// fence is the key of the number that a lock's holders draw.
const fence = ":fence"

// back is what follows a mark's key where an order was given back.
const back = ":back"

// each returns all keys that o leads to.
func (k *keys) each(o *order) (all []string) {
	for _, t := range []template{k.stock, k.users, k.orders, k.parent, k.lock, k.mark} {
		if len(t) > 0 {
			all = append(all, t.of(o, k.parts))
		}
	}
	if len(k.lock) > 0 {
		all = append(all, k.lock.of(o, k.parts)+fence)
	}
	if len(k.mark) > 0 {
		all = append(all, k.mark.of(o, k.parts)+back)
	}
	return all
}

// oneSlot refuses keys that a cluster would keep apart: a script could not touch them together.
func (k *keys) oneSlot(l Layout) error {
	// Two SKUs and an order that would choose a slot of its own if the key let it.
	for _, o := range []*order{
		{sku: "1001:88:3", serial: "{a}", user: "{b}"},
		{sku: "1002:89:4", serial: "{c}", user: "{d}"},
	} {
		all := k.each(o)
		for _, key := range all[1:] {
			if link.Slot(key) != link.Slot(all[0]) {
				return fmt.Errorf("on a cluster %q and %q lie in different slots: put one tag into all keys, like key = %q", all[0], key, tagged(l.Key))
			}
		}
	}
	return nil
}

// tagged is a key that would work: the first name of the SKU in braces.
func tagged(key string) string {
	for _, name := range []string{"$sku_1", "$sku"} {
		if before, after, found := strings.Cut(key, name); found {
			return before + "{" + name + "}" + after
		}
	}
	return key
}
