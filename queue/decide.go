package queue

import (
	"context"
	"time"

	"sluice/internal/periodic"
	"sluice/queue/message"
	"sluice/stockgate/ledger/protocol"
)

const (
	decideTries = 4
	decideAgain = 50 * time.Millisecond // doubles
)

// decider tells the store what came of orders, and then the clients that wait for them. It is safe for concurrent use.
type decider struct {
	*shared
	underway *underway
	batch    batches[protocol.Decision, decided]
}

// decide has the store do what an attempt or a question came to. Where it cannot be told, a confirmation is settled as
// soon as it can be; everything else is found out when the lease ends.
func (c *decider) decide(sku string, o *protocol.Leased, r result) {
	if r.move == "" {
		return
	}
	done, h, err := c.tell(sku, o, r)
	switch {
	case err != nil && r.move == protocol.MoveConfirm:
		c.live().Settle(sku, o.Serial, protocol.Confirm)
	case err != nil:
		c.live().Log.Warn("the store was not told of an order; it is asked about at the end of its attempt", "sku", sku,
			"serial", o.Serial, "move", string(r.move), "err", err)
	case done == protocol.Changed && r.move == protocol.MoveConfirm:
		c.live().Settled(sku, o.Serial, protocol.Confirm, h)
		c.news(sku, o, protocol.StatusSold, r.answer)
	case done == protocol.Changed && r.move == protocol.MoveRelease:
		c.live().Settled(sku, o.Serial, protocol.Release, h)
		c.news(sku, o, protocol.StatusReleased, r.answer)
	case done == protocol.Changed && r.time == protocol.Never:
		c.alarms.Add(1)
		c.live().Log.Error("an order is stuck: its unit stays held until a person decides; see what the upstream has, then "+
			"sluice reservation requeue, confirm or release", "sku", sku, "serial", o.Serial, "attempts", o.Attempt, "cause",
			r.why)
	case done == protocol.WasReleased && r.move == protocol.MoveConfirm:
		c.live().Settle(sku, o.Serial, protocol.Confirm) // which counts the contradiction, and says it
	}
}

// tell makes the call, and repeats it after errors.
func (c *decider) tell(sku string, o *protocol.Leased, r result) (done protocol.Done, h protocol.StockVersion,
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
		came, err = c.batch.do(context.Background(), sku, protocol.Decision{Serial: o.Serial, Move: r.move,
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
	done    protocol.Done
	version protocol.StockVersion
}

// tellAll tells the store of decisions about orders of a SKU.
func (c *decider) tellAll(sku string, all []protocol.Decision) ([]decided, error) {
	ctx, cancel := context.WithTimeout(c.ctx, callLimit)
	defer cancel()
	now := time.Now()
	c.calls[callDecide].Add(1)
	done, version, err := c.live().Store.Decide(ctx, sku, protocol.DecideCall{Now: now.UnixMilli(),
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
func (c *decider) expired(sku string, o protocol.Leased) {
	answer := (&message.Answer{State: message.Expired}).Text()
	done, h, err := c.tell(sku, &o, result{move: protocol.MoveCancel, answer: answer})
	if err == nil && done == protocol.Changed {
		c.expire.Add(1)
		c.live().Settled(sku, o.Serial, protocol.Release, h)
		c.news(sku, &o, protocol.StatusReleased, answer)
	}
}

// news tells of an order that was handed out here.
func (c *decider) news(sku string, o *protocol.Leased, status protocol.Status, answer string) {
	if c.live().News == nil {
		return
	}
	p := protocol.Position{Record: o.Record, Answer: answer}
	if p.Status = status; status == protocol.StatusHeld {
		p.Where = protocol.Delivering
	} else { // before the news: see Delivers
		c.underway.end(orderName{sku, o.Serial})
	}
	c.live().News(sku, p)
}
