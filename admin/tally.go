package admin

// Tally is what the gate did in a stretch of time, as far as it adds up: Requests = Admitted + all that were Rejected.
type Tally struct {
	Requests int64            `json:"requests"` // answered, by the shop or here
	Admitted int64            `json:"admitted"`
	Rejected map[string]int64 `json:"rejected"` // by reason
	// let through, although enforcing would have rejected them
	Observed            map[string]int64 `json:"observed"`
	RejectedConnections map[string]int64 `json:"rejected_connections"` // by reason, before any HTTP was read
	UpstreamRequests    int64            `json:"shop_requests"`
	UpstreamErrors      int64            `json:"shop_errors"` // of these, without an answer or with a 5xx
	Peaks               Peaks            `json:"peaks"`
}

// Peaks are the highest seconds.
type Peaks struct {
	Requests    Peak `json:"requests"` // a second, as Admitted and Rejected
	Admitted    Peak `json:"admitted"`
	Rejected    Peak `json:"rejected"`
	InFlight    Peak `json:"in_flight"`
	Queue       Peak `json:"queue"`
	UpstreamP99 Peak `json:"shop_p99_ms"`
	RedisP99    Peak `json:"redis_p99_ms"`
}

// Peak is a value and when it was; the zero Peak is none.
type Peak struct {
	Value float64 `json:"value"`
	At    int64   `json:"at"` // Unix second
}

func newTally() Tally {
	return Tally{Rejected: map[string]int64{}, Observed: map[string]int64{}, RejectedConnections: map[string]int64{}}
}

// add counts one second in.
func (t *Tally) add(s *Second) {
	rejected := s.Requests - s.Admitted
	one := Tally{
		Requests: s.Requests, Rejected: s.Rejected, Observed: s.Observed, RejectedConnections: s.RejectedConnections,
		UpstreamRequests: s.Upstream.Requests, UpstreamErrors: s.Upstream.Errors,
		Peaks: Peaks{
			Requests: Peak{perSecondOf(s.Requests, s.Span), s.At}, Admitted: Peak{perSecondOf(s.Admitted, s.Span), s.At},
			Rejected: Peak{perSecondOf(rejected, s.Span), s.At},
			InFlight: Peak{float64(s.Upstream.InFlight), s.At}, Queue: Peak{float64(s.Upstream.Queue), s.At},
			UpstreamP99: Peak{s.Upstream.P99, s.At},
		},
	}
	if s.Redis != nil {
		one.Peaks.RedisP99 = Peak{s.Redis.P99, s.At}
	}
	t.merge(&one)
}

// merge adds another stretch.
func (t *Tally) merge(o *Tally) {
	t.Requests += o.Requests
	t.UpstreamRequests += o.UpstreamRequests
	t.UpstreamErrors += o.UpstreamErrors
	for _, counts := range []struct{ to, from map[string]int64 }{{t.Rejected, o.Rejected}, {t.Observed, o.Observed},
		{t.RejectedConnections, o.RejectedConnections}} {
		for reason, n := range counts.from {
			counts.to[reason] += n
		}
	}
	t.Admitted = max(0, t.Requests-sum(t.Rejected))
	p, q := &t.Peaks, &o.Peaks
	for _, pair := range []struct{ to, from *Peak }{{&p.Requests, &q.Requests}, {&p.Admitted, &q.Admitted},
		{&p.Rejected, &q.Rejected}, {&p.InFlight, &q.InFlight},
		{&p.Queue, &q.Queue}, {&p.UpstreamP99, &q.UpstreamP99}, {&p.RedisP99, &q.RedisP99}} {
		if pair.from.Value > pair.to.Value {
			*pair.to = *pair.from
		}
	}
}

// keptMinutes is a day, for the report after a sale.
const keptMinutes = 24 * 60

// minutes are the last day, a Tally each minute. Its memory is bounded: a reason has one number a minute, and there are
// some thirty.
type minutes struct {
	ring [keptMinutes]struct {
		minute int64 // Unix seconds / 60; 0 = none yet
		tally  Tally
	}
}

func (m *minutes) add(s *Second) {
	minute := (s.At - 1) / 60 // the second ends at its at
	place := &m.ring[minute%keptMinutes]
	if place.minute != minute {
		place.minute, place.tally = minute, newTally()
	}
	place.tally.add(s)
}

// sum is what was done from one Unix second to another, by whole minutes.
func (m *minutes) sum(from, to int64) Tally {
	all := newTally()
	for i := range m.ring {
		if place := &m.ring[i]; place.minute != 0 && place.minute >= from/60 && place.minute*60 < to {
			all.merge(&place.tally)
		}
	}
	return all
}

// moments are when a SKU was first sold, and sold out; 0 = not yet, or before anybody looked.
type moments struct {
	firstSold, soldOut int64 // Unix seconds
	sold, free         int64 // as of the last look
}

// updateMoments follows the stock of now. What is no longer there is forgotten.
func (r *reading) updateMoments(all map[string]*moments, at int64) {
	for sku, s := range r.stock {
		m := all[sku]
		switch {
		case m == nil:
			all[sku] = &moments{sold: s.Sold, free: s.Free}
			continue
		case m.sold == 0 && s.Sold > 0:
			m.firstSold = at
		}
		switch {
		case s.Free > 0:
			m.soldOut = 0
		case m.free > 0:
			m.soldOut = at
		}
		m.sold, m.free = s.Sold, s.Free
	}
	for sku := range all {
		if r.stock[sku] == nil {
			delete(all, sku)
		}
	}
}
