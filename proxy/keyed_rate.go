package proxy

import (
	"fmt"
	"strconv"
	"time"

	"sluice/proxy/param"
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

// Own is the rate's own grade.
func (b *boundRate) Own() *rateGrade { return &b.grades[0] }

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
