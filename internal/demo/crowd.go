package demo

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// Crowd is a number of shoppers who all want the same thing at the same moment. Each has a uid, an address
// (told by X-Forwarded-For: all of them really come from loopback) and a connection of its own, and waits
// for an answer before pressing again.
type Crowd struct {
	Front    string        // host:port where the crowd comes in: the gate's, or the shop's own
	SKU      string        // what they want
	Shoppers int           // at least 1
	First    int           // the number of the first of them: crowds that follow each other are other people
	Spread   time.Duration // all have pressed once after this, half of them after a quarter of it; 0 = 1 s
	Patience time.Duration // when the last of them goes home; 0 = 20 s

	// Ledger tells what the gate's books say now, where the gate takes the units; nil = it does not. It is asked ten
	// times a second and more.
	Ledger func() Ledger
}

// Run lets the crowd at the sale, shows on out how it goes, and reports when everybody has gone home and no unit is
// held any more (waited for as long as Patience, from then on), or ctx has ended: then of what happened so far. An
// error means that there was no sale: no shopper has pressed.
func (c Crowd) Run(ctx context.Context, shop *Shop, out io.Writer) (Report, error) {
	if c.Shoppers < 1 || c.Front == "" || c.SKU == "" {
		return Report{}, errors.New("run crowd: it needs shoppers, a front and a SKU")
	}
	if c.Spread == 0 {
		c.Spread = time.Second
	}
	if c.Patience == 0 {
		c.Patience = 20 * time.Second
	}
	if err := enoughDescriptors(c.Shoppers); err != nil {
		return Report{}, err
	}
	begin, t := time.Now(), newTally()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.press(ctx, t)
		c.awaitDecisions(ctx, shop)
	}()
	look := func() Report { return c.report(t, shop, time.Since(begin)) }
	follow(out, gone, look)
	r := look()
	r.Interrupted = ctx.Err() != nil
	return r, nil
}

// press lets all shoppers press, and returns when the last of them has gone.
func (c Crowd) press(ctx context.Context, t *tally) {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	var crowd sync.WaitGroup
	for i := range c.Shoppers {
		s := c.shopper(c.First+i, t)
		crowd.Go(func() { s.shop(ctx) })
	}
	crowd.Wait()
}

// undecided is how often it is looked whether units are still held.
const undecided = 50 * time.Millisecond

// awaitDecisions waits until what the crowd has left behind is decided: orders that the gate asks the shop about, or
// that are still on their way.
func (c Crowd) awaitDecisions(ctx context.Context, shop *Shop) {
	if c.Ledger == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	for c.Ledger().Held > 0 || shop.Books().InFlight > 0 {
		if !sleep(ctx, undecided) {
			return
		}
	}
}

// shopper makes the i-th one. The same i always behaves alike: two crowds can be compared.
func (c Crowd) shopper(i int, t *tally) *shopper {
	dice := rand.New(rand.NewPCG(uint64(i), 0x5eed))
	u := dice.Float64()
	return &shopper{
		front:   c.Front,
		number:  i,
		request: orderRequest(c.Front, c.SKU, i),
		comes:   time.Duration(u * u * float64(c.Spread)), // most press at once, few late
		polite:  i%3 == 0,
		dice:    dice,
		tally:   t,
	}
}

// report reads the crowd's counts first, Sluice's ledger next and the shop's books last: what the crowd was told, or
// the ledger has counted as sold, is in the books by then.
func (c Crowd) report(t *tally, shop *Shop, took time.Duration) Report {
	r := t.read()
	r.Gated = c.Front != shop.Addr()
	r.Took = took
	r.Shoppers = int64(c.Shoppers)
	if c.Ledger != nil {
		l := c.Ledger()
		r.Ledger = &l
	}
	r.Shop = shop.Books()
	return r
}
