// Package lease divides budgets among the instances that guard the same shop, by what each of them is asked for.
//
// Each instance tells Redis four times a second how often every budget and its busy keys are asked for, and is told its
// parts. Redis gives away no more than the whole: a part grows only by what the others have let go. One that has not
// said anything for 2.5 s is gone, and its part is free. No request waits for it, and none asks Redis.
//
// This Redis may hold the stock. So all instances together ask about 40 times a second at most, and about 2,000 busy
// keys of all are read each time: many instances or budgets make the pauses longer, and keys fewer.
//
// While Redis is away each instance keeps its last parts. One that has never reached it begins after 2.5 s, with the
// whole. When Redis comes back empty, parts do not grow for 4 s: by then all have said what they have.
//
// It does not know what is divided.
package lease

import (
	"context"
	"crypto/rand"
	_ "embed" // for the script
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/periodic"
	"sluice/limiter"
	"sluice/stockgate/namespace"
	"sluice/stockgate/redisconn"
)

const (
	every     = 250 * time.Millisecond // while instances × budgets are at most calls
	calls     = 10
	everySoon = 50 * time.Millisecond // while this instance has no part
	alive     = 2500 * time.Millisecond
)

//go:embed lua/divide.lua
var script string

// Budget is what is divided. A limiter.FleetShare is one.
type Budget interface {
	// Demand is how often the busy keys were asked for since the last call. elapsed is the time of a clock.
	Demand(elapsed time.Duration) []limiter.FleetDemand

	// SetParts takes the part of every key, and those of the busy ones.
	SetParts(seed [2]uint64, base float64, busy []limiter.FleetPart)
}

// Options say who this instance is.
type Options struct {
	Redis    redisconn.Options
	Name     namespace.Name // instances that use the same Redis and name divide the same budgets
	Instance string         // begins the name of this instance, which is unique anyway; may be empty
	Now      func() int64   // a monotonic clock, in nanoseconds
	Log      *slog.Logger   // nil = nothing
}

// Keeper keeps the parts of one instance. It is safe for concurrent use.
type Keeper struct {
	options Options
	id      string
	link    *redisconn.Client
	began   int64
	beats   *redisconn.Beats

	mu      sync.Mutex
	budgets map[string]*kept
	waiting atomic.Bool // a budget has no part

	stop context.CancelFunc
	done sync.WaitGroup
}

// kept is one budget, and what is in force of it.
type kept struct {
	Budget
	base float64 // below 0 = none
	of   int     // instances
}

// New is a Keeper that does not divide anything yet. It starts nothing.
func New(o Options) (*Keeper, error) {
	if !o.Name.Valid() || o.Now == nil {
		return nil, errors.New("lease: a name of the fleet and a clock must be given")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	way, err := redisconn.New(o.Redis)
	if err != nil {
		return nil, err
	}
	id := strings.TrimPrefix(o.Instance+"-"+rand.Text(), "-")
	beats := redisconn.NewBeats(o.Log, "cannot reach Redis; the parts of the fleet's budgets stay as they are",
		"Redis is reached again; the fleet's budgets are divided")
	return &Keeper{options: o, id: id, link: way, began: o.Now(), beats: beats, budgets: map[string]*kept{}}, nil
}

// Use divides these budgets from now on, by their names. One that was divided before keeps its part.
func (k *Keeper) Use(budgets map[string]Budget) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := map[string]*kept{}
	for name, b := range budgets {
		next[name] = &kept{Budget: b, base: -1}
		if old := k.budgets[name]; old != nil && old.Budget == b {
			next[name] = old
		}
	}
	k.budgets = next
	k.waiting.Store(slices.ContainsFunc(slices.Collect(maps.Values(next)), func(b *kept) bool { return b.base <= 0 }))
}

// Start begins to ask Redis. The caller must Close the Keeper.
func (k *Keeper) Start() {
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.done.Go(func() { k.run(ctx) })
}

// Waiting reports that a budget has no part yet: nothing of it is admitted.
func (k *Keeper) Waiting() bool { return k.waiting.Load() }

// Close gives the parts back, as far as that can be done in one round trip, and ends what Start has started. What is in
// force stays so.
func (k *Keeper) Close() {
	if k.stop != nil {
		k.stop()
	}
	k.done.Wait()
	_ = k.link.Close()
}

func (k *Keeper) run(ctx context.Context) {
	k.turn(ctx)
	for periodic.Pause(ctx, k.pause()) {
		k.turn(ctx)
	}
	k.leave()
}

// pause is how long it waits between two turns. It grows with instances × budgets, so that Redis is asked no more
// often.
func (k *Keeper) pause() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting.Load() {
		return everySoon * k.crowd()
	}
	return every * k.crowd()
}

// crowd is how many times longer the pauses are for the number of instances and budgets.
func (k *Keeper) crowd() time.Duration {
	of := 1
	for _, b := range k.budgets {
		of = max(of, b.of)
	}
	return time.Duration(max(1, (of*len(k.budgets)+calls-1)/calls))
}

// lives is how long this instance counts after a turn.
func (k *Keeper) lives() time.Duration { return max(alive, 4*every*k.crowd()) }

// turn asks once for each budget.
func (k *Keeper) turn(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var failed error
	waiting := false
	for _, name := range slices.Sorted(maps.Keys(k.budgets)) {
		b := k.budgets[name]
		if failed == nil { // one wait for a Redis that is away is enough
			failed = k.ask(ctx, name, b)
		}
		if failed != nil && b.base < 0 && time.Duration(k.options.Now()-k.began) > alive {
			var seed [2]uint64
			b.base = 1
			b.SetParts(seed, 1, nil)
			k.options.Log.Warn("cannot reach Redis; this instance admits the whole of a budget of the fleet", "budget", name)
		}
		waiting = waiting || b.base <= 0
	}
	k.waiting.Store(waiting)
	if ctx.Err() == nil {
		k.beats.Record(failed)
	}
}

// ask makes the round trip of one budget.
func (k *Keeper) ask(ctx context.Context, name string, b *kept) error {
	had := b.base
	if had == 0 {
		had = -1 // it may begin as one that is new
	}
	var seed [16]byte
	_, _ = rand.Read(seed[:]) // never fails
	args := []any{k.id, k.lives().Milliseconds(), hex.EncodeToString(seed[:]), number(had)}
	for _, d := range b.Demand(time.Duration(k.options.Now())) {
		args = append(args, strconv.FormatUint(d.Key, 36), number(d.PerSecond), number(d.Held), number(d.Share))
	}
	return k.link.Do(ctx, func(ctx context.Context, c *redis.Client) error {
		reply, err := c.Eval(ctx, script, []string{k.key(name)}, args...).StringSlice()
		if err == nil {
			err = b.take(reply)
		}
		if err != nil {
			return fmt.Errorf("divide %q: %w", k.key(name), err)
		}
		return nil
	}, nil)
}

func (k *Keeper) key(budget string) string { return k.options.Name.Key("lease:" + budget) }

// leave gives the parts back; when that fails they expire.
func (k *Keeper) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.budgets {
		_ = k.link.Do(context.Background(), func(ctx context.Context, c *redis.Client) error {
			return c.HDel(ctx, k.key(name), k.id).Err()
		}, nil)
	}
}

// take understands the script's reply, and puts it into force.
func (b *kept) take(reply []string) error {
	if len(reply) < 3 || len(reply)%2 == 0 {
		return fmt.Errorf("a reply of %d parts", len(reply))
	}
	secret, err := hex.DecodeString(reply[0])
	if err != nil || len(secret) != 16 {
		return fmt.Errorf("%.40q is no seed", reply[0])
	}
	of, err := strconv.Atoi(reply[1])
	if err != nil || of < 1 {
		return fmt.Errorf("%.40q is no number of instances", reply[1])
	}
	base, err := share(reply[2])
	if err != nil {
		return err
	}
	busy := make([]limiter.FleetPart, 0, len(reply)/2)
	for i := 3; i < len(reply); i += 2 {
		key, err1 := strconv.ParseUint(reply[i], 36, 64)
		part, err2 := share(reply[i+1])
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		busy = append(busy, limiter.FleetPart{Key: key, Share: part})
	}
	b.base, b.of = base, of
	b.SetParts([2]uint64{binary.LittleEndian.Uint64(secret), binary.LittleEndian.Uint64(secret[8:])}, base, busy)
	return nil
}

func share(text string) (float64, error) {
	part, err := strconv.ParseFloat(text, 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return 0, fmt.Errorf("%.40q is no part", text)
	}
	return part, nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
