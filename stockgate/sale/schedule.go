// Package sale knows when SKUs are on sale, on a clock that all instances share: Redis'.
//
// It promises that instances whose own clocks differ open and close within the time that a round trip to Redis leaves
// in doubt, some ms; that what an operator says of a sale reaches every instance with its next beat, twenty of which it
// makes a second; and that a request is answered from memory, without allocating, writing or waiting. With Redis away
// the schedule and what was known last decide. While this machine's clock and Redis' are further apart than maxSkew one
// of them is wrong, and it is unknown which: no sale begins on this instance then, and one that has begun goes on.
//
// It does not count stock, or decide for a SKU that is in no sale.
package sale

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/periodic"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

// Sale is a schedule for some SKUs. No SKU is in two sales at a time.
type Sale struct {
	Name         string
	SKUs         []string
	Starts, Ends time.Time
	Pass         bool // early requests go on to the shop, but for those that take stock here
}

// Options say what all share. Zero values are replaced by the defaults that are named here.
type Options struct {
	Link *redisconn.Client // stays the caller's; nil = this instance is alone, and its own clock counts
	Name redisconn.Name    // of the shop; instances that use the same Redis and name share what operators say
	Now  func() int64      // monotonic ns; required
	Wall func() time.Time  // of this machine; default time.Now
	Log  *slog.Logger      // default slog.Default()

	Clock bool // Use's clock, for the first sales
}

// Schedule is where an instance reads which sale is on. It is safe for concurrent use.
type Schedule struct {
	o        Options
	link     *redisconn.Client // nil = alone
	wordsKey string

	ahead atomic.Int64 // what to add to Options.Now to have Unix ns of the shared clock
	skew  atomic.Int64 // ns by which the shared clock is ahead of this machine's
	wrong atomic.Bool  // no sale may begin
	plan  atomic.Pointer[plan]
	beats *redisconn.Beats

	mu    sync.Mutex // one question to Redis at a time; guards what is below
	clock redisconn.Clock

	stop context.CancelFunc
	done sync.WaitGroup
}

var _ proxy.Schedule = (*Schedule)(nil)

// beatEvery is how often Redis is asked while there is any sale, or another use of its clock: the clock, and what
// operators have said.
const beatEvery = 50 * time.Millisecond

// firstBeats are made before anybody is told of a sale: the first of them opens a connection, and is no measure.
const firstBeats = 3

// New returns a schedule of sales. It waits for Redis no longer than for three round trips.
func New(o Options, sales []Sale) (*Schedule, error) {
	if o.Now == nil {
		return nil, errors.New("schedule of sales: no clock")
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	b := &Schedule{o: o, link: o.Link, wordsKey: o.Name.Key("sales"), beats: redisconn.NewBeats(o.Log,
		"cannot reach Redis; sales begin and end by the schedule, and by what operators said before",
		"Redis is reached again; operators' words on sales are read")}
	b.useLocalClock()
	b.Use(sales, o.Clock)
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.done.Go(func() { b.run(ctx) })
	return b, nil
}

// Close ends what New has started, and waits for it. The schedule goes on answering by what it knows.
func (b *Schedule) Close() {
	b.stop()
	b.done.Wait()
}

func (b *Schedule) run(ctx context.Context) { periodic.After(ctx, beatEvery, b.beat) }

// Time is now, monotonic ns of Options.Now, as Unix ns of the shared clock.
func (b *Schedule) Time(now int64) int64 { return now + b.ahead.Load() }

// Wall reads the shared clock.
func (b *Schedule) Wall() time.Time { return time.Unix(0, b.Time(b.o.Now())) }

// Closed implements proxy.Schedule.
func (b *Schedule) Closed(now int64, sku []byte, reserved bool) (reason reject.Reason, wait time.Duration) {
	p, ok := b.At(now, sku)
	if !ok {
		return reject.Admitted, 0
	}
	switch p.State {
	case Ended:
		return reject.Ended, 0
	case Paused:
		return reject.Paused, 0
	case Waiting:
		if !p.pass || reserved {
			return reject.NotStarted, p.Wait
		}
	}
	return reject.Admitted, 0
}
