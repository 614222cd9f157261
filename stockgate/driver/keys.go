package driver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/stockgate/key"
	"sluice/stockgate/link"
)

// keys are those of one driver.
type keys struct {
	stock, users, orders, parent, lock, mark template
	parts                                    int // of a SKU that the stock's key names
}

// template is a Redis key with holes; one without pieces is none.
type template struct {
	key.Template
	parts int // of a SKU
}

// of returns the key of o.
func (t template) of(o *order) string { return t.Of(o.sku, t.parts, o.serial, o.user) }

// others are what a mark may name besides the SKU, in the order of template.of.
func others() []string { return []string{"serial", "user"} }

const (
	markName = "mark_key"
	serial   = 0 // in others
)

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
	for _, one := range k.named(l) {
		var more []string
		if one.name == markName {
			more = others()
		}
		t, err := key.Compile(one.name, l.Prefix, one.text, more...)
		if one.to == &k.stock {
			k.parts = t.Parts()
		}
		*one.to = template{t, k.parts}
		errs = append(errs, err)
		if n := t.Parts(); n > k.parts {
			errs = append(errs, fmt.Errorf("%s %q: it names part %d of the SKU, and key does not", one.name, one.text, n))
		}
	}
	for _, name := range append(needs(l.Driver), "key") {
		errs = append(errs, k.needs(name, l.Driver))
	}
	if k.mark.Template != nil && l.MarkTTL < time.Second {
		errs = append(errs, errors.New("mark_ttl: it must be 1s or more"))
	}
	if strings.HasSuffix(l.MarkKey, back) {
		errs = append(errs, fmt.Errorf("mark_key %q: what ends in %s is the mark of an order that was given back", l.MarkKey, back))
	}
	if err := errors.Join(append(errs, k.distinct(l))...); err != nil {
		return nil, err
	}
	if cluster {
		return k, k.oneSlot(l)
	}
	return k, nil
}

// configured is a key of the configuration, and where its template belongs.
type configured struct {
	name, text string
	to         *template
}

// named are the keys by their names in the configuration, that of the stock first.
func (k *keys) named(l Layout) []configured {
	return []configured{
		{"key", l.Key, &k.stock}, {"users_key", l.UsersKey, &k.users}, {"orders_key", l.OrdersKey, &k.orders},
		{"parent_key", l.ParentKey, &k.parent}, {"lock_key", l.LockKey, &k.lock}, {markName, l.MarkKey, &k.mark},
	}
}

// needs refuses a key that is missing or that all SKUs, or all orders, would share.
func (k *keys) needs(name, driver string) error {
	t := map[string]template{"key": k.stock, "users_key": k.users, "lock_key": k.lock, "parent_key": k.parent, markName: k.mark}[name]
	switch {
	case t.Template == nil:
		return fmt.Errorf("%s: driver %q needs it", name, driver)
	case !t.Named():
		return fmt.Errorf("%s: it names no $sku, so all SKUs would share it", name)
	case (name == "key" || name == markName) && !t.Tells(k.parts):
		return fmt.Errorf("%s: several SKUs would share it; name all parts from $sku_1 to $sku_%d with colons or braces between them, or $sku", name, k.parts)
	case name == markName && !t.Holds(serial):
		return fmt.Errorf("%s: it names no $serial, so all orders of a SKU would be one", name)
	}
	return nil
}

// distinct refuses one key for two things.
func (k *keys) distinct(l Layout) error {
	seen := make(map[string]string)
	for _, one := range k.named(l) {
		if one.text == "" {
			continue
		}
		if before, twice := seen[one.text]; twice {
			return fmt.Errorf("%s: it is the same as %s", one.name, before)
		}
		seen[one.text] = one.name
	}
	return nil
}

// Fence is what follows a lock's key where the number is kept that its holders draw.
const Fence = ":fence"

// back is what follows a mark's key where an order was given back.
const back = ":back"

// ErrApart is the cause when a cluster has the keys of one SKU on different servers: no script could touch them together.
var ErrApart = key.ErrApart

// oneSlot refuses keys that a cluster would keep apart. What follows a lock and a mark is apart where these have no tag.
func (k *keys) oneSlot(l Layout) error {
	var all, more []key.Named
	for _, one := range k.named(l) {
		if one.text == "" {
			continue
		}
		all = append(all, key.Named{Name: one.name, Text: one.text})
		if follows := map[string]string{"lock_key": Fence, markName: back}[one.name]; follows != "" {
			more = append(more, key.Named{Name: one.name + follows, Text: one.text + follows})
		}
	}
	if err := key.OneSlot(l.Prefix, all, link.Tag, others()...); err != nil {
		return err
	}
	return key.OneSlot(l.Prefix, append(all, more...), link.Tag, others()...)
}
