package stockgate

import (
	"context"
	"errors"

	"sluice/stockgate/layout"
)

// Source is where the gate reads stock: a Redis. Its calls end within a bound of its own.
type Source interface {
	// Read reads all of skus in one round trip, into the first len(skus) of out. What is wrong with one
	// SKU's keys is the Fault of its reading; an error means that nothing was learnt of any of them.
	Read(ctx context.Context, skus []string, out []layout.Reading) error

	// ReadUncached is Read for SKUs that were there when they were read last, which may be cheaper. What it finds missing
	// or wrong it may look at in a second round trip.
	ReadUncached(ctx context.Context, skus []string, out []layout.Reading) error

	// Ping asks only whether the source is there.
	Ping(ctx context.Context) error
}

// Stock is one row of a list of what is for sale.
type Stock struct {
	SKU string
	layout.Reading
}

// ErrUnknownSKU is the cause when a SKU has no stock.
var ErrUnknownSKU = errors.New("no such SKU")

// readAtOnce is the most SKUs in one round trip: with at most 3 commands each, fewer than 1,000 commands.
const readAtOnce = 320
