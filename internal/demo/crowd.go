package demo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"sluice/internal/load"
	"sluice/internal/periodic"
)

// Crowd is a number of shoppers who all want the same thing at the same moment. Each has a uid, an address
// (told by X-Forwarded-For: all of them really come from loopback), and waits for an answer before pressing again.
type Crowd struct {
	Front       string        // host:port where the crowd comes in: the gate's, or the shop's own
	Shoppers    int           // at least 1
	First       int           // the number of the first of them: crowds that follow each other are other people
	Spread      time.Duration // all have pressed once after this, half of them after a quarter of it; 0 = 1 s
	GiveUpAfter time.Duration // when the last of them goes home, behind a room from the start on; 0 = 20 s

	Waits bool  // orders wait in the gate until the shop has room
	Room  *Room // the waiting room that they join before they order; nil = there is none

	// Ledger tells what the gate's books say now, where the gate takes the units; nil = it does not. It is asked ten
	// times a second and more.
	Ledger func() load.Ledger
}

// Run lets the crowd at the sale, shows on out how it goes, and reports when everybody has gone home and no unit is
// held any more (waited for as long as GiveUpAfter, from then on), or ctx has ended: then of what happened so far. An
// error means that there was no sale: no shopper has pressed.
func (c Crowd) Run(ctx context.Context, shop *load.Shop, out io.Writer) (Report, error) {
	if c.Shoppers < 1 || c.Front == "" {
		return Report{}, errors.New("run crowd: it needs shoppers and a front")
	}
	if c.Spread == 0 {
		c.Spread = time.Second
	}
	if c.GiveUpAfter == 0 {
		c.GiveUpAfter = 20 * time.Second
	}
	people, err := load.New(c.plan())
	if err != nil {
		return Report{}, err
	}
	begin, until := time.Now(), c.GiveUpAfter
	if c.Room != nil {
		until += time.Until(c.Room.Starts)
	}
	var seen roomSight
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		pressing, cancel := context.WithTimeout(ctx, until)
		defer cancel()
		var watch sync.WaitGroup
		if c.Room != nil {
			watch.Go(func() { c.watch(pressing, &seen) })
		}
		people.Run(pressing, begin)
		c.awaitDecisions(ctx, shop)
		cancel()
		watch.Wait()
	}()
	look := func() Report {
		r := c.report(people, shop, time.Since(begin))
		if c.Room != nil {
			r.Room = seen.report()
		}
		return r
	}
	follow(out, gone, look)
	r := look()
	r.Interrupted = ctx.Err() != nil
	if c.Room != nil {
		c.countOutcomes(ctx, people, r.Room)
	}
	return r, nil
}

// plan has a connection for each shopper, so that the shop without a gate has them all at once.
func (c Crowd) plan() load.Plan {
	p := load.Plan{
		Front: c.Front, First: c.First, Connections: c.Shoppers, GiveUpAfter: c.GiveUpAfter, Pause: pause,
		Order: load.Order{Match: "POST /api/seckill/{sku}/order", ID: SKU, SKU: "$path_sku",
			User: "$cookie_" + uidCookie, Address: "X-Forwarded-For", Names: shopperPrefix},
	}
	if c.Room != nil {
		p.Room, p.Arrivals, p.Absent = c.Room.Name, c.Room.arrivals(c.Shoppers), absent
		return p
	}
	for i := range c.Shoppers {
		u := rand.New(rand.NewPCG(uint64(c.First+i), 0x5eed)).Float64()
		p.Arrivals = append(p.Arrivals, time.Duration(u*u*float64(c.Spread))) // most press at once, few late
	}
	return p
}

// Between two presses of a shopper who does not care what the answer said.
const (
	quickest = 300 * time.Millisecond
	slowest  = time.Second
)

// polite shoppers come back when Retry-After says; the others press again at once.
func polite(shopper int) bool { return shopper%3 == 0 }

// pause is how long until the next press: polite shoppers wait as long as they were told to and are then as quick as
// the others. The same shopper always behaves alike: two crowds can be compared.
func pause(shopper, try int, told time.Duration) time.Duration {
	dice := rand.New(rand.NewPCG(uint64(shopper), uint64(try)))
	reaction := quickest + time.Duration(dice.Int64N(int64(slowest-quickest)))
	if polite(shopper) {
		return told + reaction
	}
	return reaction
}

// undecided is how often it is looked whether units are still held.
const undecided = 50 * time.Millisecond

// awaitDecisions waits until what the crowd has left behind is decided: orders that the gate asks the shop about, or
// that are still on their way.
func (c Crowd) awaitDecisions(ctx context.Context, shop *load.Shop) {
	if c.Ledger == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.GiveUpAfter)
	defer cancel()
	for (c.Ledger().Held > 0 || shop.Totals().UnderWay > 0) && periodic.Pause(ctx, undecided) {
		continue
	}
}

// report reads the crowd's counts first, Sluice's ledger next and the shop's books last: what the crowd was told, or
// the ledger has counted as sold, is in the books by then.
func (c Crowd) report(people *load.Crowd, shop *load.Shop, took time.Duration) Report {
	r := Report{
		Gated: c.Front != shop.Addr(), Took: took, Shoppers: int64(c.Shoppers), Waits: c.Waits, Counts: people.Counts(),
		Answer: load.Together(people.Answers, people.Rejections, people.Accepted).Times(), Sure: people.Sure.Times(),
	}
	if c.Ledger != nil {
		l := c.Ledger()
		r.Ledger = &l
	}
	r.Shop = shop.Totals()
	return r
}
