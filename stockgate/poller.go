package stockgate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"sluice/internal/octets"
	"sluice/stockgate/layout"
)

const (
	idleAfter    = int64(5 * time.Second)        // a SKU that no request asked for in this time is read no more
	pingEvery    = int64(time.Second)            // how often an idle poller asks whether the source is there
	lostEvery    = int64(50 * time.Millisecond)  // how often any does while it is not
	sweepEvery   = int64(125 * time.Millisecond) // one part of the table
	perFirstLook = int64(50 * time.Microsecond)  // invented SKUs cost at most 20,000 looks a second
	restsMost    = int64(50 * time.Millisecond)  // behind a turn, however long it took
	maxPending   = 2048                          // first looks that wait for their turn, some 100 ms at that pace
)

// poller is the one goroutine that talks to the source: it takes first looks at once, and at every refresh reads the
// SKUs that a request has asked for since. One round trip is under way at a time; what is asked for meanwhile joins the
// next. All fields but queue, health and done are its own.
type poller struct {
	source  Source
	table   *octets.Table[entry]
	clock   func() int64
	log     *slog.Logger
	logRate *rate.Limiter // of log lines about sold-out SKUs

	rules     *atomic.Pointer[rules] // those of the gate
	instances func() int

	queue  chan *entry // first looks
	health health
	faults faults
	done   chan struct{} // closed when run has returned

	active  []*entry // read while they are asked for
	batch   []*entry
	skus    []string
	results []layout.Reading

	readings atomic.Uint64 // of single SKUs, ever
	found    atomic.Bool   // one of them found a key

	turnAt, sweepAt, pingAt, lookAt int64 // not before
	part                            int   // of the table, to be swept next
}

func newPoller(o Options, src Source, t *octets.Table[entry], r *atomic.Pointer[rules]) *poller {
	s := &poller{
		source:  src,
		table:   t,
		clock:   o.Now,
		log:     o.Log,
		logRate: rate.NewLimiter(10, 50),
		rules:   r, instances: o.Instances,
		queue:   make(chan *entry, min(maxPending, o.MaxSKUs/4+1)),
		done:    make(chan struct{}),
		faults:  faults{named: make(map[string]bool), log: o.Log},
		results: make([]layout.Reading, readAtOnce),
	}
	s.health.log, s.health.rules = o.Log, r
	return s
}

// queueFirstRead queues a first look. It reports false when too many are waiting.
func (s *poller) queueFirstRead(e *entry) bool {
	select {
	case s.queue <- e:
		return true
	default:
		return false
	}
}

// run works until ctx ends.
func (s *poller) run(ctx context.Context) {
	defer close(s.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.clock()
		queue := s.queue
		if now < s.lookAt {
			queue = nil
		}
		select {
		case <-ctx.Done():
			return
		case e := <-queue:
			s.readFirst(ctx, now, e)
		case <-timer.C:
			s.work(ctx, now)
		}
		timer.Reset(time.Duration(s.next() - s.clock()))
	}
}

// next is when there is something to do again, first looks that may be taken at once aside.
func (s *poller) next() int64 {
	at := s.pingAt
	if len(s.active) > 0 {
		at = min(at, s.turnAt)
	}
	if s.table.Len() > 0 {
		at = min(at, s.sweepAt)
	}
	if len(s.queue) > 0 {
		at = min(at, s.lookAt)
	}
	return at
}

// work does what is due at now.
func (s *poller) work(ctx context.Context, now int64) {
	if now >= s.sweepAt {
		s.sweepAt = now + sweepEvery
		s.sweep(now)
	}
	if now >= s.turnAt && len(s.active) > 0 {
		s.turnAt = now + s.rules.Load().refresh
		s.pollOnce(ctx, now)
		s.cooldown(now, s.clock())
	}
	if now >= s.pingAt {
		s.recordRoundTrip(ctx, now, s.source.Ping(ctx))
	}
}

// pollOnce reads the active SKUs whose reading is due. First looks go between its round trips; what they add has just
// been read, and is for the next turn.
func (s *poller) pollOnce(ctx context.Context, now int64) {
	end := len(s.active)
	for i := 0; i < min(end, len(s.active)); {
		s.batch = s.batch[:0]
		for i < min(end, len(s.active)) && len(s.batch) < readAtOnce {
			e := s.active[i]
			if !s.keeps(now, e) {
				last := len(s.active) - 1
				s.active[i], s.active[last] = s.active[last], nil
				s.active = s.active[:last]
				continue
			}
			if s.due(now, e) {
				s.batch = append(s.batch, e)
			}
			i++
		}
		if !s.read(ctx, s.clock(), s.source.ReadUncached) {
			return
		}
		s.readFirst(ctx, s.clock())
	}
}

// cooldown leaves as much time behind a turn as it took, so that Redis and the gate have at least half of theirs for
// others, however many SKUs there are; but no more than restsMost, beyond which readings would grow too old to be used.
func (s *poller) cooldown(began, ended int64) {
	s.turnAt = max(s.turnAt, ended+min(ended-began, restsMost))
}

// keeps reports whether e is still to be read. If not, the next request for it takes a first look again.
func (s *poller) keeps(now int64, e *entry) bool {
	v, at := e.reading()
	idle := now-e.asked.Load() > idleAfter
	if !e.gone && v != unknown && !idle {
		return true // and nothing is written: requests read the same line
	}
	e.sampled = false
	if idle && !e.gone {
		e.publish(unread, 0, at)
		if e.dipped {
			e.completeFirstRead(unread) // the look goes on no more, and another one is to be asked for
		}
	}
	return false
}

// due reports whether e must be read now. What no request has asked for since it was read, and no try has left, or what
// cannot be bought, is read less often, but soon enough for stock that comes back, or goes elsewhere, to be found well
// within sold_out_ttl. Half a refresh of slack keeps a reading that began a little late from being left out every
// other time.
func (s *poller) due(now int64, e *entry) bool {
	v, at := e.reading()
	rules := s.rules.Load()
	every := rules.quiet
	if v == onSale && (e.wanted(at) || e.dipped || e.bounded() && e.freed()) {
		every = rules.refresh
	}
	return now-at >= every-rules.refresh/2
}

// readFirst reads first, and those that are waiting as far as they fit into one round trip, unless it is too
// early for them.
func (s *poller) readFirst(ctx context.Context, now int64, first ...*entry) {
	s.batch = append(s.batch[:0], first...)
	for len(s.batch) < readAtOnce && now >= s.lookAt && len(s.queue) > 0 {
		s.batch = append(s.batch, <-s.queue) // no other goroutine takes from it
	}
	if len(s.batch) > 0 {
		s.lookAt = now + int64(len(s.batch))*perFirstLook
		s.read(ctx, now, s.source.Read)
	}
}

// read reads the batch at once, by one of the source's ways. It reports whether the source answered.
func (s *poller) read(ctx context.Context, now int64,
	source func(context.Context, []string, []layout.Reading) error) bool {
	if len(s.batch) == 0 {
		return true
	}
	s.skus = s.skus[:0]
	for _, e := range s.batch {
		s.skus = append(s.skus, e.sku)
		e.endedBefore = e.ended.Load()
	}
	err := source(ctx, s.skus, s.results)
	s.recordRoundTrip(ctx, now, err)
	for i, e := range s.batch {
		if err != nil {
			e.completeFirstRead(unread)
			continue
		}
		s.publishReading(now, e, s.results[i])
	}
	return err == nil
}

// recordRoundTrip keeps the health after a round trip that began at now, and plans the next one that no request asks
// for.
func (s *poller) recordRoundTrip(ctx context.Context, now int64, err error) {
	if ctx.Err() != nil {
		return
	}
	s.health.record(now, err)
	s.pingAt = now + pingEvery
	if err != nil { // find it again soon; a source with a breaker bounds what that costs
		s.pingAt = now + lostEvery
		s.turnAt = max(s.turnAt, s.pingAt)
	}
}
