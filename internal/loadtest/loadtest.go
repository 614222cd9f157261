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
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"sluice/internal/load"
)

// Plan is what is tested.
type Plan struct {
	Front       string     // host:port of the gate
	Order       load.Order // how an order looks
	Room        string     // the waiting room before it; "" = none
	Buyers      int
	Addresses   int           // that they come from; 0 = one each
	Shape       string        // Spike or Ramp
	Spread      time.Duration // Spike: half of them have come by then; Ramp: all of them
	GiveUpAfter time.Duration // after the last of them came first, everybody goes home
	Tries       int           // orders of one buyer at most
	Connections int           // of the whole crowd

	Shop   *load.Shop
	Gate   Gate
	Limits Limits // as they are configured, for the advice
}

// Shapes of a crowd.
const (
	Spike = "spike" // all want it at once, and people take a while to press
	Ramp  = "ramp"  // as many in each second
)

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

// checked rejects what makes no crowd.
func (p *Plan) checked() error {
	if p.Addresses == 0 {
		p.Addresses = p.Buyers
	}
	switch {
	case p.Buyers < 1 || p.Buyers > MostBuyers || p.Addresses < 1 || p.Tries < 1 || p.Tries > 255 || p.Connections < 1:
		return errors.New("load test: there must be buyers, tries and connections")
	case p.Shape != Spike && p.Shape != Ramp, p.Spread <= 0, p.GiveUpAfter <= 0, p.Spread+p.GiveUpAfter > longest:
		return fmt.Errorf("load test: a crowd of shape %q over %s and %s more is none", p.Shape, p.Spread, p.GiveUpAfter)
	}
	return nil
}

// Bounds of a plan.
const (
	MostBuyers = 5_000_000
	longest    = 30 * time.Minute
)

// Run lets the crowd in and returns when everybody has gone home and nothing is held any more, or ctx has ended: then
// with what happened so far.
func Run(ctx context.Context, p Plan) (Result, error) {
	if err := p.checked(); err != nil {
		return Result{}, err
	}
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
	r.drives = p.Limits.Reserves
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
