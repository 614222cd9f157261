package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/proxy"
	"sluice/stockgate/ledger"
)

// Pulled is one order that was handed out to a consumer, which makes it until the deadline.
type Pulled struct {
	SKU string
	ledger.Leased
	Message proxy.QueuedRequest
	Receipt string // names this attempt and its place, for Settle
}

// PullCall is one call of Pull.
type PullCall struct {
	SKU    string // "" = of any
	Orders int    // at most maxPull
	Lease  time.Duration
}

// maxPull is how many orders one call hands out.
const maxPull = 100

// pullLimit is how long the store may take for all of one call.
const pullLimit = 5 * time.Second

// Pull hands out orders that wait, within the same limits as Send is called: their places are free when they are
// settled, or at the end of the lease. The store is told before: no order is handed out twice at a time.
func (d *Deliverer) Pull(ctx context.Context, c PullCall) (orders []Pulled, err error) {
	select {
	case <-d.halt:
		return nil, errors.New("this instance drains: ask another")
	default:
	}
	now, lease := time.Now(), min(c.Lease, d.live().Timeout)
	active := d.lines.active()
	if c.SKU != "" {
		if err := ledger.CheckSKU(c.SKU); err != nil {
			return nil, err
		}
		active = []*line{{sku: c.SKU}}
	}
	// From here on a consumer that has gone must not leave places and orders taken half.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullLimit)
	defer cancel()
	tokens := d.slots.newTokens(min(c.Orders, maxPull))
	d.calls[callSlots].Add(1)
	o := d.live()
	granted, err := o.Store.Slots(ctx, ledger.SlotCall{Want: tokens, Limit: o.MaxInFlight, Rate: o.Rate,
		For: (lease + o.Grace).Milliseconds(), Longest: d.longest().Milliseconds()})
	if err != nil {
		return nil, err
	}
	d.noteGrant(now, granted == 0 && len(tokens) > 0 && d.lines.total().Waiting > 0)
	tokens = tokens[:granted]
	for i := 0; i < len(active) && len(tokens) > 0; {
		n := min(len(tokens), d.live().atOnce())
		taken, fault := d.take(ctx, now, active[i], n, lease)
		if err = fault; err != nil {
			break
		}
		for _, o := range taken.Orders {
			p := place{token: tokens[0]}
			if m, ok := d.pulled(active[i].sku, o, p); ok {
				orders = append(orders, m)
			} else {
				d.slots.release(p) // perhaps another consumer has it
			}
			tokens = tokens[1:]
		}
		if len(taken.Orders) < n {
			i++ // it has no more
		}
	}
	for _, t := range tokens {
		d.slots.release(place{token: t, unused: true})
	}
	d.rouse() // the loop gives back what is free
	if len(orders) > 0 {
		return orders, nil // what was handed out must be told, whatever came after
	}
	return nil, err
}

// pulled is an order as it is handed out, unless its request or its place is lost.
func (d *Deliverer) pulled(sku string, o ledger.Leased, p place) (Pulled, bool) {
	r := result{move: ledger.MoveUnsent}
	m, err := proxy.DecodeQueuedRequest(o.Request)
	if err != nil {
		r = stuck("its request is lost")
	}
	if err != nil || !d.slots.extend(&o, p) {
		d.work.Go(func() { d.decider.decide(sku, &o, r) })
		return Pulled{}, false
	}
	receipt := strconv.FormatInt(o.Lease, 10) + "." + p.token
	if o.Open {
		receipt += openMark
	}
	return Pulled{SKU: sku, Leased: o, Message: m, Receipt: receipt}, true
}

// openMark ends the receipt of an order that an earlier attempt may have made: the consumer's "released" speaks of its
// own attempt, and does not end such an order.
const openMark = ".open"

// SettleCall says what became of an order that was handed out.
type SettleCall struct {
	SKU, Serial, Receipt string
	// MoveConfirm, MoveRelease, or MoveNotNow: it was not made, and is handed out again
	Move   ledger.Move
	After  time.Duration    // of MoveNotNow: not before, and at least a second
	Answer proxy.KeptAnswer // for the client; its Status is 0 where there is none
}

// Settle decides about an order that was handed out, and frees its place. A confirmation is taken at any time, any
// other word only while this attempt is the last one. It may be repeated after an error.
func (d *Deliverer) Settle(ctx context.Context, c SettleCall) (ledger.Done, error) {
	number, token, ok := strings.Cut(c.Receipt, ".")
	token, open := strings.CutSuffix(token, openMark)
	lease, err := ledger.Digits(number)
	if !ok || err != nil || len(token) > maxToken {
		return 0, fmt.Errorf("receipt %.60q is none that was given out", c.Receipt)
	}
	if err := ledger.CheckSerial(c.Serial); err != nil { // the store would reject all decisions of its call
		return 0, err
	}
	now := time.Now()
	decision := ledger.Decision{Serial: c.Serial, Move: c.Move, Lease: lease, Time: d.decider.askedAgain(now)}
	switch {
	case open && c.Move == ledger.MoveRelease:
		// whether it exists is asked, or it is handed out again
		decision.Move, decision.Time = ledger.MoveLater, now.UnixMilli()
	case c.Move == ledger.MoveNotNow:
		decision.From = now.Add(max(c.After, firstNotNow)).UnixMilli()
	case c.Answer.Status > 0:
		decision.Answer = c.Answer.Text()
	}
	came, err := d.decider.batch.Do(ctx, c.SKU, decision)
	if err != nil {
		return 0, err
	}
	done := came.done
	kind, op := attemptAgain, ledger.Release
	switch c.Move {
	case ledger.MoveConfirm:
		kind, op = attemptConfirmed, ledger.Confirm
	case ledger.MoveRelease:
		kind = attemptReleased
	}
	switch {
	case (done == ledger.WasReleased || done == ledger.WasRefunded) && c.Move == ledger.MoveConfirm:
		d.live().Settle(c.SKU, c.Serial, ledger.Confirm) // which says it, and counts what contradicts
	case done == ledger.Changed && decision.Move == ledger.MoveLater:
		d.counts[attemptUnknown].Add(1)
	case done == ledger.Changed && c.Move != ledger.MoveNotNow:
		d.live().Settled(c.SKU, c.Serial, op, came.version)
		fallthrough
	case done == ledger.Changed:
		d.counts[kind].Add(1)
	}
	d.slots.release(place{token: token})
	d.rouse()
	return done, nil
}

const maxToken = 64 // bytes
