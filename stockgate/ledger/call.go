package ledger

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of a call. Numbers have at most 15 digits, which Lua keeps exactly.
const (
	maxItems    = 256
	maxLeases   = 1000
	maxSerial   = 128 // bytes
	maxSKU      = 256 // bytes
	maxQuantity = 1_000_000_000
	maxNumber   = 999_999_999_999_999

	forgotten = 2000 // tombstones that one Sweep forgets

	// So many ledgers share a call at most: after so many there is little left to share. Redis reads some thirty at a time,
	// and serves others in between.
	together = 64

	// So few of each ledger does SweepAll look at that all of a call take Redis no longer than one Sweep may.
	fewLeases    = 8
	fewForgotten = 24

	maxSKUs  = 100_000 // that one call lists
	maxAdded = 100     // ids that a ledger remembers
)

// ErrUnknownSKU is the cause when a SKU has no ledger.
var ErrUnknownSKU = errors.New("no such ledger")

// ErrOtherDelta is the cause when an id of Add was used before to add something else.
var ErrOtherDelta = errors.New("this id was used to add another number")

// KeepLimit is the limit that leaves the limit as it is.
const KeepLimit int64 = -1

// ErrLost is the cause when a SKU had a ledger and has none now. Nobody may make it anew who only means to make what
// is not there yet, as from a configuration: the orders of before would be sold a second time.
var ErrLost = errors.New("its ledger is gone: make one anew by hand, with what the shop has left")

// checkSKU refuses a SKU that could not name keys of its own in one slot.
func checkSKU(sku string) error {
	switch {
	case sku == "" || len(sku) > maxSKU:
		return fmt.Errorf("sku %.32q: it must have 1 to %d bytes", sku, maxSKU)
	case strings.ContainsAny(sku, "{}"):
		return fmt.Errorf("sku %.32q: braces would change its cluster slot", sku)
	}
	return nil
}

// checkItems refuses a batch that cannot be meant. answers is how many fit where they go.
func checkItems(sku string, items []Item, answers int, adopt bool) error {
	if err := checkSKU(sku); err != nil {
		return err
	}
	if len(items) < 1 || len(items) > maxItems {
		return fmt.Errorf("%d items: 1 to %d are possible", len(items), maxItems)
	}
	if answers < len(items) {
		return fmt.Errorf("%d items, but room for %d answers", len(items), answers)
	}
	for _, i := range items {
		if err := checkSerial(i.Serial); err != nil {
			return err
		}
		if adopt && (i.Quantity < 1 || i.Quantity > maxQuantity) {
			return fmt.Errorf("quantity %d of serial %q: it must be 1 to %d", i.Quantity, i.Serial, maxQuantity)
		}
	}
	return nil
}

func checkSerial(serial string) error {
	if serial == "" || len(serial) > maxSerial {
		return fmt.Errorf("serial %.32q: it must have 1 to %d bytes", serial, maxSerial)
	}
	return nil
}

// checkNumber refuses what a key could not hold exactly.
func checkNumber(what string, n int64) error {
	if n < 0 || n > maxNumber {
		return fmt.Errorf("%s %d: it must be 0 to %d", what, n, maxNumber)
	}
	return nil
}

// checkTotal refuses what SetTotal could not keep.
func checkTotal(sku string, total, limit int64) error {
	if limit == KeepLimit {
		limit = 0
	}
	return errors.Join(checkSKU(sku), checkNumber("total", total), checkNumber("limit", limit))
}

// checkAdd refuses a change that cannot be meant.
func checkAdd(sku string, delta int64, id string) error {
	if delta == 0 || delta < -maxNumber || delta > maxNumber {
		return fmt.Errorf("delta %d: it must have 1 to 15 digits, and not be 0", delta)
	}
	if len(id) > maxSerial {
		return fmt.Errorf("id %.32q: it must have at most %d bytes", id, maxSerial)
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("id %q: it must be visible ASCII", id)
		}
	}
	return checkSKU(sku)
}

// checkHours refuses hours that never are.
func checkHours(sku string, opens, closes int64) error {
	if closes > 0 && closes <= opens {
		return fmt.Errorf("it would close at %d, not after it opens at %d", closes, opens)
	}
	return errors.Join(checkSKU(sku), checkNumber("opens", opens), checkNumber("closes", closes))
}

// checkList refuses a list without a bound.
func checkList(limit int) error {
	if limit < 1 || limit > maxSKUs {
		return fmt.Errorf("limit %d: it must be 1 to %d", limit, maxSKUs)
	}
	return nil
}

// checkTimes refuses times that are not Unix milliseconds.
func checkTimes(now, until int64) error {
	return errors.Join(checkNumber("time", now), checkNumber("time", until))
}

// checkFinish refuses an Op that does not exist, besides what checkItems does.
func checkFinish(sku string, op Op, items []Item, answers int) error {
	switch op {
	case Confirm, Release, Refund, Adopt:
		return checkItems(sku, items, answers, op == Adopt)
	}
	return fmt.Errorf("%q is not an operation", op)
}

// checkSweep refuses leases without a bound.
func checkSweep(sku string, limit int) error {
	if limit < 1 || limit > maxLeases {
		return fmt.Errorf("limit %d: it must be 1 to %d", limit, maxLeases)
	}
	return checkSKU(sku)
}

func checkState(state State) error {
	switch state {
	case On, Paused, Ended, Frozen:
		return nil
	}
	return fmt.Errorf("%q is not a state", state)
}

// tooFew is the error when a total would be less than what is taken already.
func tooFew(total, held, sold int64) error {
	return fmt.Errorf("a total of %d is less than %d held + %d sold", total, held, sold)
}
