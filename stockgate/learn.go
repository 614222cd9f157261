package stockgate

import (
	"sluice/internal/octets"
	"sluice/stockgate/layout"
)

// publishReading publishes what a look that began at the time at found, if that can be believed, and wakes those who
// wait for it.
func (s *poller) publishReading(at int64, e *entry, r layout.Reading) {
	before, _ := e.reading()
	e.readings.Add(1)
	s.readings.Add(1)
	v, free := verdictOf(r), r.Free
	if v != unknown && !s.found.Load() {
		s.found.Store(true)
	}
	s.faults.report(e.sku, r.Fault)
	if v == soldOut && free < 0 && before == onSale && !e.dipped && !e.gone {
		// Shops that take first and look then go below zero and come back at once. A SKU on sale is closed by the second
		// such reading. Until then what is known stays as old as it is, and who waits goes on waiting.
		e.extendFirstRead()
		return
	}
	e.dipped = false
	if e.emptied = e.emptied || v == soldOut; e.emptied || s.rules.Load().perUnit > 0 {
		units := int64(0)
		if v == onSale {
			units = free
		}
		e.setOrderQuota(share(units, s.rules.Load().perUnit, s.instances()))
	} else if e.bounded() {
		e.left.Store(unbounded) // there is no cap any more
	}
	s.logChange(e, before, v)
	e.publish(v, free, at)
	s.track(e, v)
	e.completeFirstRead(v)
}

// verdictOf turns a reading into a verdict. Sold out comes before not on sale: it is final.
func verdictOf(r layout.Reading) verdict {
	switch {
	case r.Fault != nil:
		return faulty
	case !r.Exists:
		return unknown
	case r.Free <= 0:
		return soldOut
	case !r.OnSale:
		return notOnSale
	}
	return onSale
}

// track puts a SKU that exists among the active, which are read while they are asked for. An unknown one stays in the
// table until sold_out_ttl is over; when the table is more than half full of others it is forgotten at once, so that
// invented SKUs never take the room of real ones.
func (s *poller) track(e *entry, v verdict) {
	switch {
	case e.gone:
	case v != unknown:
		if !e.sampled {
			e.sampled = true
			s.active = append(s.active, e)
		}
	case s.table.Crowded() && e.inFlight.Load() == 0:
		s.forget(e)
	}
}

// logChange logs a SKU that sells out, returns or loses its key, a bounded number of times: stock that hovers around
// zero flaps.
func (s *poller) logChange(e *entry, before, after verdict) {
	if before == after || !s.logRate.Allow() {
		return
	}
	switch {
	case after == soldOut:
		s.log.Info("sold out", "sku", e.sku)
	case before == soldOut && after == onSale:
		s.log.Info("on sale again", "sku", e.sku)
	case after == unknown && (before == onSale || before == soldOut || before == notOnSale):
		s.log.Warn("the stock key of a SKU is gone: its orders are rejected with unknown_sku", "sku", e.sku,
			"had", e.free.Load(), "fix", "write the key again (sluice explain prints its name), or restore the data of Redis")
	}
}

// sweep removes from one part of the table what is not needed. A SKU that is asked for stays, however many
// others are invented.
func (s *poller) sweep(now int64) {
	s.table.Walk(s.part, func(e *entry) {
		if s.idle(now, e) {
			s.forget(e)
		}
	})
	s.part = (s.part + 1) % octets.TableParts
}

// forget takes e out of the table. Only the poller calls it.
func (s *poller) forget(e *entry) {
	s.table.Remove(e.sku, e)
	e.gone = true
}

// idle reports whether e may be forgotten. A request that enters in this very instant is then not counted in
// flight: the cap of max_in_flight_per_unit is one too wide, once, for a SKU that no request asked for in seconds.
func (s *poller) idle(now int64, e *entry) bool {
	if e.pending.Load() != nil || e.inFlight.Load() > 0 {
		return false
	}
	switch v, at := e.reading(); v {
	case unread:
		return now-e.asked.Load() > s.rules.Load().memory
	case unknown:
		return now-at > s.rules.Load().memory
	}
	return now-e.asked.Load() > idleAfter
}
