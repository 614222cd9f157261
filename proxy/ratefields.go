package proxy

import (
	"math"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// The fields of draft-ietf-httpapi-ratelimit-headers-10: what the keyed rates of a route allow, and what is left of it
// to this request's keys. Rates that are only observed are not told of.

// policyOf is a rate's item of RateLimit-Policy: its burst, within the seconds that earn it.
func policyOf(in *KeyedRate) []byte {
	policy := strconv.AppendInt([]byte(`"`+in.Name+`";q=`), int64(in.Burst), 10)
	window := math.Ceil(float64(in.Burst) / in.PerSecond)
	if window >= 1 && window < 1e15 { // what a structured field can hold (RFC 9651, section 3.3.1)
		policy = strconv.AppendInt(append(policy, ";w="...), int64(window), 10)
	}
	return policy
}

// tellRates adds both fields to an answer, beside what the shop may have said itself: they are lists.
func (r *request) tellRates() {
	if len(r.keys) == 0 || r.status() == fasthttp.StatusSwitchingProtocols {
		return
	}
	r.scratch, r.text = r.scratch[:0], r.text[:0]
	for i, key := range r.keys {
		m := &r.route.meters[i]
		if len(key) == 0 || m.Observe {
			continue
		}
		if len(r.text) > 0 {
			r.scratch, r.text = append(r.scratch, ", "...), append(r.text, ", "...)
		}
		left, _, whole := m.Tokens.Look(r.now, key)
		r.scratch = append(r.scratch, m.policy...)
		r.text = strconv.AppendInt(append(r.text, m.quota...), int64(left), 10)
		r.text = strconv.AppendInt(append(r.text, ";t="...), int64((whole+time.Second-1)/time.Second), 10)
	}
	if len(r.text) > 0 {
		r.addBytes("RateLimit-Policy", r.scratch)
		r.addBytes("RateLimit", r.text)
	}
}
