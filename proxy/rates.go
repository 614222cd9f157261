package proxy

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// RateLimiter counts what each key of one keyed rate has used.
type RateLimiter interface {
	// Acquire takes one token of key; the caller sleeps for wait, then goes on. When it is rejected it has taken nothing,
	// and wait tells when to come back.
	Acquire(now int64, key []byte) (wait time.Duration, ok bool)

	// Peek takes nothing. It tells how many tokens are left, how long until Acquire takes one, 0 = at once, and how long
	// until nothing of the burst is used.
	Peek(now int64, key []byte) (left int, wait, whole time.Duration)
}

// Rate is a rate limit per key: which requests it counts, by what, and the limiter that counts.
type Rate struct {
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

// boundRate is a Rate made ready for one route.
type boundRate struct {
	keyedLimit
	Quota     []byte // how its item of RateLimit begins
	overrides param.Overrides
	grades    []rateGrade // the rate's own, and then one for each override
	strictest int         // of grades: the one with the lowest rate
}

// rateGrade is one rate and burst of a Rate.
type rateGrade struct {
	RateLimiter        // nil = what would be counted here is not
	Policy      []byte // its item of RateLimit-Policy
	Bound       string // what the access log says of it
}

// Grade is what holds for a key, as Key appends it. A value that is too long to be compared with the overrides has the
// lowest rate of all: a client that chooses its own key must not step out of a lower rate by a long one.
func (b *boundRate) Grade(key []byte) *rateGrade {
	at := b.overrides.Of(key)
	if at == param.ValueTooLong {
		return &b.grades[b.strictest]
	}
	return &b.grades[1+at]
}

// bindRates gives each route the rates that count on it, in their order. Each error is a *LimitError.
func bindRates(rates []Rate, routes []keyedRoute) (bound [][]boundRate, errs []error) {
	bound = make([][]boundRate, len(routes))
	for i := range rates {
		in := &rates[i]
		key, err := bindLimit(in.Routes, routes, func(at int) error {
			m, err := in.bind(&routes[at])
			if err == nil {
				bound[at] = append(bound[at], m)
			}
			return err
		})
		if err != nil {
			errs = append(errs, &LimitError{"rate", in.Name, key, err})
		}
	}
	return bound, errs
}

func (r *Rate) bind(on *keyedRoute) (m boundRate, err error) {
	m = boundRate{keyedLimit: keyedLimit{Name: r.Name, Observe: r.Observe}, Quota: []byte(`"` + r.Name + `";r=`)}
	if m.Key, err = on.key(r.Key, r.IPv4Prefix, r.IPv6Prefix); err != nil {
		return m, err
	}
	m.grades = append(m.grades, r.grade(r.Limiter, r.PerSecond, r.Burst, ""))
	patterns, lowest := make([]string, len(r.Overrides)), r.PerSecond
	for i, o := range r.Overrides {
		patterns[i] = o.Pattern
		if of := fmt.Sprintf(" override %q:", o.Pattern); o.Off {
			m.grades = append(m.grades, rateGrade{Bound: "limits.rate " + r.Name + ":" + of + " off"})
		} else {
			m.grades = append(m.grades, r.grade(o.Limiter, o.PerSecond, o.Burst, of))
			if o.PerSecond < lowest {
				lowest, m.strictest = o.PerSecond, i+1
			}
		}
	}
	if m.overrides, err = m.Key.Overrides(patterns); err != nil {
		return m, &overrideError{err}
	}
	return m, nil
}

// grade is one rate of in; of begins with a space.
func (r *Rate) grade(limiter RateLimiter, perSecond float64, burst int, of string) rateGrade {
	bound := fmt.Sprintf("limits.rate %s:%s %.3g/s, burst %d", r.Name, of, perSecond, burst)
	if r.MaxDelay > 0 {
		bound += fmt.Sprintf(", max_delay %v", r.MaxDelay)
	}
	return rateGrade{limiter, policyOf(r.Name, perSecond, burst), bound}
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
	return p.sleep(r, delay)
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
		key, ok, fault := m.Key.Append(k.buffer, &r.source, keyClient(&m.Key, r))
		if fault.Reason != reject.Admitted {
			k.keys = k.keys[:0] // no rate counts it
			return fault
		}
		grade := &m.grades[0] // the rate's own
		if ok {
			grade = m.Grade(key[start:])
		}
		k.buffer = key
		if !ok || grade.RateLimiter == nil {
			k.buffer = key[:start]
		}
		k.keys, k.grades = append(k.keys, k.buffer[start:len(k.buffer):len(k.buffer)]), append(k.grades, grade)
	}
	return param.Fault{}
}

// keyClient is the client of r where the key needs it; to find it takes time.
func keyClient(k *param.LimitKey, r *Request) (client netip.Addr) {
	if k.OfClient() {
		client = r.clientAddr()
	}
	return client
}

// keyText appends the key of m for people: networks as such, and by hash what may be a secret or a person, unless open.
func (r *Request) keyText(dst []byte, m *keyedLimit, open bool) []byte {
	return m.Key.AppendText(dst, &r.source, keyClient(&m.Key, r), open, r.proxy.counters.AppendHash)
}

// countRate counts that the i-th rate of the route rejects.
func (p *Proxy) countRate(r *Request, i int) {
	p.countLimit(r, &r.route.rates[i].keyedLimit, r.rateKeys.grades[i].Bound, r.rateKeys.keys[i])
}

// countLimit counts that a limit by key rejects, and which key. bound says how large it is.
func (p *Proxy) countLimit(r *Request, m *keyedLimit, bound string, key []byte) {
	if count := m.Counters.At(r.client.shard); m.Observe || p.Observe {
		count.Observed()
	} else {
		count.Rejected()
	}
	if !m.Observe {
		r.limit = bound
	}
	r.client.shard.RejectedKey(m.Name, key, r.now, func(dst []byte) []byte { return r.keyText(dst, m, false) })
}

// appendRateFields adds RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) to a response, beside
// what the upstream may have said itself: they are lists. Rates that are only observed are left out.
func (p *Proxy) appendRateFields(r *Request) {
	if !p.Responses.RateFields || len(r.rateKeys.keys) == 0 || r.ctx.Response.StatusCode() == 101 {
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
		policies = append(policies, r.rateKeys.grades[i].Policy...)
		limits = strconv.AppendInt(append(limits, m.Quota...), int64(left), 10)
		limits = strconv.AppendInt(append(limits, ";t="...), int64((whole+time.Second-1)/time.Second), 10)
	}
	r.scratch.text, r.scratch.value = policies, limits
	if len(limits) > 0 {
		r.ctx.Response.Header.AddBytesV("RateLimit-Policy", policies)
		r.ctx.Response.Header.AddBytesV("RateLimit", limits)
	}
}
