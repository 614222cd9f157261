package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// KeyedRate is a rate limit per key: which requests it counts, by what, and the limiter that counts.
type KeyedRate struct {
	Name       string        // a label of metrics, and a string in RateLimit fields: letters, digits and ._-
	Key        string        // variables; a request that lacks one of them is not counted
	Routes     []string      // names; none = all but pass
	IPv4Prefix int           // how many bits of $remote_addr tell clients apart, 1 to 32
	IPv6Prefix int           // 1 to 128
	Observe    bool          // count its rejections, and go on
	Burst      int           // what RateLimit-Policy says of it
	PerSecond  float64       // likewise
	MaxDelay   time.Duration // for the access log and explain; Limiter tells how long a request waits
	Limiter    RateLimiter
}

// boundRate is a KeyedRate made ready for one route.
type boundRate struct {
	*KeyedRate
	key      param.Variable
	policy   []byte // its item of RateLimit-Policy
	quota    []byte // how its item of RateLimit begins
	bound    string // what the access log says of it
	counters metrics.Rate
}

// rateKeys are what each rate of the route counts the request by, in their order; empty = the request lacks it.
type rateKeys struct {
	keys   [][]byte
	buffer []byte
}

func (k *rateKeys) reset() { k.keys, k.buffer = k.keys[:0], k.buffer[:0] }

// checkRates asks the keyed rates of the request's route. All that apply must agree: a client that one rejects has used
// nothing of the others, but for a token each where another request took the last of one between Peek and Acquire.
func (p *Proxy) checkRates(r *Request) rejection {
	if r.bypass {
		return rejection{}
	}
	if fault := r.findRateKeys(); fault.Reason != reject.Admitted {
		return rejected(fault)
	}
	rates, delay := r.route.rates, time.Duration(0)
	if len(rates) > 1 {
		if wait, ok := p.allAgree(r); !ok {
			return rejection{Reason: reject.Rate, Wait: wait}
		}
	}
	observed := false
	for i := range rates {
		if len(r.rateKeys.keys[i]) == 0 {
			continue
		}
		wait, ok := rates[i].Limiter.Acquire(r.now, r.rateKeys.keys[i])
		if ok && !rates[i].Observe && !p.Observe {
			delay = max(delay, wait)
		}
		if !ok {
			p.countRate(r, i)
			if !rates[i].Observe {
				return rejection{Reason: reject.Rate, Wait: wait}
			}
			observed = true
		}
	}
	if observed { // once a request, however many rates it exceeds
		r.shard().Observed(reject.Rate)
		r.observed = rejection{Reason: reject.Rate}
	}
	if delay > 0 {
		r.conn.StepAside() // here, so that a request without a delay, or above it, stays in the event loop
		time.Sleep(delay)
		r.checked = p.Now()
		if r.conn.Gone() {
			return rejection{Reason: reject.ClientGone}
		}
	}
	return rejection{}
}

// allAgree peeks at all rates that can reject. When some would, it reports the longest of their waits.
func (p *Proxy) allAgree(r *Request) (wait time.Duration, ok bool) {
	ok = true
	for i := range r.route.rates {
		m := &r.route.rates[i]
		if len(r.rateKeys.keys[i]) == 0 || m.Observe {
			continue
		}
		if _, until, _ := m.Limiter.Peek(r.now, r.rateKeys.keys[i]); until > 0 {
			p.countRate(r, i)
			wait, ok = max(wait, until), false
		}
	}
	return wait, ok
}

// findRateKeys puts together what each rate of the route counts the request by.
func (r *Request) findRateKeys() param.Fault {
	k := &r.rateKeys
	k.reset()
	for i := range r.route.rates {
		start := len(k.buffer)
		key, ok, fault := r.route.rates[i].appendKey(k.buffer, r)
		if fault.Reason != reject.Admitted {
			k.keys = k.keys[:0] // no rate counts it
			return fault
		}
		k.buffer = key
		if !ok {
			k.buffer = key[:start]
		}
		k.keys = append(k.keys, k.buffer[start:len(k.buffer):len(k.buffer)])
	}
	return param.Fault{}
}

// appendKey appends what m counts the request by; ok is false when the request lacks some of it. A part that stands
// twice is rejected: a client that could choose would be counted nowhere.
func (m *boundRate) appendKey(dst []byte, r *Request) (key []byte, ok bool, fault param.Fault) {
	parts := m.key.Parts()
	for i := range parts {
		part := &parts[i]
		switch {
		case part.Kind() == param.Literal: // the same for every client
			continue
		case part.Kind() == param.RemoteAddr:
			if dst, ok = m.appendClient(dst, r); !ok {
				return dst, false, fault
			}
			continue
		}
		v, fault := part.Lookup(&r.source)
		if len(v) == 0 || fault.Reason != reject.Admitted {
			return dst, false, fault
		}
		// With its length, so that no two keys are put together to the same.
		dst = binary.LittleEndian.AppendUint32(append(dst, v...), uint32(len(v)))
	}
	return dst, true, fault
}

// appendClient appends the client's network. A client that comes by a unix socket has no address.
func (m *boundRate) appendClient(dst []byte, r *Request) (key []byte, ok bool) {
	addr := r.clientAddr()
	network, err := addr.Prefix(m.prefixBits(addr.Is4()))
	if err != nil || !addr.IsValid() {
		return dst, false
	}
	sixteen := network.Addr().As16()
	return append(dst, sixteen[:]...), true
}

func (m *boundRate) prefixBits(v4 bool) int {
	if v4 {
		return m.IPv4Prefix
	}
	return m.IPv6Prefix
}

// appendText appends the key for people: networks as such, and what may be a secret or a person as a hash, unless open.
func (m *boundRate) appendText(dst []byte, r *Request, open bool) []byte {
	parts := m.key.Parts()
	for i := range parts {
		part := &parts[i]
		if part.Kind() == param.Literal {
			dst = append(dst, part.Text()...)
			continue
		}
		if i > 0 && parts[i-1].Kind() != param.Literal {
			dst = append(dst, ' ')
		}
		if part.Kind() == param.RemoteAddr {
			dst = m.appendNetwork(dst, r)
			continue
		}
		v, _ := part.Lookup(&r.source)
		if open || part.Kind() == param.Host || part.Kind() == param.Path || part.Kind() == param.Query {
			dst = append(dst, v...)
		} else {
			dst = r.proxy.counters.AppendHash(dst, v)
		}
	}
	return dst
}

func (m *boundRate) appendNetwork(dst []byte, r *Request) []byte {
	addr := r.clientAddr()
	network, err := addr.Prefix(m.prefixBits(addr.Is4()))
	switch {
	case err != nil:
		return append(dst, "no address"...)
	case network.IsSingleIP():
		return network.Addr().AppendTo(dst)
	}
	return network.AppendTo(dst)
}

// countRate counts that a rate rejects, and by which key.
func (p *Proxy) countRate(r *Request, i int) {
	m := &r.route.rates[i]
	if count := m.counters.At(r.client.shard); m.Observe || p.Observe {
		count.Observed()
	} else {
		count.Rejected()
	}
	if !m.Observe {
		r.limit = m.bound
	}
	r.client.shard.RejectedKey(m.Name, r.rateKeys.keys[i], r.now,
		func(dst []byte) []byte { return m.appendText(dst, r, false) })
}

// RateError names the keyed rate and the key of it that cannot be compiled.
type RateError struct {
	Rate, Key string
	Err       error
}

func (e *RateError) Error() string { return fmt.Sprintf("rate %q: %s: %v", e.Rate, e.Key, e.Err) }
func (e *RateError) Unwrap() error { return e.Err }

// CompileRates reports everything that is wrong with rates on routes, once nothing is wrong with these; each error is a
// *RateError.
func CompileRates(rates []KeyedRate, routes []Route) (errs []error) {
	bound, _, errs := bindRoutes(routes)
	if len(errs) > 0 {
		return nil
	}
	return attachRates(rates, bound)
}

// attachRates gives each route the rates that count on it, in their order.
func attachRates(rates []KeyedRate, routes []boundRoute) (errs []error) {
	for i := range rates {
		if err := attachRate(&rates[i], routes); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// attachRate finds the routes of one rate. One that counts on all but pass skips those whose path lacks a name in its
// key: no request there has the key.
func attachRate(in *KeyedRate, routes []boundRoute) error {
	for _, name := range in.Routes {
		if !slices.ContainsFunc(routes, func(rt boundRoute) bool { return rt.Name == name }) {
			return &RateError{in.Name, "routes", errors.New("there is no such route")}
		}
	}
	attached, fault := 0, errors.New("every route is pass: name the routes that it shall count on")
	for i := range routes {
		named := slices.Contains(in.Routes, routes[i].Name)
		if !named && (len(in.Routes) > 0 || !routes[i].limited()) {
			continue
		}
		m, err := bindRate(in, &routes[i])
		if err == nil {
			routes[i].rates = append(routes[i].rates, m)
			attached++
			continue
		}
		fault = fmt.Errorf("on route %q: %w", routes[i].Name, err)
		if named {
			return &RateError{in.Name, "key", fault}
		}
	}
	if attached == 0 {
		return &RateError{in.Name, "key", fault}
	}
	return nil
}

func bindRate(in *KeyedRate, on *boundRoute) (m boundRate, err error) {
	m = boundRate{KeyedRate: in, policy: policyOf(in), quota: []byte(`"` + in.Name + `";r=`),
		bound: fmt.Sprintf("limits.rate %s: %.3g/s, burst %d", in.Name, in.PerSecond, in.Burst)}
	if in.MaxDelay > 0 {
		m.bound += fmt.Sprintf(", max_delay %v", in.MaxDelay)
	}
	if m.key, err = param.Compile(in.Key, on.pattern.Names()); err != nil {
		return m, err
	}
	parts := m.key.Parts()
	if !slices.ContainsFunc(parts, func(part param.Part) bool { return part.Kind() != param.Literal }) {
		return m, fmt.Errorf("%q is the same for every client", in.Key)
	}
	if m.key.NeedsBody() && !on.limited() {
		return m, errors.New("the bodies of a pass route are not read")
	}
	return m, nil
}

// appendRateFields adds RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) to a response, beside
// what the upstream may have said itself: they are lists. Rates that are only observed are left out.
func (p *Proxy) appendRateFields(r *Request) {
	if !p.Responses.RateFields || len(r.rateKeys.keys) == 0 || r.status() == 101 {
		return
	}
	policies, limits := r.scratch.text[:0], r.scratch.value[:0]
	for i, key := range r.rateKeys.keys {
		m := &r.route.rates[i]
		if len(key) == 0 || m.Observe {
			continue
		}
		if len(limits) > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		left, _, whole := m.Limiter.Peek(r.now, key)
		policies = append(policies, m.policy...)
		limits = strconv.AppendInt(append(limits, m.quota...), int64(left), 10)
		limits = strconv.AppendInt(append(limits, ";t="...), int64((whole+time.Second-1)/time.Second), 10)
	}
	r.scratch.text, r.scratch.value = policies, limits
	if len(limits) > 0 {
		r.addField("RateLimit-Policy", policies)
		r.addField("RateLimit", limits)
	}
}

// policyOf is a rate's item of RateLimit-Policy: its burst, within the seconds that earn it.
func policyOf(in *KeyedRate) []byte {
	policy := strconv.AppendInt([]byte(`"`+in.Name+`";q=`), int64(in.Burst), 10)
	window := float64(in.Burst) / in.PerSecond
	if whole := int64(window); window < 1e15 { // what a structured field can hold (RFC 9651, section 3.3.1)
		if float64(whole) < window {
			whole++
		}
		if whole >= 1 {
			policy = strconv.AppendInt(append(policy, ";w="...), whole, 10)
		}
	}
	return policy
}
