// Package script takes units by the shop's own Lua script: the keys, arguments and return codes that the shop's other
// programs use, so that they and Sluice sell one stock. A preset is such a script that comes with Sluice.
//
// It promises that no order is admitted whose units the script did not take; that a script is never run again for an
// order whose reply was lost, unless it is repeatable (a second run with the same keys and arguments takes nothing
// more); that an order with an unknown outcome is not admitted, and its units are counted; that "sold out" is answered
// from memory only as long as the reading is Options.Memory old, and otherwise from a reading that began after the
// order came.
//
// With Options.Keep it promises, too, that an order is admitted only if it has a record, which is written after its
// units were taken; that a script runs only while records can be written; that units are given back only by the script,
// the keys and the arguments that they were taken for; and that an order with a key that has a record is answered by
// it, also when the units are sold out. Without Keep it keeps no record of orders.
package script

import (
	"slices"
	"strconv"

	"sluice/proxy/reject"
)

// order is one attempt to take units, and what came of it.
type order struct {
	sku, user, serial string
	token             string // of this attempt; "" where no argument names it
	quantity          int64
	at                int64 // Unix s: when it came

	outcome outcome // of taking, and then of giving back
	extra   []any   // what the reply has behind the code: more arguments of giving back
	err     error   // of unknown, failed and notSent
}

// outcome is what came of running a script.
type outcome uint8

const (
	unknown    outcome = iota // no usable reply: units may be gone
	taken                     // or given back
	soldOut                   // nothing was taken, as with all that follow
	duplicate                 // the user, or this very order, has taken before
	busy                      // not now
	unknownSKU                // there is no such stock
	paused                    // it is not on sale
	failed                    // Redis or the script says what is wrong
	notSent                   // Redis cannot be reached
	outcomes
)

// outcomeNames are also what stock.script.codes may hold, up to paused.
func outcomeNames() [outcomes]string {
	return [outcomes]string{
		unknown: "unknown", taken: "taken", soldOut: "sold_out", duplicate: "duplicate", busy: "busy",
		unknownSKU: "unknown_sku", paused: "paused", failed: "failed", notSent: "not_sent",
	}
}

func (o outcome) String() string { return outcomeNames()[o] }

// reason is the outcome in a response.
func (o outcome) reason() reject.Reason {
	return [outcomes]reject.Reason{
		unknown: reject.StockError, taken: reject.Admitted, soldOut: reject.SoldOut, duplicate: reject.Duplicate,
		busy: reject.Concurrency, unknownSKU: reject.UnknownSKU, paused: reject.Paused, failed: reject.StockError,
		notSent: reject.StockError,
	}[o]
}

// noUnits reports whether a reason is the word of a script that took nothing: an earlier run may have taken the units.
func noUnits(reason reject.Reason) bool {
	return slices.Contains([]reject.Reason{reject.SoldOut, reject.Duplicate, reject.UnknownSKU, reject.Paused}, reason)
}

// handle names an order among those under way: with its SKU, since clients choose serials.
func (o *order) handle() string { return o.sku + " " + o.serial }

// names are what keys and arguments may name beside the SKU; keys only the first two.
func names() []string { return []string{"serial", "user", "quantity", "token", "time"} }

const (
	serialName, userName, quantityName, tokenName = 0, 1, 2, 3 // positions in names
	namesOfKeys                                   = 2
)

// values are those of names.
func (o *order) values() []string {
	return []string{o.serial, o.user, strconv.FormatInt(o.quantity, 10), o.token, strconv.FormatInt(o.at, 10)}
}
