// Package driver runs, in a shop's place, the decision that the shop already makes in Redis: the same keys, arguments
// and codes, so that a backend that runs the same beside it finds what it knows.
//
// It promises what Promises lists for each driver, and no more: there is no ledger behind it, so an order has no record
// that outlives a lost answer. Whatever the driver, no more units are admitted than were taken, no command is ever sent
// again whose outcome is unknown, and an order whose outcome is unknown is not admitted: its units may be lost, which is
// counted. What is sold out is answered from memory.
//
// It refuses to improve on the originals. A shop that needs what a driver cannot keep takes the ledger.
package driver

import (
	"context"
	"fmt"
	"time"
)

// The drivers, as the configuration names them.
const (
	hashOrdered     = "hash_ordered"
	hashBought      = "hash_bought"
	counterCodes    = "counter_codes"
	counterUsers    = "counter_users"
	hashInStock     = "hash_instock"
	hashInStockOnce = "hash_instock_script"
	watched         = "watch"
	locked          = "lock"
	listUsers       = "list_users"
	variants        = "variants"
)

// Layout is what the shop's keys and fields are called. Keys may contain $sku, or $sku_1 to $sku_3: the SKU's parts
// between colons, the last of them with the rest. $$ is a dollar sign.
type Layout struct {
	Driver string
	Prefix string // before every key

	Key         string        // the stock
	TotalField  string        // hash_ordered, hash_bought
	SoldField   string        // the same two
	LeftField   string        // hash_instock
	StatusField string        // hash_bought
	StatusOpen  []string      // hash_bought: the statuses that mean "on sale"
	UsersKey    string        // counter_users, list_users
	OrdersKey   string        // hash_bought: the list that an order is appended to; "" = none
	ParentKey   string        // variants: the product's counter
	LockKey     string        // lock; LockKey:fence is the number of its holders
	MarkKey     string        // hash_instock: also $serial, the order, and $user
	MarkTTL     time.Duration // hash_instock: how long an order is recognised; at least 1 s
}

// order is one attempt to take units, and what came of it.
type order struct {
	sku, user, serial string
	quantity          int64
	at                int64 // Unix s: when it came

	why   why
	err   error  // of unsure, faulty and notSent
	unit  string // what list_users took
	token string // the value of the mark that hash_instock sets
	given why    // what came of giving back
}

// why is what a driver says of an order.
type why uint8

const (
	unsure    why = iota // no answer: units may be gone
	taken                // or given back
	notEnough            // nothing was taken, as with all that follow
	unknown              // there is no such stock
	offSale              // the status is not one of those that mean "on sale"
	repeated             // the user, or this very order, has taken before
	voided               // this very order was given back before
	contended            // others were faster each time
	faulty               // Redis says that a key is not what it should be
	notSent              // Redis cannot be reached
)

// decision is one way to take units. Both methods set why, or given, of each order, within a bounded time.
type decision interface {
	take(ctx context.Context, orders []*order)
	giveBack(ctx context.Context, orders []*order)
}

// open makes the decision that l names.
func open(l Layout, w way, cluster bool) (decision, *keys, error) {
	k, err := compileKeys(l, cluster)
	if err != nil {
		return nil, nil, err
	}
	d, err := decide(l, w, k)
	if err != nil {
		return nil, nil, err
	}
	if apart := k.oneSlot(l); apart != nil {
		d = &alone{decision: d, way: w, apart: apart}
	}
	return d, k, nil
}

func decide(l Layout, w way, k *keys) (decision, error) {
	switch l.Driver {
	case hashOrdered:
		return newHashOrdered(w, k, l), nil
	case hashBought:
		return newHashBought(w, k, l), nil
	case counterCodes:
		return newCounterCodes(w, k), nil
	case counterUsers:
		return newCounterUsers(w, k), nil
	case hashInStock:
		return &marked{w, k, l}, nil
	case hashInStockOnce:
		return newMarkedOnce(w, k, l), nil
	case watched:
		return &watch{w, k}, nil
	case locked:
		return &lock{w, k}, nil
	case listUsers:
		return newListUsers(w, k), nil
	case variants:
		return newVariants(w, k), nil
	}
	return nil, fmt.Errorf("driver %q is not known", l.Driver)
}
