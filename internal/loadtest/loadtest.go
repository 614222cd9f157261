// Package loadtest holds a sale before the sale: a crowd that comes when it likes, a stand-in for the shop, the figures
// of what happened between them, and advice that follows from these.
//
// It promises that the crowd is an open one (who has not been answered keeps no other from coming) on few connections
// and in bounded memory; that every figure was measured, and that a machine which could not make the crowd is told of
// instead; and that a piece of advice names a key, its number and what it would change.
//
// Its sandbox (sandbox.go) starts the gateway in front of the Shop, on keys and an upstream that no sale knows. It
// touches no key that it has not made, and removes those in the end.
package loadtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"time"

	"sluice/internal/load"
)

// Plan is what is tested.
type Plan struct {
	Crowd
	Front string     // host:port of the gate
	Order load.Order // how an order looks
	Room  string     // the waiting room before it; "" = none

	Shop   *load.Shop
	Gate   Gate
	Limits Limits // as they are configured, for the advice
}

// Gate tells how the gate is.
type Gate interface {
	Read(context.Context) (GatewayReading, error)
}

// GatewayReading is how the gate is at one time. Counts are since it began.
type GatewayReading struct {
	Calls     map[string]int64 // to Redis, by kind
	Command   load.Times       // of one command of Redis; Count 0 = there is no Redis
	Windows   int64            // of the SKU, or of all together, that were used
	Saturated int64            // of these, full
	Ledger    *load.Ledger     // nil = they are not known
}

// Limits are the keys that advice may be about; 0 = no cap.
type Limits struct {
	Window          time.Duration
	Max, MaxPerSKU  int    // of this instance, in a window
	InFlightKey     string // the one that binds
	InFlight, Queue int
	QueueTimeout    time.Duration
	PerUnit         int
	MaxOpen         int
	Trusts          bool // a proxy in front carries many shoppers on one connection
	ResponseTimeout time.Duration
	StatusURL       string

	Reserves, Checks bool // what the route does
}

// settleWithin is how long it is waited, once everybody has gone home, for what is still held.
const settleWithin = 5 * time.Second

// Run lets the crowd in and returns when everybody has gone home and nothing is held any more, or ctx has ended: then
// with what happened so far.
func Run(ctx context.Context, p Plan) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	p.Addresses = cmp.Or(p.Addresses, p.Buyers)
	p.Order.Names = "loadtest-"
	c, err := load.New(load.Plan{
		Front: p.Front, Order: p.Order, Room: p.Room, Arrivals: p.arrivals(), Addresses: p.Addresses,
		Connections: p.Connections, GiveUpAfter: p.GiveUpAfter, Tries: p.Tries, LookUp: true, Pause: pause,
	})
	if err != nil {
		return Result{}, fmt.Errorf("load test: %w", err)
	}
	before, err := p.Gate.Read(ctx)
	if err != nil {
		return Result{}, err
	}
	used, start := cpu(), time.Now()
	p.Shop.Begin(start)
	c.Run(ctx, start)
	took := time.Since(start)
	after, err := settled(ctx, p)
	if err != nil {
		return Result{}, err
	}
	r := p.result(c, took, before, after)
	r.CPU = CPU{Cores: runtime.NumCPU(), Used: load.Seconds(cpu() - used)}
	r.Interrupted = ctx.Err() != nil
	r.Advice = advise(&r, p.Limits)
	return r, nil
}

// pause is how long a buyer waits before the next order: as long as the answer said, and up to half a second more.
func pause(_, _ int, told time.Duration) time.Duration {
	return max(told, 500*time.Millisecond) + rand.N(500*time.Millisecond)
}

// settled looks until the shop has answered everybody and nothing is held any more, within a bound. What was
// interrupted is looked at once.
func settled(ctx context.Context, p Plan) (GatewayReading, error) {
	lasting := context.WithoutCancel(ctx)
	for end := time.Now().Add(settleWithin); ; {
		idle := p.Shop.Totals().UnderWay == 0 // before the look: what it took is in the books then
		look, err := p.Gate.Read(lasting)
		if err != nil || idle && (look.Ledger == nil || look.Ledger.Held == 0) || ctx.Err() != nil || time.Now().After(end) {
			return look, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
