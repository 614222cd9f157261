package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"sluice/proxy/limitkey"
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
	Overrides  []RateOverride
}

// RateOverride is another rate for the keys that match a pattern.
type RateOverride struct {
	Pattern   string // of a value; a CIDR where the key is $remote_addr
	Off       bool   // such requests are not counted
	Burst     int
	PerSecond float64
	Limiter   RateLimiter // nil where Off
}

// boundRate is a KeyedRate made ready for one route.
type boundRate struct {
	*KeyedRate
	key       limitkey.Key
	overrides limitkey.Overrides
	grades    []rateGrade // the rate's own, and then one for each override
	quota     []byte      // how its item of RateLimit begins
	counters  metrics.Rate
}

// rateGrade is one rate and burst of a KeyedRate.
type rateGrade struct {
	RateLimiter        // nil = what would be counted here is not
	policy      []byte // its item of RateLimit-Policy
	bound       string // what the access log says of it
}

// rateKeys are what each rate of the route counts the request by, in their order; empty = the request lacks it, or is
// not counted.
type rateKeys struct {
	keys   [][]byte
	grades []*rateGrade // by which each key is counted
	buffer []byte
}

func (k *rateKeys) reset() { k.keys, k.grades, k.buffer = k.keys[:0], k.grades[:0], k.buffer[:0] }

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
		wait, ok := r.rateKeys.grades[i].Acquire(r.now, r.rateKeys.keys[i])
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
		if _, until, _ := r.rateKeys.grades[i].Peek(r.now, r.rateKeys.keys[i]); until > 0 {
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
		m, start := &r.route.rates[i], len(k.buffer)
		key, ok, fault := m.key.Append(k.buffer, &r.source, clientOf(&m.key, r))
		if fault.Reason != reject.Admitted {
			k.keys = k.keys[:0] // no rate counts it
			return fault
		}
		grade := &m.grades[0]
		if ok {
			grade = &m.grades[1+m.overrides.Of(key[start:])]
		}
		k.buffer = key
		if !ok || grade.RateLimiter == nil {
			k.buffer = key[:start]
		}
		k.keys, k.grades = append(k.keys, k.buffer[start:len(k.buffer):len(k.buffer)]), append(k.grades, grade)
	}
	return param.Fault{}
}

// clientOf is the client of r where the key needs it; to find it takes time.
func clientOf(k *limitkey.Key, r *Request) (client netip.Addr) {
	if k.OfClient() {
		client = r.clientAddr()
	}
	return client
}

// appendText appends the key for people: networks as such, and by hash what may be a secret or a person, unless open.
func (m *boundRate) appendText(dst []byte, r *Request, open bool) []byte {
	return m.key.AppendText(dst, &r.source, clientOf(&m.key, r), open, r.proxy.counters.AppendHash)
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
		r.limit = r.rateKeys.grades[i].bound
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
		in := &rates[i]
		key, err := attach(in.Routes, routes, func(on *boundRoute) error {
			m, err := bindRate(in, on)
			if err == nil {
				on.rates = append(on.rates, m)
			}
			return err
		})
		if err != nil {
			errs = append(errs, &RateError{in.Name, key, err})
		}
	}
	return errs
}

// attach binds a keyed limit to the routes on which it counts; key is the key of it that is wrong. A limit that counts
// on all routes but pass skips those whose path lacks a name in its key: no request there has the key.
func attach(names []string, routes []boundRoute, bind func(*boundRoute) error) (key string, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(routes, func(rt boundRoute) bool { return rt.Name == name }) {
			return "routes", errors.New("there is no such route")
		}
	}
	attached, fault := 0, errors.New("every route is pass: name the routes that it shall count on")
	for i := range routes {
		named := slices.Contains(names, routes[i].Name)
		if !named && (len(names) > 0 || !routes[i].limited()) {
			continue
		}
		err := bind(&routes[i])
		if err == nil {
			attached++
			continue
		}
		if wrong := (*overrideError)(nil); errors.As(err, &wrong) {
			return "overrides", wrong.error
		}
		fault = fmt.Errorf("on route %q: %w", routes[i].Name, err)
		if named {
			return "key", fault
		}
	}
	if attached == 0 {
		return "key", fault
	}
	return "", nil
}

func bindRate(in *KeyedRate, on *boundRoute) (m boundRate, err error) {
	m = boundRate{KeyedRate: in, quota: []byte(`"` + in.Name + `";r=`)}
	if m.key, err = limitkey.Compile(in.Key, on.pattern.Names(), in.IPv4Prefix, in.IPv6Prefix); err != nil {
		return m, err
	}
	if m.key.Variable().NeedsBody() && !on.limited() {
		return m, errBodyOfPass
	}
	m.grades = append(m.grades, in.grade(in.Limiter, in.PerSecond, in.Burst, ""))
	patterns := make([]string, len(in.Overrides))
	for i, o := range in.Overrides {
		patterns[i] = o.Pattern
		if of := fmt.Sprintf(" override %q:", o.Pattern); o.Off {
			m.grades = append(m.grades, rateGrade{bound: "limits.rate " + in.Name + ":" + of + " off"})
		} else {
			m.grades = append(m.grades, in.grade(o.Limiter, o.PerSecond, o.Burst, of))
		}
	}
	if m.overrides, err = m.key.Overrides(patterns); err != nil {
		return m, &overrideError{err}
	}
	return m, nil
}

// overrideError is wrong in Overrides, and not in the key.
type overrideError struct{ error }

// grade is one rate of in; of begins with a space.
func (in *KeyedRate) grade(limiter RateLimiter, perSecond float64, burst int, of string) rateGrade {
	bound := fmt.Sprintf("limits.rate %s:%s %.3g/s, burst %d", in.Name, of, perSecond, burst)
	if in.MaxDelay > 0 {
		bound += fmt.Sprintf(", max_delay %v", in.MaxDelay)
	}
	return rateGrade{limiter, policyOf(in.Name, perSecond, burst), bound}
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
		left, _, whole := r.rateKeys.grades[i].Peek(r.now, key)
		policies = append(policies, r.rateKeys.grades[i].policy...)
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
func policyOf(name string, perSecond float64, burst int) []byte {
	policy := strconv.AppendInt([]byte(`"`+name+`";q=`), int64(burst), 10)
	window := float64(burst) / perSecond
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
