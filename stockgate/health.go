package stockgate

import (
	"log/slog"
	"sync/atomic"
	"time"

	"sluice/stockgate/redisconn"
)

// health is whether the source can be reached. The poller writes it, everybody reads it.
type health struct {
	since atomic.Int64 // when it was lost, in ns, at least 1; 0 = it is there, or not tried yet
	log   *slog.Logger
	rules *atomic.Pointer[rules]

	losses redisconn.LossLog // the poller's
}

func (h *health) lost() bool { return h.since.Load() != 0 }

func (h *health) away(now int64) time.Duration {
	since := h.since.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(max(1, now-since))
}

// record records the outcome of a round trip that began at now.
func (h *health) record(now int64, err error) {
	switch {
	case err != nil:
		begins := h.since.CompareAndSwap(0, max(1, now))
		consequence, r := "orders are rejected with 503 (stock.on_error)", h.rules.Load()
		switch {
		case r.unasked:
			consequence = "no route asks for stock, so orders are forwarded, but for those that a room must let in"
		case r.observe:
			consequence = `orders are forwarded (mode = "observe")`
		case r.allow:
			consequence = `check routes forward orders without knowing the stock (stock.on_error = "allow")`
		}
		h.losses.Lost(h.log, time.Unix(0, now), begins, "cannot reach Redis; "+consequence, err)
	case h.lost():
		h.losses.Found(h.log, "Redis is reached again", "after", h.away(now).String())
		h.since.Store(0)
	}
}

// maxNamed is how many faulty SKUs are named in the log; they may be a client's invention.
const maxNamed = 256

// faults names each faulty SKU once, until it is whole again. Only the poller uses it.
type faults struct {
	named map[string]bool
	full  bool // the log says that no more are named
	log   *slog.Logger
}

func (f *faults) report(sku string, cause error) {
	switch {
	case cause == nil:
		delete(f.named, sku)
	case f.named[sku]:
	case len(f.named) < maxNamed:
		f.named[sku] = true
		f.log.Warn("cannot read the stock of a SKU; its orders are decided by stock.on_error", "sku", sku, "err", cause,
			"fix", "sluice check --online names what is wrong with its key")
	case !f.full:
		f.full = true
		f.log.Warn("more stocks cannot be read; no further ones are named", "named", maxNamed)
	}
}
