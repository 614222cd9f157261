package driver

import (
	"crypto/rand"

	"sluice/proxy"
)

// tooLate is what an order hears that waited for too long to be asked for.
const tooLate = notSent + 1

// reasons say in the gate's words what a driver said.
var reasons = [...]proxy.Reason{
	unsure:    proxy.StockError,
	taken:     proxy.Admitted,
	notEnough: proxy.SoldOut,
	unknown:   proxy.UnknownSKU,
	offSale:   proxy.Paused,
	repeated:  proxy.Duplicate,
	voided:    proxy.Released,
	contended: proxy.Concurrency,
	faulty:    proxy.StockError,
	notSent:   proxy.StockError,
	tooLate:   proxy.Concurrency,
}

// unique names an order that the client did not name.
func unique() string { return rand.Text() }
