package stockgate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"
)

// Options are the keys under [stock] that concern reading, with their defaults where a field is zero.
type Options struct {
	Refresh       time.Duration // how often the SKUs that a request has asked for since are read; 10ms
	SoldOutMemory time.Duration // a sold-out, paused or unknown SKU is looked at again after at most this; 1s
	PerUnit       int           // requests that a reading admits for each unit left, with those in flight; 0 = no cap
	Instances     func() int    // that guard the same stock, and divide the tries for units that came back; this one alone
	AllowOnError  bool          // admit when the stock cannot be known, instead of StockError
	Observe       bool          // what would be rejected is forwarded: for the log
	Unasked       bool          // no route asks for stock: for the log
	AllowUnknown  bool          // admit SKUs without a key, instead of UnknownSKU
	MaxSKUs       int           // SKUs that are remembered at one time; 100,000
	Wait          time.Duration // for one look at a SKU: a little more than one command may take; 150ms

	// Bought asks for all buyers in one round trip whether they have bought before, in their Bought and Fault; an
	// error means that nothing was learnt. It ends within a bound of its own. nil = buyers may come again.
	Bought func(context.Context, []Buyer) error
	Again  bool // buyers may come again, although Bought knows them

	Now func() int64 // the clock whose nanoseconds the callers pass; required
	Log *slog.Logger // changes of state, and faulty keys; slog.Default
}

// checked fills in the defaults.
func (o Options) checked() (Options, error) {
	o.Refresh = cmp.Or(o.Refresh, 10*time.Millisecond)
	o.SoldOutMemory = cmp.Or(o.SoldOutMemory, time.Second)
	o.Wait = cmp.Or(o.Wait, 150*time.Millisecond)
	o.MaxSKUs = cmp.Or(o.MaxSKUs, 100_000)
	if o.Instances == nil {
		o.Instances = func() int { return 1 }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	switch {
	case o.Now == nil:
		return o, errors.New("stock gate: no clock")
	case o.Refresh < 0 || o.SoldOutMemory < 0 || o.Wait < 0 || o.PerUnit < 0 || o.MaxSKUs < 0:
		return o, errors.New(
			"stock gate: refresh, sold_out_ttl, wait, max_in_flight_per_unit and max_skus must not be negative")
	}
	return o, nil
}
