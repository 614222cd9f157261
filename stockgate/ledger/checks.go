package ledger

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of a call. Numbers have at most 15 digits, which Lua keeps exactly.
const (
	MaxItems    = 256
	MaxLeases   = 1000
	MaxSerial   = 128 // bytes
	maxSKU      = 256 // bytes
	MaxQuantity = 1_000_000_000
	MaxNumber   = 999_999_999_999_999

	maxForgotten = 2000 // tombstones that one Sweep forgets

	// So many ledgers share a call at most: after so many there is little left to share. Redis reads some thirty at a
	// time, and serves others in between.
	MaxTogether = 64

	// So few of each ledger does SweepAll look at that all of a call take Redis no longer than one Sweep may.
	sharedLeases    = 8
	SharedForgotten = 24

	MaxListed    = 100_000 // that one call lists
	maxAdditions = 100     // ids that a ledger remembers
)

// ErrUnknownSKU is the cause when a SKU has no ledger.
var ErrUnknownSKU = errors.New("no such ledger")

// errOtherDelta is the cause when an id of Add was used before to add something else.
var errOtherDelta = errors.New("this id was used to add another number")

// describe says before an error, if there is one, what was tried, and of what.
func describe(err *error, what, of string) {
	if *err != nil {
		*err = fmt.Errorf("%s %q: %w", what, of, *err)
	}
}

// KeepLimit is the limit that leaves the limit as it is.
const KeepLimit int64 = -1

// ErrLost is the cause when a SKU had a ledger and has none now. Only Recreate makes it again: the units of the orders
// of before would be sold a second time.
var ErrLost = errors.New("its ledger is gone")

// LostLedger is the ErrLost of a SKU, with the way out.
func LostLedger(sku string) error {
	return fmt.Errorf("%w; the orders of before must be back before it sells again: %s", ErrLost, RecoverLost(sku))
}

// RecoverLost is the command that makes the ledger of a SKU again that may have been sold.
func RecoverLost(sku string) string {
	return fmt.Sprintf("sluice stock recover %s --total N --from FILE|settle|none --apply", sku)
}

// ErrExists is the cause when a ledger is to be made again that is there.
var ErrExists = errors.New("it has a ledger")

// ErrOrdersLeft is the cause when a ledger is to be made without orders, and records of some are there.
var ErrOrdersLeft = errors.New("records of orders are left in Redis")

// CheckSKU rejects a SKU that could not name keys of its own in one slot.
func CheckSKU(sku string) error {
	switch {
	case sku == "" || len(sku) > maxSKU:
		return fmt.Errorf("sku %.32q: it must have 1 to %d bytes", sku, maxSKU)
	case strings.ContainsAny(sku, "{}"):
		return fmt.Errorf("sku %.32q: braces would change its cluster slot", sku)
	}
	return nil
}

// checkOverruling rejects a number under which no state can be overruled.
func checkOverruling(number int64) error {
	if number < 1 || number > MaxNumber {
		return fmt.Errorf("number %d: it must be 1 to %d", number, MaxNumber)
	}
	return nil
}

// checkItems rejects a batch that cannot be meant. answers is how many fit where they go.
func checkItems(sku string, items []Item, answers int, adopt bool) error {
	if err := CheckSKU(sku); err != nil {
		return err
	}
	if len(items) < 1 || len(items) > MaxItems {
		return fmt.Errorf("%d items: 1 to %d are possible", len(items), MaxItems)
	}
	if answers < len(items) {
		return fmt.Errorf("%d items, but room for %d answers", len(items), answers)
	}
	for _, i := range items {
		if err := CheckSerial(i.Serial); err != nil {
			return err
		}
		if adopt && (i.Quantity < 1 || i.Quantity > MaxQuantity) {
			return fmt.Errorf("quantity %d of serial %q: it must be 1 to %d", i.Quantity, i.Serial, MaxQuantity)
		}
		if err := checkRequest(i.Request); err != nil {
			return fmt.Errorf("serial %q: %w", i.Serial, err)
		}
	}
	return nil
}

func CheckSerial(serial string) error {
	if serial == "" || len(serial) > MaxSerial {
		return fmt.Errorf("serial %.32q: it must have 1 to %d bytes", serial, MaxSerial)
	}
	return nil
}

// checkNumber rejects what a key could not hold exactly.
func checkNumber(what string, n int64) error {
	if n < 0 || n > MaxNumber {
		return fmt.Errorf("%s %d: it must be 0 to %d", what, n, MaxNumber)
	}
	return nil
}

// checkTotal rejects what SetTotal could not keep.
func checkTotal(sku string, total, limit int64) error {
	if limit == KeepLimit {
		limit = 0
	}
	return errors.Join(CheckSKU(sku), checkNumber("total", total), checkNumber("limit", limit))
}

// checkAdd rejects a change that cannot be meant.
func checkAdd(sku string, delta int64, id string) error {
	if delta == 0 || delta < -MaxNumber || delta > MaxNumber {
		return fmt.Errorf("delta %d: it must have 1 to 15 digits, and not be 0", delta)
	}
	if len(id) > MaxSerial {
		return fmt.Errorf("id %.32q: it must have at most %d bytes", id, MaxSerial)
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("id %q: it must be visible ASCII", id)
		}
	}
	return CheckSKU(sku)
}

// checkSchedule rejects hours that never are.
func checkSchedule(sku string, opens, closes int64) error {
	if closes > 0 && closes <= opens {
		return fmt.Errorf("it would close at %d, not after it opens at %d", closes, opens)
	}
	return errors.Join(CheckSKU(sku), checkNumber("opens", opens), checkNumber("closes", closes))
}

// checkList rejects a list without a bound.
func checkList(limit int) error {
	if limit < 1 || limit > MaxListed {
		return fmt.Errorf("limit %d: it must be 1 to %d", limit, MaxListed)
	}
	return nil
}

// checkTimes rejects times that are not Unix milliseconds.
func checkTimes(now, until int64) error {
	return errors.Join(checkNumber("time", now), checkNumber("time", until))
}

// checkFinish rejects an Op that does not exist, besides what checkItems does.
func checkFinish(sku string, op Op, items []Item, answers int) error {
	switch op {
	case Confirm, Release, Refund, Adopt:
		return checkItems(sku, items, answers, op == Adopt)
	}
	return fmt.Errorf("%q is not an operation", op)
}

// checkSweep rejects leases without a bound.
func checkSweep(sku string, limit int) error {
	if limit < 1 || limit > MaxLeases {
		return fmt.Errorf("limit %d: it must be 1 to %d", limit, MaxLeases)
	}
	return CheckSKU(sku)
}

func checkState(state State) error {
	switch state {
	case On, Paused, Ended, Frozen:
		return nil
	}
	return fmt.Errorf("%q is not a state", state)
}

// totalTooSmall is the error when a total would be less than what is taken already.
func totalTooSmall(total, held, sold int64) error {
	return fmt.Errorf("a total of %d is less than %d held + %d sold; the total counts those, too: to sell more, say "+
		"sluice stock add SKU UNITS", total, held, sold)
}

// numMarks is the number of instances that can be told from each other by the deadlines of their reservations.
const numMarks = 1024
