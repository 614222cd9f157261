// Package keyed is what limits by key are bound to before they count: which requests of which routes, by what key, and
// within which bound.
//
// It promises that a limit which could never count is an error. It counts nothing, and rejects no request.
package keyed

import (
	"fmt"
	"strconv"
	"time"

	"sluice/proxy/param"
)

// RateLimiter counts what each key of one keyed rate has used.
type RateLimiter interface {
	// Acquire takes one token of key; the caller sleeps for wait, then goes on. When it is rejected it has taken
	// nothing, and wait tells when to come back.
	Acquire(now int64, key []byte) (wait time.Duration, ok bool)

	// Peek takes nothing. It tells how many tokens are left, how long until Acquire takes one, 0 = at once, and how
	// long until nothing of the burst is used.
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

// BoundRate is a Rate made ready for one route.
type BoundRate struct {
	Limit
	Quota     []byte // how its item of RateLimit begins
	overrides param.Overrides
	grades    []Grade // the rate's own, and then one for each override
	strictest int     // of grades: the one with the lowest rate
}

// Grade is one rate and burst of a Rate.
type Grade struct {
	RateLimiter        // nil = what would be counted here is not
	Policy      []byte // its item of RateLimit-Policy
	Bound       string // what the access log says of it
}

// Grade is what holds for a key, as Key appends it. A value that is too long to be compared with the overrides has the
// lowest rate of all: a client that chooses its own key must not step out of a lower rate by a long one.
func (m *BoundRate) Grade(key []byte) *Grade {
	at := m.overrides.Of(key)
	if at == param.ValueTooLong {
		return &m.grades[m.strictest]
	}
	return &m.grades[1+at]
}

// Own is the rate's own grade.
func (m *BoundRate) Own() *Grade { return &m.grades[0] }

// BindRates gives each route the rates that count on it, in their order. Each error is an *Error.
func BindRates(rates []Rate, routes []Route) (bound [][]BoundRate, errs []error) {
	bound = make([][]BoundRate, len(routes))
	for i := range rates {
		in := &rates[i]
		key, err := bind(in.Routes, routes, func(at int) error {
			m, err := in.bind(&routes[at])
			if err == nil {
				bound[at] = append(bound[at], m)
			}
			return err
		})
		if err != nil {
			errs = append(errs, &Error{"rate", in.Name, key, err})
		}
	}
	return bound, errs
}

func (in *Rate) bind(on *Route) (m BoundRate, err error) {
	m = BoundRate{Limit: Limit{Name: in.Name, Observe: in.Observe}, Quota: []byte(`"` + in.Name + `";r=`)}
	if m.Key, err = on.key(in.Key, in.IPv4Prefix, in.IPv6Prefix); err != nil {
		return m, err
	}
	m.grades = append(m.grades, in.grade(in.Limiter, in.PerSecond, in.Burst, ""))
	patterns, lowest := make([]string, len(in.Overrides)), in.PerSecond
	for i, o := range in.Overrides {
		patterns[i] = o.Pattern
		if of := fmt.Sprintf(" override %q:", o.Pattern); o.Off {
			m.grades = append(m.grades, Grade{Bound: "limits.rate " + in.Name + ":" + of + " off"})
		} else {
			m.grades = append(m.grades, in.grade(o.Limiter, o.PerSecond, o.Burst, of))
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
func (in *Rate) grade(limiter RateLimiter, perSecond float64, burst int, of string) Grade {
	bound := fmt.Sprintf("limits.rate %s:%s %.3g/s, burst %d", in.Name, of, perSecond, burst)
	if in.MaxDelay > 0 {
		bound += fmt.Sprintf(", max_delay %v", in.MaxDelay)
	}
	return Grade{limiter, policyOf(in.Name, perSecond, burst), bound}
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
