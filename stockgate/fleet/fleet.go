// Package fleet is what the instances of one shop tell each other through Redis, once a second: that they live, how
// they are, what operators have changed for all of them, and what they use of the rates that they keep together.
//
// Membership. Each instance writes itself into one sorted set, on Redis' clock. One that has not for 2.5 s is gone; one
// that leaves takes itself away. No instance is told a larger part before those that have it know: one that joins waits
// until each of the others has seen it, at most 1.5 s. So the parts of all never sum up to more than the whole, but for
// instances that live and cannot reach Redis: these keep the last part they had. When Redis loses the list, each keeps
// what it had until all have had the time to say again that they live. An instance that has never reached Redis counts
// itself alone after some 3 s.
//
// Changes. A change has a name and an end, on Redis' clock, and a number that rises. While Redis is away the changes
// that are known hold until their ends. One that is removed stays in the list, marked as removed, for as long as it
// would have stayed. So a change that an instance knows, whose time has not passed, and that the list does not have,
// was lost: it is put back. A task is done once by each instance that runs when it is given, and answered. With a
// secret each change and task is signed, and one without the signature of the fleet is ignored; a signed task that is
// written once more is not done again.
//
// What is kept is bounded: so many instances, changes, tasks, keys, and bytes of each. No request waits for it.
//
// It does not know what is divided and changed, and what a summary says: its callers do.
package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice/limiter"
	"sluice/stockgate/redisconn"
)

const (
	every     = time.Second            // between two heartbeats
	everySoon = 100 * time.Millisecond // while this instance joins
	alive     = 2500 * time.Millisecond
	heardAll  = 1500 * time.Millisecond // by then all that live have beaten once, and somewhat late
	// By then all have that must first connect again, since Redis was away: go-redis dials once a second then.
	heardAgain = 4 * time.Second
	listedFor  = 10 * time.Second // how long a summary is listed

	maxInstances = 1000
	maxText      = 4 << 10 // bytes of a summary, a change, a task or an answer
	pruneBeats   = 60      // heartbeats from one removal of summaries that are old to the next
	repeatBeats  = 60      // heartbeats from one repetition of the list of changes to the next
)

// Share is what this instance is among those that are alive.
type Share struct {
	Rank, Of int           // the place in the list of all, from 0, and how many they are; Of 0 = not known yet
	Clock    time.Duration // what to add to Options.Now to have Redis' clock, which all share
}

// Options say what an instance tells and hears. All callbacks but Do may be called at once with another one.
type Options struct {
	Link     *redisconn.Client // stays the caller's
	Name     redisconn.Name    // instances that use the same Redis and name are one fleet
	Instance string            // begins the name of this instance, which is unique anyway; may be empty
	Secret   []byte            // of the fleet; nil = nothing is signed
	Now      func() int64      // a monotonic clock, in nanoseconds

	Tell    func(Share)   // hears of each change of the share; it must not block
	Summary func() string // of this instance, JSON

	// Changed hears of the list: at first, and whenever it may be another one. Changes are kept in it beyond their end.
	// again tells that what follows from the list may have been lost, and is to be done again: Redis had lost some of the
	// list, or a minute has passed.
	Changed func(all []Change, again bool)

	Do  func(text string) string // does a task, and answers it
	Log *slog.Logger             // nil = nothing
}

// Fleet is one instance of a fleet. It is safe for concurrent use.
type Fleet struct {
	options                            Options
	id                                 string
	members, instances, changes, tasks string // keys
	link                               *redisconn.Client
	wake                               chan struct{}
	beats, counts                      *redisconn.Beats
	share                              atomic.Pointer[Share]

	// of the goroutine that beats
	roll  membership
	began int64 // when this instance wanted to join

	work  chan heard // what is to be done after a heartbeat
	mu    sync.Mutex
	known string // version of the changes
	asks  string // version of the tasks
	says  string // summary

	learner // of the goroutine that does what is heard

	rates atomic.Pointer[map[string]*limiter.FleetShare]

	stop  context.CancelFunc
	first chan struct{} // closed when what holds is in force, as far as it is known
	asked func()        // closes it
	done  sync.WaitGroup
}

// New is an instance that has not joined its fleet yet. It starts nothing.
func New(o Options) (*Fleet, error) {
	if o.Link == nil || !o.Name.Valid() || o.Now == nil || o.Tell == nil || o.Summary == nil || o.Changed == nil || o.Do == nil {
		return nil, errors.New("fleet: a link, a name, a clock and four callbacks must be given")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	part := func(part string) string { return o.Name.Tagged("fleet", string(o.Name), part) } // all parts share a slot
	id := strings.TrimPrefix(o.Instance+"-"+rand.Text()[:8], "-")
	f := &Fleet{options: o, id: id, link: o.Link, wake: make(chan struct{}, 1), began: o.Now(),
		members: part("members"), instances: part("instances"), changes: part("changes"), tasks: part("tasks"),
		roll: membership{id: id}, learner: learner{nonces: map[string]time.Time{}},
		work: make(chan heard, 1), first: make(chan struct{}), says: "{}",
		beats: redisconn.NewBeats(o.Log, "cannot reach Redis; this instance goes on with the instances that it last knew "+
			"of, or alone, and what operators have changed on the fleet holds until its end",
			"Redis is reached again; this instance hears of its fleet"),
		counts: redisconn.NewBeats(o.Log, "cannot reach Redis; this instance admits its part of the fleet's rates",
			"Redis is reached again; the fleet's rates are counted together")}
	f.asked = sync.OnceFunc(func() { close(f.first) })
	f.share.Store(&Share{})
	f.rates.Store(&map[string]*limiter.FleetShare{})
	return f, nil
}

// ID is the name of this instance.
func (f *Fleet) ID() string { return f.id }

// Name is the name of the fleet.
func (f *Fleet) Name() string { return string(f.options.Name) }

// Signs reports whether changes and tasks are signed.
func (f *Fleet) Signs() bool { return len(f.options.Secret) > 0 }

// Share is what this instance is among those that are alive, as far as it knows.
func (f *Fleet) Share() Share { return *f.share.Load() }

// Start joins the fleet. It does not wait for Redis. The caller must Close the Fleet.
func (f *Fleet) Start() {
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.done.Go(func() { f.run(ctx) })
	f.done.Go(func() { f.follow(ctx) })
	f.done.Go(func() { f.countRates(ctx) })
}

// Await waits until Redis was asked once, whether it answered or not: what holds is in force then, as far as it is
// known.
func (f *Fleet) Await() { <-f.first }

// Close leaves the fleet, as far as that can be done in one round trip, and ends what Start has started. The changes
// stay in force. No callback is called any more. A second call does nothing.
func (f *Fleet) Close() {
	if f.stop != nil {
		f.stop()
	}
	f.done.Wait()
}

// awaken has the next heartbeat be now.
func (f *Fleet) awaken() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run beats until it is told to stop, and then leaves. It waits for no callback but the first summary: an instance that
// is busy with a change lives.
func (f *Fleet) run(ctx context.Context) {
	f.summarize()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			f.leave()
			return
		case <-f.wake:
		case <-next.C:
		}
		heard, pause := f.beat(ctx)
		select {
		case f.work <- heard:
		default: // what was heard before is still being done; this is heard again
		}
		next.Reset(pause)
	}
}

// follow does what is heard.
func (f *Fleet) follow(ctx context.Context) {
	defer f.asked()
	for {
		select {
		case <-ctx.Done():
			return
		case heard := <-f.work:
			f.handle(ctx, heard)
			f.asked()
			f.summarize()
		}
	}
}

func (f *Fleet) summarize() {
	text := f.options.Summary()
	if len(text) > maxText {
		text = "{}"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.says = text
}

// beat says once that this instance lives, and tells what that changes. It returns the pause until the next.
func (f *Fleet) beat(ctx context.Context) (h heard, pause time.Duration) {
	began := f.options.Now()
	h, h.err = f.sendHeartbeat(ctx)
	if ctx.Err() != nil {
		return h, every
	}
	now := f.options.Now()
	f.beats.Record(h.err)
	if h.err == nil {
		f.roll.update(h.members)
		f.roll.clock.Update(h.members.micros*1000-(began+now)/2, (now-began)/2)
	} else if f.roll.waiting() && now-f.began > int64(alive) {
		f.roll.startAlone()
		f.options.Log.Warn("cannot reach Redis; this instance counts itself with those that it has seen",
			"instances", f.roll.share.Of)
	}
	f.notifyChange()
	if h.err == nil && f.roll.waiting() {
		return h, everySoon
	}
	return h, every
}

// notifyChange passes on what has changed.
func (f *Fleet) notifyChange() {
	s, last := f.roll.share, f.share.Load()
	if s.Of == 0 {
		return
	}
	s.Clock = time.Duration(f.roll.clock.By)
	if s == *last {
		return
	}
	f.share.Store(&s)
	if s.Of != last.Of {
		f.options.Log.Info("fleet counted", "name", f.options.Name, "instances", s.Of, "before", last.Of)
	}
	f.options.Tell(s)
}
