package stockgate

import (
	"math"
	"time"

	"sluice/proxy/reject"
)

// rules are what a gate and its poller go by. They are replaced, and never changed.
type rules struct {
	closed [numVerdicts]reject.Reason // what a fresh sample means to a buyer
	lasts  [numVerdicts]int64         // nanoseconds for which a sample may be used
	rests  int64                      // and for which one request may use that of a SKU on sale that no request asked for
	since  int64                      // ns: no sample of before may be used

	wait    time.Duration // for one reading
	next    time.Duration // for that of the next turn
	allow   bool          // on_error
	observe bool          // mode
	unasked bool          // no route asks for stock
	again   bool          // buyers are not asked for

	refresh int64 // ns between readings of a SKU on sale
	quiet   int64 // ns between readings of one that is not, or that no request asks for
	memory  int64 // ns for which an unknown SKU is remembered
	perUnit int64
}

func rulesOf(o *Options, since int64) *rules {
	memory := int64(o.SoldOutMemory)
	r := &rules{
		closed: [numVerdicts]reject.Reason{soldOut: reject.SoldOut, notOnSale: reject.Paused,
			unknown: reject.UnknownSKU, crowded: reject.Concurrency},
		lasts: [numVerdicts]int64{
			unread:    math.MinInt64,
			onSale:    int64(max(10*o.Refresh, 200*time.Millisecond)),
			soldOut:   memory,
			notOnSale: memory,
			unknown:   memory,
			faulty:    memory,
			crowded:   math.MinInt64,
		},
		since: since, wait: o.Wait, next: o.Refresh + o.Wait, allow: o.AllowOnError, observe: o.Observe, unasked: o.Unasked, again: o.Again,
		refresh: int64(o.Refresh), quiet: int64(max(o.Refresh, o.SoldOutMemory/4)), memory: memory,
		perUnit: int64(o.PerUnit),
	}
	if o.AllowUnknown {
		r.closed[unknown] = reject.Admitted
	}
	r.rests = max(min(memory, idleAfter), r.lasts[onSale])
	return r
}

// serves reports whether a sample may be used.
func (r *rules) serves(now, at int64, v verdict) bool { return now-at <= r.lasts[v] && at >= r.since }

// Prepare checks other options; use goes by them from then on: Bought, Instances, MaxSKUs, Now and Log stay as they
// were. What was read is known still, unless it is of other keys.
func (g *Gate) Prepare(o Options, otherKeys bool) (use func(), err error) {
	o.Now = g.poller.clock
	if o, err = o.checked(); err != nil {
		return nil, err
	}
	return func() {
		since := g.rules.Load().since
		if otherKeys {
			since = g.poller.clock()
		}
		g.rules.Store(rulesOf(&o, since))
	}, nil
}
