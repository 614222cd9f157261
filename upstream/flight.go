package upstream

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// flight is an exchange of a client in a loop, which waits there for the answer, too: no goroutine does. Whatever else has to be waited
// for, and an answer that does not come whole or not before long, is for a goroutine, by the same code as any other exchange.
type flight struct {
	exchange
	pool   *Pool
	target *target
	client *proxy.Looped
	out    *proxy.Outgoing
	resp   *fasthttp.Response
	began  time.Duration // by the Pool's clock
	sent   bool          // the request, to its end
	err    error         // why it was not
	late   bool          // it rests no more
}

// Begin implements proxy.Launcher.
func (p *Pool) Begin(out *proxy.Outgoing, resp *fasthttp.Response, client *proxy.Looped) (proxy.Flight, proxy.Outcome) {
	f, outcome := p.send(out, resp, nil, client)
	if f == nil {
		return nil, outcome
	}
	return f, outcome
}

// shortRest is the least that a rest is worth, and about half of what a loop may take to see that one has lasted for too long.
const shortRest = 150 * time.Millisecond

// inLoop is for how long an answer may be waited for in a loop, so much less than half of its time that a goroutine is there
// before its end, and keeps that as ever.
func (p *patience) inLoop() time.Duration { return min(p.answer, p.whole)/2 - shortRest }

// begin sends out on an idle connection that is at hand. It does not wait, and returns nil where nothing was sent.
func (t *target) begin(out *proxy.Outgoing, resp *fasthttp.Response, start time.Duration, client *proxy.Looped) *flight {
	if t.tls != nil || t.wrap != nil || out.BodyStream != nil || !t.fits(out) || t.patience.inLoop() < shortRest {
		return nil
	}
	for range staleTries {
		c := t.popIdle(out.Order, start)
		if c == nil {
			return nil
		}
		if !c.sit(client) {
			if !t.push(c) {
				t.drop(c)
			}
			return nil
		}
		f := &c.flight
		*f = flight{
			exchange: exchange{patience: t.patience, conn: c, start: t.clock.at(start)},
			target:   t, client: client, out: out, resp: resp, began: start,
		}
		if f.depart(); f.err != errStale {
			t.counters.inFlight.Add(1)
			return f
		}
		t.drop(c)
	}
	return nil
}

// fits reports that out leaves in one piece.
func (t *target) fits(out *proxy.Outgoing) bool {
	return len(out.Line)+len(out.Host)+len(t.authority)+len(out.Fields)+len(out.Body)+len("Host: \r\n\r\n") <= smallRequest
}

// sit has the client's loop wait for c as well, or another where one does already.
func (c *conn) sit(client *proxy.Looped) bool {
	if c.seat == nil && c.trip.able() {
		c.seat, _ = client.Guest(c.trip.raw)
	}
	return c.seat != nil
}

// depart writes the request, as far as that needs no waiting.
func (f *flight) depart() {
	c := f.conn
	c.assemble(f.out, f.target.authority)
	if f.err = c.answerWithin(f.start, min(f.answer, f.whole)); f.err != nil {
		return
	}
	c.seat.Hush()
	f.sent, f.err = c.trip.depart()
}

// Rest implements proxy.Flight.
func (f *flight) Rest(owner any) bool {
	if f.late || !f.sent || f.err != nil {
		return false
	}
	seat := f.conn.seat
	seat.Owner = owner
	rests, err := seat.Rest(f.inLoop())
	if err != nil {
		f.late = true
	}
	return rests
}

// Hurry implements proxy.Flight.
func (f *flight) Hurry() { f.late = true }

// End implements proxy.Flight.
func (f *flight) End() (outcome proxy.Outcome, ended bool) {
	c, t := f.conn, f.target
	defer t.salvage(&c)
	if f.sent && f.err == nil && !f.arrive() {
		c = nil // still the flight's
		return 0, false
	}
	c.in.aside = f.client
	if !f.sent && f.err == nil {
		f.client.StepAside()
		_, f.err = c.Write(c.out[c.socket.written:]) // the socket's buffer was full
	}
	outcome, fate := f.conclude(f.out, f.resp, t, false, f.err)
	p, client, out, resp, began := f.pool, f.client, f.out, f.resp, f.began
	*f = flight{} // the connection is another's soon
	end := t.clock.now()
	if fate != lend {
		t.release(c, fate, end)
		t.counters.inFlight.Add(-1)
	}
	c = nil
	if outcome == proxy.NotSent && t.retry {
		client.StepAside()
		_, outcome = p.send(out, resp, nil, nil)
		return outcome, true
	}
	t.counters.count(outcome, resp, end-began)
	return outcome, true
}

// arrive takes what has come. It reports false when nothing has, and the loop is to go on waiting.
func (f *flight) arrive() bool {
	f.conn.seat.Hush()
	return f.conn.trip.arrive() || f.late
}
