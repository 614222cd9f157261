package proxy

import (
	"errors"
	"fmt"
	"strings"

	"sluice/proxy/limitkey"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// KeyedInFlight is a limit of the requests in flight of one key: which requests it counts, by what, and the limiter
// that counts.
type KeyedInFlight struct {
	Name       string   // a label of metrics: letters, digits and ._-
	Key        string   // variables; a request that lacks one of them is not counted
	Routes     []string // names; none = all but pass
	IPv4Prefix int      // how many bits of $remote_addr tell clients apart, 1 to 32
	IPv6Prefix int      // 1 to 128
	Observe    bool     // count its rejections, and go on
	Max        int      // for the access log and explain
	Limiter    InFlightLimiter
}

// MaxInFlightLimits is how many KeyedInFlight count on one route.
const MaxInFlightLimits = 4

// boundInFlight is a KeyedInFlight made ready for one route.
type boundInFlight struct {
	*KeyedInFlight
	key      limitkey.Key
	bound    string // what the access log says of it
	counters metrics.Rate
}

// place is one of a KeyedInFlight that a request has.
type place struct {
	of     InFlightLimiter // nil = none
	ticket uint64
}

// places are those of a request; each is given back once.
type places [MaxInFlightLimits]place

func (all *places) release() {
	for i := range all {
		if p := &all[i]; p.of != nil {
			p.of.Release(p.ticket)
			p.of = nil
		}
	}
}

func (all *places) any() bool { return *all != places{} }

// checkInFlightFull rejects a request whose key has all its places, before its body is read. It takes none. A limit
// that is only observed is asked once, by acquireInFlight.
func (p *Proxy) checkInFlightFull(r *Request) rejection {
	if r.bypass {
		return rejection{}
	}
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		key, no := r.inFlightKey(m)
		if no.Reason != reject.Admitted {
			return no
		}
		if len(key) > 0 && !m.Observe && m.Limiter.Full(key) {
			p.countInFlight(r, m, key)
			return rejection{Reason: reject.InFlight}
		}
	}
	return rejection{}
}

// acquireInFlight takes a place of each limit that counts the request.
func (p *Proxy) acquireInFlight(r *Request) rejection {
	if r.bypass {
		return rejection{}
	}
	observed := false
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		key, _ := r.inFlightKey(m) // a fault has been found by checkInFlightFull
		if len(key) == 0 {
			continue
		}
		ticket, ok := m.Limiter.Acquire(key)
		if ok {
			r.acquired.places[i] = place{m.Limiter, ticket}
			continue
		}
		p.countInFlight(r, m, key)
		if !m.Observe {
			return rejection{Reason: reject.InFlight}
		}
		observed = true
	}
	if observed { // once a request, however many limits it exceeds
		r.shard().Observed(reject.InFlight)
		r.observed = rejection{Reason: reject.InFlight}
	}
	return rejection{}
}

// inFlightKey is what m counts the request by; empty = it does not.
func (r *Request) inFlightKey(m *boundInFlight) (key []byte, no rejection) {
	key, ok, fault := m.key.Append(r.scratch.value[:0], &r.source, clientOf(&m.key, r))
	r.scratch.value = key
	if fault.Reason != reject.Admitted {
		return nil, rejected(fault)
	}
	if !ok {
		return nil, rejection{}
	}
	return key, rejection{}
}

// countInFlight counts that m rejects, and by which key.
func (p *Proxy) countInFlight(r *Request, m *boundInFlight, key []byte) {
	if count := m.counters.At(r.client.shard); m.Observe || p.Observe {
		count.Observed()
	} else {
		count.Rejected()
	}
	if !m.Observe {
		r.limit = m.bound
	}
	r.client.shard.RejectedKey(m.Name, key, r.now, func(dst []byte) []byte { return r.inFlightText(dst, m, false) })
}

// inFlightText appends the key of m for people.
func (r *Request) inFlightText(dst []byte, m *boundInFlight, open bool) []byte {
	return m.key.AppendText(dst, &r.source, clientOf(&m.key, r), open, r.proxy.counters.AppendHash)
}

// InFlightError names the limit in flight and the key of it that cannot be compiled.
type InFlightError struct {
	Limit, Key string
	Err        error
}

func (e *InFlightError) Error() string {
	return fmt.Sprintf("in_flight %q: %s: %v", e.Limit, e.Key, e.Err)
}
func (e *InFlightError) Unwrap() error { return e.Err }

// CompileInFlight reports everything that is wrong with limits in flight on routes, once nothing is wrong with these;
// each error is an *InFlightError.
func CompileInFlight(limits []KeyedInFlight, routes []Route) (errs []error) {
	bound, _, errs := bindRoutes(routes)
	if len(errs) > 0 {
		return nil
	}
	return attachInFlight(limits, bound)
}

// attachInFlight gives each route the limits in flight that count on it, in their order.
func attachInFlight(limits []KeyedInFlight, routes []boundRoute) (errs []error) {
	for i := range limits {
		in := &limits[i]
		key, err := attach(in.Routes, routes, func(on *boundRoute) error {
			m, err := bindInFlight(in, on)
			if err == nil {
				on.inFlight = append(on.inFlight, m)
			}
			return err
		})
		if err != nil {
			errs = append(errs, &InFlightError{in.Name, key, err})
		}
	}
	return errs
}

func bindInFlight(in *KeyedInFlight, on *boundRoute) (m boundInFlight, err error) {
	m = boundInFlight{KeyedInFlight: in, bound: fmt.Sprintf("limits.in_flight %s: max %d", in.Name, in.Max)}
	if m.key, err = limitkey.Compile(in.Key, on.pattern.Names(), in.IPv4Prefix, in.IPv6Prefix); err != nil {
		return m, err
	}
	if m.key.Variable().NeedsBody() && !on.limited() {
		return m, errBodyOfPass
	}
	if len(on.inFlight) == MaxInFlightLimits {
		return m, fmt.Errorf("%d limits in flight count there already: name the routes of each", MaxInFlightLimits)
	}
	return m, nil
}

var errBodyOfPass = errors.New("the bodies of a pass route are not read")

// describeInFlight completes the row of a route's limits in flight.
func (row *CheckRow) describeInFlight(limits []boundInFlight) {
	row.Observed = true
	var bounds []string
	for i := range limits {
		row.Observed = row.Observed && limits[i].Observe
		bounds = append(bounds, strings.TrimPrefix(limits[i].bound, "limits.in_flight "))
	}
	row.Value = strings.Join(bounds, ", ")
}
