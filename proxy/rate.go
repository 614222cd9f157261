package proxy

import "time"

// KeyedRate is a keyed rate: which requests it counts, by what, and who keeps count.
type KeyedRate struct {
	Name       string   // a label of metrics, and a string in RateLimit fields: letters, digits and ._-
	Key        string   // variables; a request that lacks one of them is not counted
	Routes     []string // names; none = all but pass
	IPv4Prefix int      // how many bits of $remote_addr tell clients apart, 1 to 32
	IPv6Prefix int      // 1 to 128
	Observe    bool     // count its refusals, and go on
	Burst      int      // what RateLimit-Policy tells of it
	PerSecond  float64  // likewise
	Tokens     Tokens
}

// Tokens keeps count of what each key of one rate has used. All times are monotonic nanoseconds of the caller's clock.
type Tokens interface {
	// Take takes one token of key. When there is none it has taken nothing, and wait tells when to come back.
	Take(now int64, key []byte) (wait time.Duration, ok bool)

	// Look takes nothing. It tells how many are left, how long until there is one if none is left, and how long until
	// nothing of the burst is used.
	Look(now int64, key []byte) (left int, wait, whole time.Duration)
}

// meter is a KeyedRate made ready for one route.
type meter struct {
	*KeyedRate
	key     variable
	policy  []byte // its item of RateLimit-Policy, and how its item of RateLimit begins
	quota   []byte
	bound   string      // what the journal tells of it
	tallies []rateTally // by shard
}

// rated asks the keyed rates of the request's route. All that apply must agree: who is refused by one has used nothing
// of the others, but for a token each where somebody else took the last of one between the look and the take.
func (p *Proxy) rated(r *request) (reason Reason, wait time.Duration) {
	meters := r.route.meters
	if len(meters) == 0 || r.bypass {
		return Admitted, 0
	}
	if reason := r.findKeys(); reason != Admitted {
		return reason, 0
	}
	if len(meters) > 1 {
		if wait, ok := p.allAgree(r); !ok {
			return Rate, wait
		}
	}
	watched := false
	for i := range meters {
		if len(r.keys[i]) == 0 {
			continue
		}
		if wait, ok := meters[i].Tokens.Take(r.now, r.keys[i]); !ok {
			p.countRate(r, i)
			if !meters[i].Observe {
				return Rate, wait
			}
			watched = true
		}
	}
	if watched { // once a request, however many rates it exceeds
		r.tally().observed[Rate].Add(1)
		r.observed = Rate
	}
	return Admitted, 0
}

// allAgree looks at all rates that can refuse. When some would, it reports the longest of their waits.
func (p *Proxy) allAgree(r *request) (wait time.Duration, ok bool) {
	ok = true
	for i := range r.route.meters {
		m := &r.route.meters[i]
		if len(r.keys[i]) == 0 || m.Observe {
			continue
		}
		if left, until, _ := m.Tokens.Look(r.now, r.keys[i]); left == 0 {
			p.countRate(r, i)
			wait, ok = max(wait, until), false
		}
	}
	return wait, ok
}

// findKeys puts together what each rate of the route counts the request by; a key is empty where the request lacks it.
func (r *request) findKeys() Reason {
	r.keys, r.keyBuffer = r.keys[:0], r.keyBuffer[:0]
	for i := range r.route.meters {
		start := len(r.keyBuffer)
		key, ok, reason := r.route.meters[i].appendKey(r.keyBuffer, r)
		if reason != Admitted {
			r.keys = r.keys[:0] // no rate counts it
			return reason
		}
		r.keyBuffer = key
		if !ok {
			r.keyBuffer = key[:start]
		}
		r.keys = append(r.keys, r.keyBuffer[start:len(r.keyBuffer):len(r.keyBuffer)])
	}
	return Admitted
}

// countRate counts that a rate says no, and by which key.
func (p *Proxy) countRate(r *request, i int) {
	m := &r.route.meters[i]
	tally := &m.tallies[r.shard.index]
	if m.Observe || p.observe {
		tally.observed.Add(1)
	} else {
		tally.refused.Add(1)
	}
	if !m.Observe {
		r.limit = m.bound
	}
	r.shard.loud.note(r, m, r.keys[i])
}
