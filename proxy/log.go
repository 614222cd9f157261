package proxy

import (
	"bytes"
	"net/netip"
	"time"
)

// Journal is told what became of requests: the access log. Neither of its methods waits for anything outside of memory.
type Journal interface {
	// Wants reports whether one more refusal at now (monotonic ns) is to be told. nth numbers those of its route and
	// reason that were counted in the same place.
	Wants(now int64, reason Reason, nth uint64) bool

	// Tell takes what became of one request. It keeps no slice of e.
	Tell(e Entry)
}

// Entry is what became of one request. Its slices belong to the request; its strings last. It has no query, no cookie
// and no header of the client's but the request id; whoever writes it down must not write User as it is.
type Entry struct {
	Shard  int // tells requests apart that would meet in one place; 0 or above
	Client netip.Addr
	ID     []byte
	Method []byte // empty when what came was no HTTP, or a connection was refused before any did
	Path   []byte // without query and path parameters; the route's pattern where the path names the user
	Route  string // "" = none took it
	Gate   Gate
	SKU    []byte
	User   []byte // a person: as the route finds it
	Serial string // of the order; "" = none is known

	Status   int           // 0 = closed without a word
	Reason   Reason        // Admitted, or why it was refused
	Observed Reason        // why enforcing would have refused what was let through; else Admitted
	Limit    string        // what refused it, and how large it is; "" = no limit did
	Wait     time.Duration // until another attempt is worth it; 0 = not known
	Version  string        // of the configuration that decided

	Sent     bool    // to the shop, or tried
	Outcome  Outcome // of Sent
	Target   string  // the last one tried
	Held     bool    // units were held for it
	Fate     Fate    // of Held
	Deadline int64   // of Held: Unix ms by the clock of whoever keeps the stock

	In, Out int64 // bytes of the bodies: announced or read, and answered; -1 = not known

	// Monotonic ns: its arrival, the decision, the shop's answer, the end of its handling. What a stream brings later is
	// not part of it.
	Came, Decided, Answered, Done int64
}

// Totals are what the gate has counted since it started.
type Totals struct {
	Refused   [numReasons]uint64 // requests; of a Server also connections
	Forwarded uint64             // requests, whatever the shop said
}

// Totals adds up all routes, those that a reload has dropped included, and the connections that were turned away.
func (s *Server) Totals() (t Totals) {
	t = s.proxy.Load().Totals()
	for reason := range t.Refused {
		t.Refused[reason] += s.refused[reason].Load()
	}
	return t
}

// Totals adds up all routes, those that a reload has dropped included.
func (p *Proxy) Totals() (t Totals) {
	c := p.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, tallies := range c.routes {
		for i := range tallies {
			for reason := range t.Refused {
				t.Refused[reason] += tallies[i].refused[reason].Load()
			}
			for outcome := range tallies[i].took {
				t.Forwarded += tallies[i].took[outcome].Count()
			}
		}
	}
	return t
}

// refused counts a refusal, and keeps what the journal would be told of it.
func (r *request) refused(reason Reason, wait time.Duration) {
	r.reason, r.wait = reason, wait
	r.nth = r.tally().refused[reason].Add(1)
}

// note tells the journal what became of the request: of all that the shop may have seen, and of the refusals that the
// journal wants. The tracer is told of what it began.
func (p *Proxy) note(r *request) {
	wanted := p.journal != nil && !r.served && (r.reason == Admitted || r.reason.unknown() || p.journal.Wants(r.now, r.reason, r.nth))
	if !wanted && !r.traced {
		return
	}
	e := p.entry(r)
	if wanted {
		p.journal.Tell(e)
	}
	if r.traced {
		p.tracer.End(r.trace, e)
	}
}

// entry is what became of the request.
func (p *Proxy) entry(r *request) Entry {
	e := Entry{
		Shard: r.shard.index, Client: r.conn.peer, ID: r.id, Method: r.method, SKU: r.sku, User: r.user, Serial: r.taken.Serial,
		Status: r.status(), Reason: r.reason, Observed: r.observed, Limit: r.limit, Wait: r.wait, Version: p.version,
		Sent: r.sent, Outcome: r.outcome, Target: r.out.Target, Fate: r.fate, Deadline: r.taken.Deadline,
		In: -1, Out: answered(r), Came: r.now, Decided: r.decided, Answered: r.answered, Done: p.clock(),
	}
	if r.route != &p.noRoute {
		e.Route, e.Gate = r.route.Name, r.route.Gate
	}
	if e.Limit == "" {
		e.Limit = p.bounds[max(r.reason, r.observed)]
	}
	e.Held = r.sent && e.Gate == Reserve && r.taken.Serial != "" && r.taken.Reason == Admitted
	if !r.sent {
		e.Decided, e.Answered = e.Done, e.Done
	}
	if len(r.method) > 0 { // it was HTTP
		e.Client, e.Path, e.In = r.clientAddr(), r.openPath(), r.announced()
	}
	return e
}

// noteTurnedAway tells the journal of a connection that was refused before any HTTP was read: the nth for that reason.
func (p *Proxy) noteTurnedAway(c *Conn, reason Reason, nth uint64) {
	now := p.clock()
	if p.journal == nil || !p.journal.Wants(now, reason, nth) {
		return
	}
	e := Entry{
		Shard: c.shard.index, Client: c.peer, Reason: reason, Limit: p.bounds[reason], Version: p.version,
		In: -1, Out: -1, Came: now, Decided: now, Answered: now, Done: now,
	}
	if c.server.TLS == nil { // else it is closed without a word
		e.Status = p.answers.rawStatus(reason)
	}
	p.journal.Tell(e)
}

// openPath is the path without what may be a secret or a person: Java's servers put the session into it, as
// "/cart;jsessionid=…".
func (r *request) openPath() []byte {
	if r.route.user.uses(pathName) {
		return r.route.shape
	}
	path, _, _ := bytes.Cut(r.path, semicolon)
	return path
}

var semicolon = []byte(";")

// announced is how long the request's body is, as far as that is known.
func (r *request) announced() int64 {
	switch {
	case r.bodyRead:
		return int64(len(r.body))
	case r.asked.Chunked:
		return -1
	default:
		return max(r.asked.ContentLength, 0)
	}
}

// answered is how long the answer's body is. A stream is not read for that.
func answered(r *request) int64 {
	resp := r.resp
	if r.reply.status != 0 {
		return int64(len(r.reply.body))
	}
	if resp.IsBodyStream() {
		return max(int64(resp.Header.ContentLength()), -1)
	}
	return int64(len(resp.Body()))
}

// String is the name in metrics and logs.
func (o Outcome) String() string { return outcomeNames[o] }

// String is the name in logs.
func (f Fate) String() string { return [...]string{"released", "confirmed", "unknown"}[f] }

// String is the name in the configuration.
func (g Gate) String() string { return [...]string{"pass", "limit", "check", "reserve"}[g] }
