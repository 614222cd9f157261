package queue

import (
	"context"
	"time"

	"sluice/queue/message"
	"sluice/stockgate/ledger/protocol"
)

const (
	decideTries = 4
	decideAgain = 50 * time.Millisecond // doubles
)

// decide has the store do what an attempt or a question came to. Where it cannot be told, a confirmation is settled as
// soon as it can be; everything else is found out when the lease ends.
func (d *Deliverer) decide(sku string, o *protocol.Leased, r result) {
	if r.move == "" {
		return
	}
	done, h, err := d.tell(sku, o, r)
	switch {
	case err != nil && r.move == protocol.MoveConfirm:
		d.o.Settle(sku, o.Serial, protocol.Confirm)
	case err != nil:
		d.o.Log.Warn("the store was not told of an order; it is asked about at the end of its attempt", "sku", sku,
			"serial", o.Serial, "move", string(r.move), "err", err)
	case done == protocol.Changed && r.move == protocol.MoveConfirm:
		d.o.Settled(sku, o.Serial, protocol.Confirm, h)
		d.news(sku, o, protocol.StatusSold, r.answer)
	case done == protocol.Changed && r.move == protocol.MoveRelease:
		d.o.Settled(sku, o.Serial, protocol.Release, h)
		d.news(sku, o, protocol.StatusReleased, r.answer)
	case done == protocol.Changed && r.time == protocol.Never:
		d.alarms.Add(1)
		d.o.Log.Error("an order is stuck: its unit stays held until a person decides; see what the upstream has, then "+
			"sluice reservation requeue, confirm or release", "sku", sku, "serial", o.Serial, "attempts", o.Attempt, "cause",
			r.why)
	case done == protocol.WasReleased && r.move == protocol.MoveConfirm:
		d.o.Settle(sku, o.Serial, protocol.Confirm) // which counts the contradiction, and says it
	}
}

// tell makes the call, and repeats it after errors.
func (d *Deliverer) tell(sku string, o *protocol.Leased, r result) (done protocol.Done, h protocol.StockVersion,
	err error) {
	for try := range decideTries {
		if try > 0 {
			select {
			case <-time.After(decideAgain << try):
			case <-d.ctx.Done():
				return done, h, err
			}
		}
		at := r.time
		if at == 0 {
			at = d.askedAgain(time.Now())
		}
		var came decided
		came, err = d.decisions.do(context.Background(), sku, protocol.Decision{Serial: o.Serial, Move: r.move,
			Lease: o.Lease, Time: at, Answer: r.answer, From: r.from})
		if err == nil {
			return came.done, came.version, nil
		}
	}
	return done, h, err
}

// askedAgain is when an order is asked about that waits again, where the ledger has lost changes: see MoveAgain.
func (d *Deliverer) askedAgain(now time.Time) int64 {
	return now.Add(4*d.o.Timeout + d.o.Grace).UnixMilli()
}

// decided is what a decision came to.
type decided struct {
	done    protocol.Done
	version protocol.StockVersion
}

// tellAll tells the store of decisions about orders of a SKU.
func (d *Deliverer) tellAll(sku string, all []protocol.Decision) ([]decided, error) {
	ctx, cancel := context.WithTimeout(d.ctx, callLimit)
	defer cancel()
	now := time.Now()
	d.calls[callDecide].Add(1)
	done, version, err := d.o.Store.Decide(ctx, sku, protocol.DecideCall{Now: now.UnixMilli(),
		Keep: now.Add(d.o.Keep).UnixMilli(), AnswerFor: AnswerFor.Milliseconds(), Decisions: all})
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
func (d *Deliverer) expired(sku string, o protocol.Leased) {
	answer := (&message.Answer{State: message.Expired}).Text()
	done, h, err := d.tell(sku, &o, result{move: protocol.MoveCancel, answer: answer})
	if err == nil && done == protocol.Changed {
		d.expire.Add(1)
		d.o.Settled(sku, o.Serial, protocol.Release, h)
		d.news(sku, &o, protocol.StatusReleased, answer)
	}
}
