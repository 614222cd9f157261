// Package fleet finds out how many instances guard the same shop, and which of them this one is, so that they can
// divide what the shop bears.
//
// Each instance says once a second in Redis that it is alive, in one sorted set a fleet, on Redis' clock. One that has
// not for 2.5 s is gone; one that leaves takes itself away. No instance is told a larger part before those that have it
// know: who joins waits until each of the others has seen it, at most 1.5 s. So the parts of all never sum up to more
// than the whole, but for instances that live and cannot reach Redis: these keep the last part they had, and of n
// instances each of them is 1/n too much at most once the others count without it. While an instance that died is still
// counted its part is unused. When Redis loses the list, each keeps what it had until all have had the time to say
// again that they live. An instance that has never reached Redis knows of no other, and counts itself alone after some
// 3 s.
//
// It does not know what is divided, and how: it tells a [Standing], and its caller decides.
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

	"sluice/internal/periodic"
	"sluice/stockgate/namespace"
	"sluice/stockgate/redisconn"
)

const (
	every     = time.Second            // between two beats
	everySoon = 100 * time.Millisecond // while this instance joins
	alive     = 2500 * time.Millisecond
	heardAll  = 1500 * time.Millisecond // by then everybody who lives has beaten once, and somewhat late
	// By then everybody has who must first connect again, since Redis was away: go-redis dials once a second then.
	heardAgain = 4 * time.Second
)

// Share is what this instance is among those that are alive.
type Share struct {
	Rank, Of int           // the place in the list of all, from 0, and how many they are; Of 0 = not known yet
	Clock    time.Duration // what to add to Options.Now to have Redis' clock, which all share
}

// Options say who this instance is.
type Options struct {
	Redis    redisconn.Options
	Name     namespace.Name // instances that use the same Redis and name divide the same budget
	Instance string         // begins the name of this instance, which is unique anyway; may be empty
	Now      func() int64   // a monotonic clock, in nanoseconds
	Tell     func(Share)    // called at each change, one call at a time; its first call is when this instance may begin
	Log      *slog.Logger   // nil = nothing
}

// Member is one instance of a fleet. It is safe for concurrent use.
type Member struct {
	options Options
	key, id string
	link    *redisconn.Client
	roll    membership // of the goroutine alone
	began   int64      // when this instance wanted to join
	share   atomic.Pointer[Share]
	beats   *redisconn.Beats

	stop context.CancelFunc
	done sync.WaitGroup
}

// New is an instance that has not joined its fleet yet. It starts nothing.
func New(o Options) (*Member, error) {
	if !o.Name.Valid() || o.Now == nil || o.Tell == nil {
		return nil, errors.New("fleet: a name, a clock and a callback must be given")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	way, err := redisconn.New(o.Redis)
	if err != nil {
		return nil, err
	}
	id := strings.TrimPrefix(o.Instance+"-"+rand.Text(), "-")
	m := &Member{options: o, key: o.Name.Key("fleet"), id: id, link: way, roll: membership{id: id}, began: o.Now(),
		beats: redisconn.NewBeats(o.Log, "cannot reach Redis; the last known number of instances stands",
			"Redis is reached again; the instances are counted")}
	m.share.Store(&Share{})
	return m, nil
}

// Join makes this instance one of the fleet. It does not wait for Redis. The caller must Close the Member.
func (m *Member) Join() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() { m.run(ctx) })
}

// last is the share that was told last.
func (m *Member) last() Share { return *m.share.Load() }

// Close leaves the fleet, as far as that can be done in one round trip, and ends everything that Join started. Tell is
// not called any more. A second call does nothing.
func (m *Member) Close() {
	m.stop()
	m.done.Wait()
	_ = m.link.Close()
}

// run beats until it is told to stop, and then leaves.
func (m *Member) run(ctx context.Context) {
	for periodic.Pause(ctx, m.beat(ctx)) {
		continue
	}
	m.deregister()
}

// beat says once that this instance lives, and tells what that changes. It returns the pause until the next.
func (m *Member) beat(ctx context.Context) time.Duration {
	began := m.options.Now()
	seen, err := m.sendHeartbeat(ctx)
	if ctx.Err() != nil {
		return every
	}
	now := m.options.Now()
	m.beats.Record(err)
	if err == nil {
		m.roll.update(seen)
		m.roll.clock.Update(seen.micros*1000-(began+now)/2, (now-began)/2)
	} else if m.roll.waiting() && now-m.began > int64(alive) {
		m.roll.startAlone()
		m.options.Log.Warn("cannot reach Redis; this instance counts itself with those that it has seen",
			"instances", m.roll.share.Of)
	}
	m.notifyChange()
	if err == nil && m.roll.waiting() {
		return everySoon
	}
	return every
}

// notifyChange passes on what has changed.
func (m *Member) notifyChange() {
	s, last := m.roll.share, m.share.Load()
	if s.Of == 0 {
		return
	}
	s.Clock = time.Duration(m.roll.clock.By)
	if s == *last {
		return
	}
	m.share.Store(&s)
	if s.Of != last.Of {
		m.options.Log.Info("fleet counted", "name", m.options.Name, "instances", s.Of, "before", last.Of)
	}
	m.options.Tell(s)
}
