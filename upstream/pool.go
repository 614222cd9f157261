// Package upstream sends requests to the protected upstream, and reads its responses.
//
// It promises that no request of which one byte was written is ever written again; that a response goes to the request
// it belongs to, since a connection about which there is any doubt is closed and not pooled; and that a request without
// a response is reported as certainly not sent, or as unknown.
//
// A request that finds all connections in use waits for one, within bounds. A response of at most 1 MiB is read whole
// while there is memory: its connection is free before its client reads. A larger one is a stream, which holds it.
//
// It does not follow redirects, repair responses that are not well-formed, add a header line, or repeat anything
// that was written, idempotent or not. It speaks HTTP/1.1 only. Requests and responses are fasthttp's types, and
// fasthttp parses the response headers; framing is checked before it does.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/periodic"
)

// Pool is the upstream: its targets, and the connections to them. It is safe for concurrent use.
type Pool struct {
	options atomic.Pointer[Options]
	clock   clock
	waits   waits
	memory  budget
	targets atomic.Pointer[targets]

	mu     sync.Mutex // of use, as Prepare returns it, and Close
	closed bool
	stop   context.CancelFunc
	reaper sync.WaitGroup
}

// New checks o and starts a Pool. No connection is opened before the first request or health check.
func New(o Options) (*Pool, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pool{clock: clock{epoch: time.Now()}}
	p.options.Store(&o)
	p.targets.Store(&targets{next: new(atomic.Uint64)})
	use, err := p.Prepare(o)
	if err != nil {
		return nil, err
	}
	use()
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.reaper.Go(func() { p.reapIdle(ctx) })
	return p, nil
}

// Send writes req to one target and reads the response into resp. A request of which one byte was written is never
// written again, by Send or by its caller. Its bounds in time are those of Options, after a wait for a connection of
// QueueTimeout at most, and another one where it holds its connection; it waits for nothing else.
//
// After Answered, resp holds the header without the fields of this hop. The body is whole, and ContentLength its
// length; or a stream, of which ContentLength is the length or -1, and which must be closed. A stream has
// OnEnd(func(broken bool)); one that is in memory already has Whole() []byte instead. ImmediateHeaderFlush says that no
// byte of a stream is there yet. After any other outcome resp is not to be used.
func (p *Pool) Send(req *Request, resp *fasthttp.Response) Outcome { return p.send(req, resp, nil) }

// Acquire takes a connection for req in advance, and waits for one as Send does: what its caller does until Send is
// then done for a request that will be sent. It reports false when no connection came free in time. A request that was
// not sent after true must be given to Release.
func (p *Pool) Acquire(req *Request) bool {
	p.Release(req)
	req.place, _ = p.acquirePlace(req, &search{}, p.clock.now())
	return req.place.target != nil
}

// Release gives back the connection of Acquire, where there is one that was not used.
func (p *Pool) Release(req *Request) {
	if t := req.place.target; t != nil {
		c := req.place.conn
		req.place = place{}
		t.giveBack(c, req.Order)
	}
}

// send tries one target after another while it is certain that nothing was written.
func (p *Pool) send(req *Request, resp *fasthttp.Response, tun *tunnel) Outcome {
	req.Target = ""
	o := p.options.Load()
	s := search{ts: p.targets.Load()}
	start, acquired := p.clock.now(), false
	for now := start; now-start < o.Timeout; now = p.clock.now() {
		at, outcome := req.place, Answered
		if at.target == nil {
			at, outcome = p.acquirePlace(req, &s, now)
		} else {
			req.place, acquired = place{}, true
		}
		switch {
		case outcome == Busy && acquired:
			return NotSent // it had a connection, which could not be opened
		case outcome != Answered:
			return outcome
		case s.waited:
			now = p.clock.now()
		}
		req.Target = at.target.url
		if outcome = at.target.exchange(req, resp, at.conn, now, tun); outcome != NotSent {
			return outcome
		}
		switch {
		case s.ts != p.targets.Load(): // the target was removed meanwhile
		case o.Retry == "off":
			return NotSent
		default:
			s.bar(at.target)
		}
	}
	return NotSent
}

// search is the search of one request for a place.
type search struct {
	ts     *targets
	barred uint64        // those of ts that could not be connected to; or all but one, where retry is "off"
	waited bool          // for a connection
	until  time.Duration // of the Pool's clock: the end of all waiting, where it has waited
}

func (s *search) bar(t *target) {
	for i, known := range s.ts.all {
		if known == t {
			s.barred |= 1 << i
		}
	}
}

// acquirePlace returns a place at the target that the policy chooses, or at another one that has a place; or it waits
// for one at the first choice. Without a place the outcome is Busy, or NotSent where no target is left.
func (p *Pool) acquirePlace(req *Request, s *search, now time.Duration) (place, Outcome) {
	for {
		if ts := p.targets.Load(); ts != s.ts {
			s.ts, s.barred = ts, 0
		}
		if p.options.Load().Retry == "off" && s.barred == 0 {
			s.barred = ^(uint64(1) << s.ts.choose(0, req.ClientKey, now))
		}
		at, full := s.tryEach(req, now)
		switch {
		case at.target != nil:
			return at, Answered
		case full != nil:
			at, end := p.await(full, req, s, now)
			switch {
			case at.target != nil:
				return at, Answered
			case end != waitMoved:
				return place{}, Busy
			}
			now = p.clock.now()
		case s.ts == p.targets.Load():
			return place{}, NotSent
		}
	}
}

// tryEach asks the targets for a place, in the order of the policy. full is the first of them that has none; nil = none
// is left.
func (s *search) tryEach(req *Request, now time.Duration) (at place, full *target) {
	for tried := s.barred; ; {
		i := s.ts.choose(tried, req.ClientKey, now)
		if i < 0 {
			return place{}, full
		}
		tried |= 1 << i
		t := s.ts.all[i]
		c, err := t.pop(req.Order)
		if err == nil {
			return place{t, c}, nil
		}
		if full == nil && err == errFull {
			full = t
		}
	}
}

// await waits at t until a connection comes free.
func (p *Pool) await(t *target, req *Request, s *search, now time.Duration) (at place, end int) {
	if !s.waited {
		s.waited, s.until = true, now+p.options.Load().QueueTimeout
	}
	if s.until <= now {
		return place{}, waitTimedOut
	}
	if req.Owner != nil {
		req.Owner.StepAside()
	}
	at, end = t.wait(&waiter{line: lineOf(req.Order)}, s.until-now)
	if at.target != nil && req.Client != nil && req.Client.Gone() {
		t.giveBack(at.conn, req.Order)
		return place{}, waitTimedOut
	}
	return at, end
}

// State is the state of one target.
type State struct {
	Target   string
	Healthy  bool   // passes its health checks, or has none
	Ejected  bool   // after connect errors, and it was not reached since
	InFlight int    // requests
	Open     int    // connections, idle ones included
	Idle     int    // connections
	Fault    string // why it cannot be used, and what to do about it; "" = it can, as far as is known
}

// Targets returns the state of every target, in the order of the configuration.
func (p *Pool) Targets() []State {
	all := p.targets.Load().all
	states := make([]State, 0, len(all))
	for _, t := range all {
		t.mu.Lock()
		open, idle := t.open, len(t.idle)
		t.mu.Unlock()
		states = append(states, State{
			Target: t.url, Healthy: !t.health.down.Load(), Ejected: t.ejection.failing(),
			InFlight: int(t.counters.inFlight.Load()), Open: open, Idle: idle, Fault: t.faults.text(),
		})
	}
	return states
}

var errPoolClosed = errors.New("prepare upstream: pool is closed")

// Prepare makes what other options need; use puts them into force, but those that a Pool keeps for its life: Logger and
// Wrap. An error, or one that is not used, changes nothing. Changes are made one at a time. A target that stays keeps
// its connections, health and counters; one that is removed finishes the exchanges it has. Exchanges under way go on by
// the options they have begun with.
func (p *Pool) Prepare(o Options) (use func(), err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	pick, err := policyNamed(o.Policy)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errPoolClosed
	}
	before, old := p.options.Load(), p.targets.Load()
	o.Logger, o.Wrap = before.Logger, before.Wrap
	next := &targets{next: old.next, pick: pick}
	settings, err := p.addTargets(next, old, &o)
	if err != nil {
		return nil, err
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			return
		}
		p.options.Store(&o)
		p.waits.max.Store(int64(o.MaxPending))
		p.memory.size.Store(cmp.Or(o.Memory, defaultMemory))
		for _, t := range next.all {
			if old.targetFor(t.url) == nil || o.Health != before.Health {
				t.stopChecks()
				t.startChecks(o.Health)
			}
		}
		p.targets.Store(next)
		for i, t := range next.all {
			t.use(settings[i])
		}
		for _, t := range old.all {
			if next.targetFor(t.url) == nil {
				t.stop()
			}
		}
	}, nil
}

// addTargets adds the targets of o to next, those of old where it has them, and returns the settings of each.
func (p *Pool) addTargets(next, old *targets, o *Options) (use []*settings, err error) {
	if len(o.Targets) == 0 || len(o.Targets) > maxTargets {
		return nil, fmt.Errorf("read targets: there are %d, not 1 to %d", len(o.Targets), maxTargets)
	}
	for _, u := range o.Targets {
		if next.targetFor(u) != nil {
			return nil, fmt.Errorf("read target %q: given twice", u)
		}
		a, err := parseAddress(u)
		if err != nil {
			return nil, err
		}
		t, had := old.targetFor(u), (*settings)(nil)
		if t != nil {
			had = t.settings.Load()
		}
		s, err := settingsOf(o, a, had)
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = p.newTarget(a, s, o)
		}
		next.all, use = append(next.all, t), append(use, s)
	}
	return use, nil
}

func (ts *targets) targetFor(url string) *target {
	for _, t := range ts.all {
		if t.url == url {
			return t
		}
	}
	return nil
}

func (p *Pool) newTarget(a address, s *settings, o *Options) *target {
	t := &target{
		dialer: newDialer(a, s, o.Wrap),
		memory: &p.memory,
		clock:  p.clock,
		log:    o.Logger,
	}
	t.queue.waits = &p.waits
	t.faults.connectLog.Interval, t.faults.responseLog.Interval = logPause, logPause
	t.counters.took = newDurations(t.url)
	return t
}

// maxReapPause bounds the time until a lower IdleConnTimeout is heeded.
const maxReapPause = time.Second

// reapIdle closes old idle connections, and tries ejected targets again, until Close.
func (p *Pool) reapIdle(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	for periodic.Pause(ctx, min(max(p.options.Load().IdleConnTimeout/2, time.Millisecond), maxReapPause)) {
		for _, t := range p.targets.Load().all {
			t.reap(p.clock.now())
			t.retryEjected(ctx, &probes)
		}
	}
}

// Close ends the health checks and closes the idle connections; a connection in use is closed when its exchange ends.
// Further requests are NotSent. It waits for the Pool's own goroutines, and not for requests.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.stop()
	p.reaper.Wait()
	for _, t := range p.targets.Load().all {
		t.stop()
	}
}
