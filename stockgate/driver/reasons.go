package driver

import (
	"crypto/rand"

	"sluice/proxy/reject"
)

// tooLate is what an order hears that waited for too long to be asked for.
const tooLate = notSent + 1

// reasons say in the gate's words what a driver said.
var reasons = [...]reject.Reason{
	unsure:    reject.StockError,
	taken:     reject.Admitted,
	notEnough: reject.SoldOut,
	unknown:   reject.UnknownSKU,
	offSale:   reject.Paused,
	repeated:  reject.Duplicate,
	voided:    reject.Released,
	contended: reject.Concurrency,
	faulty:    reject.StockError,
	notSent:   reject.StockError,
	tooLate:   reject.Concurrency,
}

// unique names an order that the client did not name.
func unique() string { return rand.Text() }
