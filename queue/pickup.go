package queue

import (
	"context"
	"time"

	"sluice/queue/message"
	"sluice/stockgate/ledger/protocol"
)

// State is where an order of the queue is.
type State struct {
	protocol.Place
	ETA    time.Duration // until it is delivered; 0 = not known
	Answer message.Answer
}

// Settled reports whether nothing of it changes any more.
func (s *State) Settled() bool { return s.Status != protocol.StatusHeld }

// maxLooks are the orders that are looked for at once.
const maxLooks = 16 << 10

// Look finds an order. tooMany reports that too many ask.
func (d *Deliverer) Look(ctx context.Context, sku, serial string) (s State, tooMany bool, err error) {
	if protocol.CheckSKU(sku) != nil || protocol.CheckSerial(serial) != nil {
		return State{}, false, nil
	}
	defer d.looking.Add(-1)
	if d.looking.Add(1) > maxLooks {
		return State{}, true, nil
	}
	if s.Place, err = d.looks.do(ctx, sku, serial); err != nil {
		return State{}, false, err
	}
	if s.Where == protocol.Queued {
		s.ETA = d.lines.eta(sku, s.Ahead)
	}
	s.Answer, _ = message.DecodeAnswer(s.Place.Answer) // what cannot be read is no answer
	return s, false, nil
}

// find asks the store where orders of a SKU are.
func (d *Deliverer) find(sku string, serials []string) ([]protocol.Place, error) {
	ctx, cancel := context.WithTimeout(d.ctx, callLimit)
	defer cancel()
	return d.o.Store.Places(ctx, sku, serials)
}

// Cancel releases an order while it waits.
func (d *Deliverer) Cancel(ctx context.Context, sku, serial string) (protocol.Done, error) {
	if protocol.CheckSKU(sku) != nil || protocol.CheckSerial(serial) != nil {
		return protocol.NotFound, nil
	}
	came, err := d.decisions.do(ctx, sku, protocol.Decision{Serial: serial, Move: protocol.MoveCancel,
		Answer: (&message.Answer{State: message.Cancelled}).Text()})
	if err == nil && came.done == protocol.Changed {
		d.o.Settled(sku, serial, protocol.Release, came.version)
	}
	return came.done, err
}
