// Package upstream brings requests to the protected shop and its answers back.
//
// It promises that no request of which one byte was written is ever written again; that an answer goes
// to the request it belongs to, since a connection about which there is any doubt is closed and not
// pooled; and that what cannot be answered is told apart: certainly not sent, or unknown.
//
// It refuses to queue, to follow redirects, to repair answers that are not well-formed, to add a header,
// and to repeat anything, be it ever so idempotent, once it was written. It speaks HTTP/1.1 only.
package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// Pool is the shop: its targets, and the connections to them. It is safe for concurrent use.
type Pool struct {
	options Options
	clock   clock
	headers *headers
	room    *room
	desc    descriptions
	targets atomic.Pointer[targets]

	mu      sync.Mutex // of Replace and Close
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
}

var _ proxy.Shop = (*Pool)(nil)

// New checks o and starts a Pool. No connection is opened before the first request or health check.
func New(o Options) (*Pool, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = defaultMaxAnswer
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pool{
		options: o,
		clock:   clock{epoch: time.Now()},
		headers: newHeaders(),
		room:    newRoom(storeRoom),
		desc:    describe(),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	pick, err := policyNamed(o.Policy)
	if err != nil {
		return nil, err
	}
	p.targets.Store(&targets{turn: new(atomic.Uint64), pick: pick})
	if err := p.Replace(o.Targets); err != nil {
		return nil, err
	}
	go p.reapIdle()
	return p, nil
}

// Send implements proxy.Shop. Its bounds in time are those of Options; it waits for nothing else. The
// body of resp may be a stream (without a length only if out.Stream), which then must be closed. What is left in resp
// after another outcome than Answered is an untouched header and an empty body.
func (p *Pool) Send(out *proxy.Outgoing, resp *fasthttp.Response) proxy.Outcome {
	_, outcome := p.send(out, resp, nil, nil)
	return outcome
}

// send tries one target after another as long as it is certain that nothing was written. For a client in a loop the first of
// them may leave it at a flight, from which the outcome will come.
func (p *Pool) send(out *proxy.Outgoing, resp *fasthttp.Response, tun *tunnel, client *proxy.Looped) (*flight, proxy.Outcome) {
	ts := p.targets.Load()
	start := p.clock.now()
	now := start
	for tried := uint64(0); now-start < p.options.Timeout; now = p.clock.now() {
		i := ts.choose(tried, out.Key, now)
		if i < 0 {
			break
		}
		tried |= 1 << i
		out.Target = ts.all[i].url
		if client != nil {
			if f := ts.all[i].begin(out, resp, now, client); f != nil {
				f.pool = p
				return f, proxy.NotSent
			}
			client.StepAside()
			client = nil
		}
		outcome := ts.all[i].send(out, resp, now, tun)
		if outcome != proxy.NotSent {
			return nil, outcome
		}
		if anew := p.targets.Load(); anew != ts {
			ts, tried = anew, 0 // the target was removed under our hands
		} else if p.options.Retry == "off" {
			break
		}
	}
	return nil, proxy.NotSent
}

// Up reports whether any target is well, as far as is known.
func (p *Pool) Up() bool {
	now := p.clock.now()
	for _, t := range p.targets.Load().all {
		if t.usable(now) {
			return true
		}
	}
	return false
}

// State is how one target is at the moment.
type State struct {
	Target   string
	Healthy  bool // passes its health checks, or has none
	Ejected  bool // out of the choice for a while, after connect errors
	InFlight int  // requests
	Open     int  // connections, idle ones included
	Idle     int  // connections
}

// Targets returns the state of every target, in the order of the configuration.
func (p *Pool) Targets() []State {
	now := p.clock.now()
	all := p.targets.Load().all
	states := make([]State, 0, len(all))
	for _, t := range all {
		t.mu.Lock()
		open, idle := t.open, len(t.idle)
		t.mu.Unlock()
		states = append(states, State{
			Target: t.url, Healthy: !t.health.down.Load(), Ejected: t.ejection.out(now),
			InFlight: int(t.counters.inFlight.Load()), Open: open, Idle: idle,
		})
	}
	return states
}

var errPoolClosed = errors.New("replace targets: pool is closed")

// Replace sets the targets anew. A target that stays keeps its connections, health and counters; one
// that goes finishes the exchanges it has. An error changes nothing.
func (p *Pool) Replace(urls []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errPoolClosed
	}
	old := p.targets.Load()
	next := &targets{turn: old.turn, pick: old.pick}
	added, err := p.arrange(next, old, urls)
	if err != nil {
		return err
	}
	if p.options.Health.Path != "" {
		for _, t := range added {
			t.watch(p.options.Health)
		}
	}
	p.targets.Store(next)
	for _, t := range old.all {
		if next.find(t.url) == nil {
			t.retire()
			t.stopWatching()
			t.names.close()
		}
	}
	return nil
}

// arrange fills next with the targets of urls, those of old where it has them, and returns the new ones.
func (p *Pool) arrange(next, old *targets, urls []string) (added []*target, err error) {
	if len(urls) == 0 || len(urls) > maxTargets {
		return nil, fmt.Errorf("read targets: there are %d, not 1 to %d", len(urls), maxTargets)
	}
	for _, u := range urls {
		if next.find(u) != nil {
			return nil, fmt.Errorf("read target %q: given twice", u)
		}
		t := old.find(u)
		if t == nil {
			a, err := parseAddress(u)
			if err != nil {
				return nil, err
			}
			t = p.newTarget(a)
			added = append(added, t)
		}
		next.all = append(next.all, t)
	}
	return added, nil
}

func (ts *targets) find(url string) *target {
	for _, t := range ts.all {
		if t.url == url {
			return t
		}
	}
	return nil
}

func (p *Pool) newTarget(a address) *target {
	o := &p.options
	return &target{
		dialer:   newDialer(a, o.ConnectTimeout, o.TLS, o.Wrap),
		maxConns: o.MaxConns,
		maxIdle:  o.IdleConnTimeout,
		patience: patience{answer: o.ResponseTimeout, whole: o.Timeout, most: o.MaxAnswer},
		retry:    o.Retry == "connect",
		headers:  p.headers,
		room:     p.room,
		clock:    p.clock,
		log:      o.Logger,
	}
}

// reapIdle closes old idle connections until Close.
func (p *Pool) reapIdle() {
	defer close(p.stopped)
	tick := time.NewTicker(max(p.options.IdleConnTimeout/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			for _, t := range p.targets.Load().all {
				t.reap(p.clock.now())
			}
		}
	}
}

// Close ends the health checks and closes the idle connections; a connection in use is closed when its
// exchange is over. Further requests are NotSent. It waits for the Pool's own goroutines, and not for
// requests: whoever sent them does.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	close(p.stop)
	<-p.stopped
	for _, t := range p.targets.Load().all {
		t.retire()
		t.stopWatching()
		t.names.close()
	}
}
