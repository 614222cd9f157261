package proxy

import (
	"fmt"
	"strings"

	"sluice/proxy/reject"
)

// InFlightLimiter limits how many requests of one key the upstream has at the same time.
type InFlightLimiter interface {
	// Full tells whether Acquire would reject, since key has as many as it may.
	Full(key []byte) bool

	// Acquire takes a place of key, which its ticket gives back.
	Acquire(key []byte) (ticket uint64, ok bool)

	// Release gives a place back, once.
	Release(ticket uint64)
}

// InFlight is a limit of the requests in flight of one key: which requests it counts, by what, and the limiter
// that counts.
type InFlight struct {
	Name    string   // a label of metrics: letters, digits and ._-
	Key     string   // variables; a request that lacks one of them is not counted
	Routes  []string // names; none = all but pass
	Observe bool     // count its rejections, and go on
	Max     int      // for the access log and explain
	Limiter InFlightLimiter
}

// How many bits of $remote_addr tell clients apart whose requests in flight are limited: a client of IPv6 has a /64.
const (
	ClientIPv4Bits = 32
	ClientIPv6Bits = 64
)

// maxInFlightLimits is how many InFlight count on one route.
const maxInFlightLimits = 4

// boundInFlight is an InFlight made ready for one route.
type boundInFlight struct {
	keyedLimit
	Bound   string // what the access log says of it
	Limiter InFlightLimiter
}

// bindInFlight gives each route the limits in flight that count on it, in their order. Each error is a *LimitError.
func bindInFlight(limits []InFlight, routes []keyedRoute) (bound [][]boundInFlight, errs []error) {
	bound = make([][]boundInFlight, len(routes))
	for i := range limits {
		in := &limits[i]
		key, err := bindLimit(in.Routes, routes, func(at int) error {
			m := boundInFlight{keyedLimit: keyedLimit{Name: in.Name, Observe: in.Observe}, Limiter: in.Limiter,
				Bound: fmt.Sprintf("limits.in_flight %s: max %d", in.Name, in.Max)}
			var err error
			if m.Key, err = routes[at].key(in.Key, ClientIPv4Bits, ClientIPv6Bits); err != nil {
				return err
			}
			if len(bound[at]) == maxInFlightLimits {
				return fmt.Errorf("%d limits in flight count there already: name the routes of each", maxInFlightLimits)
			}
			bound[at] = append(bound[at], m)
			return nil
		})
		if err != nil {
			errs = append(errs, &LimitError{"in_flight", in.Name, key, err})
		}
	}
	return bound, errs
}

// placesInFlight are those that one request has taken, of each limit of its route; each is given back once.
type placesInFlight [maxInFlightLimits]struct {
	of     InFlightLimiter // nil = none
	ticket uint64
}

// Acquire takes a place of the i-th limit of the route.
func (p *placesInFlight) Acquire(i int, of InFlightLimiter, key []byte) (ok bool) {
	ticket, ok := of.Acquire(key)
	if ok {
		p[i].of, p[i].ticket = of, ticket
	}
	return ok
}

// Release gives all of them back.
func (p *placesInFlight) Release() {
	for i := range p {
		if place := &p[i]; place.of != nil {
			place.of.Release(place.ticket)
			place.of = nil
		}
	}
}

// Any reports whether there is one.
func (p *placesInFlight) Any() bool { return *p != placesInFlight{} }

// describeInFlight says for people how large the limits of a route are, and whether all of them only observe.
func describeInFlight(limits []boundInFlight) (bounds string, observed bool) {
	observed = true
	var all []string
	for i := range limits {
		observed = observed && limits[i].Observe
		all = append(all, strings.TrimPrefix(limits[i].Bound, "limits.in_flight "))
	}
	return strings.Join(all, ", "), observed
}

// inFlightFull rejects a request whose key has all its places, before its body is read. It takes none. A limit
// that is only observed is asked once, by acquireInFlight.
func (p *Proxy) inFlightFull(r *Request) rejection {
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		key, no := r.inFlightKey(m)
		if no.Reason != reject.Admitted {
			return no
		}
		if len(key) > 0 && !m.Observe && m.Limiter.Full(key) {
			p.countLimit(r, &m.keyedLimit, m.Bound, key)
			return rejection{Reason: reject.InFlight}
		}
	}
	return rejection{}
}

// acquireInFlight takes a place of each limit that counts the request.
func (p *Proxy) acquireInFlight(r *Request) rejection {
	observed := false
	for i := range r.route.inFlight {
		m := &r.route.inFlight[i]
		key, no := r.inFlightKey(m)
		if no.Reason != reject.Admitted {
			return no
		}
		if len(key) == 0 {
			continue
		}
		if r.acquired.places.Acquire(i, m.Limiter, key) {
			continue
		}
		p.countLimit(r, &m.keyedLimit, m.Bound, key)
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
	key, ok, fault := m.Key.Append(r.scratch.value[:0], &r.source, keyClient(&m.Key, r))
	r.scratch.value = key
	if fault.Reason != reject.Admitted {
		return nil, rejected(fault)
	}
	if !ok {
		return nil, rejection{}
	}
	return key, rejection{}
}
