package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
)

// The longest names that are looked up: beyond it the request is refused, so that no key can be made large.
const (
	maxRequestID = 128
)

// identify finds out who buys what. What the route names and the request lacks is a bad request.
func (p *Proxy) identify(r *request) Reason {
	if !r.route.gated() {
		return Admitted
	}
	if r.asked.Upgrade && !r.asked.H2C {
		return BadRequest // an order is one request and one answer, not a tunnel
	}
	if reason := p.takeBodyToRead(r); reason != Admitted {
		return reason
	}
	var reason Reason
	if !r.route.sku.empty() {
		if r.sku, reason = r.route.sku.value(r); reason != Admitted {
			return reason
		}
		if !ValidSKU(r.sku) {
			r.sku = nil
			return BadRequest
		}
	}
	if !r.route.user.empty() {
		r.user, reason = r.route.user.value(r)
		if r.route.user.proven() && len(r.user) == 0 && (reason == Admitted || reason == BadRequest) {
			return Unidentified
		}
		if reason != Admitted {
			return reason
		}
		if !validUser(r.user) {
			return BadRequest
		}
	}
	if r.route.Gate == Reserve {
		return p.identifyOrder(r)
	}
	return Admitted
}

// identifyOrder finds out how many are bought, and by which key the client knows its order.
func (p *Proxy) identifyOrder(r *request) (reason Reason) {
	amount, reason := r.route.amount.value(r)
	if reason != Admitted {
		return reason
	}
	var ok bool
	if r.quantity, ok = readQuantity(amount, p.settling.PerUser); !ok {
		return BadRequest
	}
	if r.key, reason = r.header(idempotencyKey); reason != Admitted {
		return reason
	}
	if r.key != nil && !validKey(r.key) {
		return BadRequest
	}
	return Admitted
}

// takeBodyToRead reads the body where a variable looks into it, or where it could contradict the query.
func (p *Proxy) takeBodyToRead(r *request) Reason {
	if !r.route.needsBody() {
		m := r.media()
		if !r.route.uses(arg) || m.content == otherContent && !m.odd {
			return Admitted
		}
	}
	if reason := p.takeBody(r); reason != Admitted {
		return reason
	}
	if len(r.body) > 0 && !r.readable() {
		return Ambiguous
	}
	return Admitted
}

// takeBody reads the whole body of a gated request.
func (p *Proxy) takeBody(r *request) Reason {
	return bodyFault(r.readBody(p.maxBody))
}

// bodyFault says why a body could not be read.
func bodyFault(err error) Reason {
	switch {
	case err == nil:
		return Admitted
	case errors.Is(err, errBodyTooLarge):
		return TooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return TooSlow
	}
	return Malformed
}

// takeID keeps the request id that came along when it is fit for a header and a log line; else it makes one.
func (p *Proxy) takeID(r *request) {
	if p.idHeader == "" {
		return
	}
	if id := r.asked.Peek(p.idHeader); validID(id) {
		r.id = id
		return
	}
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	r.idBuffer = hex.AppendEncode(r.idBuffer[:0], id[:])
	r.id = r.idBuffer
}

func validID(b []byte) bool {
	if len(b) == 0 || len(b) > maxRequestID {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
