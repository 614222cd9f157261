package proxy

import (
	"net/netip"
	"strconv"
	"time"

	"sluice/proxy/param"
	"sluice/proxy/reject"
)

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
func (p *Proxy) checkRates(r *Request) (no rejection, decided bool) {
	if r.bypass {
		return no, true
	}
	if fault := r.findRateKeys(); fault.Reason != reject.Admitted {
		return rejected(fault), true
	}
	rates, delay := r.route.rates, time.Duration(0)
	if len(rates) > 1 {
		if wait, ok := p.allAgree(r); !ok {
			return rejection{Reason: reject.Rate, Wait: wait}, true
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
				return rejection{Reason: reject.Rate, Wait: wait}, true
			}
			observed = true
		}
	}
	if observed { // once a request, however many rates it exceeds
		r.shard().Observed(reject.Rate)
		r.observed = rejection{Reason: reject.Rate}
	}
	r.wait = delay
	return no, delay <= 0
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
		key, ok, fault := m.Key.Append(k.buffer, &r.source, clientOf(&m.Key, r))
		if fault.Reason != reject.Admitted {
			k.keys = k.keys[:0] // no rate counts it
			return fault
		}
		grade := m.Own()
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

// clientOf is the client of r where the key needs it; to find it takes time.
func clientOf(k *param.LimitKey, r *Request) (client netip.Addr) {
	if k.OfClient() {
		client = r.clientAddr()
	}
	return client
}

// keyText appends the key of m for people: networks as such, and by hash what may be a secret or a person, unless open.
func (r *Request) keyText(dst []byte, m *keyedLimit, open bool) []byte {
	return m.Key.AppendText(dst, &r.source, clientOf(&m.Key, r), open, r.proxy.counters.AppendHash)
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
