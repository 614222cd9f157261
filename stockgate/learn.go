package stockgate

import "sluice/stockgate/layout"

// learn publishes what a look that began at the time at found, if that can be believed, and wakes those who wait for it.
func (s *sampler) learn(at int64, e *entry, r layout.Reading) {
	before, _ := e.latch()
	v, free := judge(r), r.Free
	s.faults.note(e.sku, r.Fault)
	if v == soldOut && free < 0 && before == onSale && !e.dipped && !e.gone {
		// Shops that take first and look then go below zero and come back at once. A SKU on sale is closed by the second
		// such reading. Until then what is known stays as old as it is, and who waits goes on waiting.
		e.disbelieve()
		return
	}
	e.dipped = false
	if e.emptied = e.emptied || v == soldOut; e.emptied {
		units := int64(0)
		if v == onSale {
			units = free
		}
		e.ration(share(units, s.perUnit, s.instances()))
	}
	e.publish(v, free, at)
	s.tell(e.sku, before, v)
	s.place(e, v)
	e.finish(v)
}

// judge turns a reading into a verdict. Sold out comes before not on sale: it is final.
func judge(r layout.Reading) verdict {
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

// place puts a SKU that exists among the active, which are read while they are asked for. An unknown one stays in the table
// until sold_out_ttl is over; when the table is more than half full of others it is forgotten at once, so
// that invented SKUs never take the room of real ones.
func (s *sampler) place(e *entry, v verdict) {
	switch {
	case e.gone:
	case v != unknown:
		if !e.sampled {
			e.sampled = true
			s.active = append(s.active, e)
		}
	case s.table.crowded() && e.inFlight.Load() == 0:
		s.table.remove(e)
	}
}

// tell logs a latch that closes or opens, a bounded number of times: stock that hovers around zero flaps.
func (s *sampler) tell(sku string, before, after verdict) {
	if before == after || !s.latch.Allow() {
		return
	}
	switch {
	case after == soldOut:
		s.log.Info("sold out", "sku", sku)
	case before == soldOut && after == onSale:
		s.log.Info("on sale again", "sku", sku)
	}
}

// sweep removes from one part of the table what nobody needs. A SKU that is asked for stays, however many
// others are invented.
func (s *sampler) sweep(now int64) {
	s.table.walk(s.part, func(e *entry) {
		if s.idle(now, e) {
			s.table.remove(e)
		}
	})
	s.part = (s.part + 1) % parts
}

// idle reports whether e may be forgotten. A request that enters in this very instant is then not counted in
// flight: the cap of max_in_flight_per_unit is one too wide, once, for a SKU that nobody asked for in seconds.
func (s *sampler) idle(now int64, e *entry) bool {
	if e.pending.Load() != nil || e.inFlight.Load() > 0 {
		return false
	}
	switch v, at := e.latch(); v {
	case unread:
		return now-e.asked.Load() > s.memory
	case unknown:
		return now-at > s.memory
	}
	return now-e.asked.Load() > idleAfter
}
