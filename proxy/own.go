package proxy

import (
	"bytes"
	"time"
)

// ownPaths is where the gate answers itself, before any route.
const ownPaths = "/.sluice/"

// answers is how the gate answers a request of its own: with a whole answer and Admitted, or not at all.
type answers func(p *Proxy, r *request) (reason Reason, wait time.Duration)

// own finds out whether the gate answers r itself, and how; nil = it is for the shop.
func (p *Proxy) own(r *request) answers {
	target := r.asked.Target()
	if !bytes.HasPrefix(target, []byte(ownPaths)) || !reads(r.asked.Method()) {
		return nil
	}
	switch {
	case asksClient(target):
		return (*Proxy).answerClient
	case p.orders != nil && bytes.HasPrefix(target, []byte(statePath)):
		return (*Proxy).answerState
	case p.shelf != nil && asksStock(target):
		return (*Proxy).answerStock
	}
	return nil
}

// tell answers a request of the gate's own, within the limits of such questions.
func (p *Proxy) tell(r *request, answer answers) {
	p.takeID(r)
	r.asking = true
	r.method, r.path = r.asked.Method(), nil
	reason, wait := p.mayAsk(r)
	if reason == Admitted || p.lets(r, reason) {
		reason, wait = answer(p, r)
	}
	if reason != Admitted {
		r.refused(reason, wait)
		p.refuse(r, reason, wait)
	}
}

// mayAsk asks the limits of questions. How many go on to a store, that bounds itself.
func (p *Proxy) mayAsk(r *request) (reason Reason, wait time.Duration) {
	if p.denied(r) {
		return DeniedIP, 0
	}
	return p.paced(r)
}
