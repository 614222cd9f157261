package queue

import (
	"context"
	"time"

	"sluice/internal/batch"
	"sluice/internal/periodic"
	"sluice/proxy"
	"sluice/stockgate/ledger"
)

const (
	decideTries = 4
	decideAgain = 50 * time.Millisecond // doubles
)

// decider tells the store what came of orders, and then the clients that wait for them. It is safe for concurrent use.
type decider struct {
	*shared
	underway *underway
	batch    batch.Calls[ledger.Decision, decided]
}

// decide has the store do what an attempt or a question came to. Where it cannot be told, a confirmation is settled as
// soon as it can be; everything else is found out when the lease ends.
func (c *decider) decide(sku string, o *ledger.Leased, r result) {
	if r.move == "" {
		return
	}
	done, h, err := c.tell(sku, o, r)
	switch {
	case err != nil && r.move == ledger.MoveConfirm:
		c.live().Settle(sku, o.Serial, ledger.Confirm)
	case err != nil:
		c.live().Log.Warn("the store was not told of an order; it is asked about at the end of its attempt", "sku", sku,
			"serial", o.Serial, "move", string(r.move), "err", err)
	case done == ledger.Changed && r.move == ledger.MoveConfirm:
		c.live().Settled(sku, o.Serial, ledger.Confirm, h)
		c.news(sku, o, ledger.StatusSold, r.answer)
	case done == ledger.Changed && r.move == ledger.MoveRelease:
		c.live().Settled(sku, o.Serial, ledger.Release, h)
		c.news(sku, o, ledger.StatusReleased, r.answer)
	case done == ledger.Changed && r.time == ledger.Never:
		c.alarms.Add(1)
		c.live().Log.Error("an order is stuck: its unit stays held until a person decides; see what the upstream has, then "+
			"sluice reservation requeue, confirm or release", "sku", sku, "serial", o.Serial, "attempts", o.Attempt, "cause",
			r.why)
	case (done == ledger.WasReleased || done == ledger.WasRefunded) && r.move == ledger.MoveConfirm:
		c.live().Settle(sku, o.Serial, ledger.Confirm) // which says it, and counts what contradicts
	}
}

// tell makes the call, and repeats it after errors.
func (c *decider) tell(sku string, o *ledger.Leased, r result) (done ledger.Done, h ledger.StockVersion,
	err error) {
	for try := range decideTries {
		if try > 0 && !periodic.Pause(c.ctx, decideAgain<<try) {
			return done, h, err
		}
		at := r.time
		if at == 0 {
			at = c.askedAgain(time.Now())
		}
		var came decided
		came, err = c.batch.Do(context.Background(), sku, ledger.Decision{Serial: o.Serial, Move: r.move,
			Lease: o.Lease, Time: at, Answer: r.answer, From: r.from})
		if err == nil {
			return came.done, came.version, nil
		}
	}
	return done, h, err
}

// askedAgain is when an order is asked about that waits again, where the ledger has lost changes: see MoveAgain.
func (c *decider) askedAgain(now time.Time) int64 {
	return now.Add(4*c.live().Timeout + c.live().Grace).UnixMilli()
}

// decided is what a decision came to.
type decided struct {
	done    ledger.Done
	version ledger.StockVersion
}

// tellAll tells the store of decisions about orders of a SKU.
func (c *decider) tellAll(sku string, all []ledger.Decision) ([]decided, error) {
	ctx, cancel := context.WithTimeout(c.ctx, callLimit)
	defer cancel()
	now := time.Now()
	c.calls[callDecide].Add(1)
	done, version, err := c.live().Store.Decide(ctx, sku, ledger.DecideCall{Now: now.UnixMilli(),
		Keep: now.Add(c.live().Keep).UnixMilli(), AnswerFor: answerFor.Milliseconds(), Decisions: all})
	if err != nil {
		return nil, err
	}
	out := make([]decided, len(done))
	for i := range done {
		out[i] = decided{done[i], version}
	}
	return out, nil
}

// expired releases an order that has waited for too long, and was not handed out.
func (c *decider) expired(sku string, o ledger.Leased) {
	answer := (&proxy.KeptAnswer{State: proxy.OrderExpired}).Text()
	done, h, err := c.tell(sku, &o, result{move: ledger.MoveCancel, answer: answer})
	if err == nil && done == ledger.Changed {
		c.expire.Add(1)
		c.live().Settled(sku, o.Serial, ledger.Release, h)
		c.news(sku, &o, ledger.StatusReleased, answer)
	}
}

// news tells of an order that was handed out here.
func (c *decider) news(sku string, o *ledger.Leased, status ledger.Status, answer string) {
	if c.live().News == nil {
		return
	}
	p := ledger.Position{Record: o.Record, Answer: answer}
	if p.Status = status; status == ledger.StatusHeld {
		p.Where = ledger.Delivering
	} else { // before the news: see Delivers
		c.underway.end(orderName{sku, o.Serial})
	}
	c.live().News(sku, p)
}
