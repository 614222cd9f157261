package queue

import (
	"context"
	"slices"
	"time"

	"sluice/proxy"
	"sluice/stockgate/ledger"
)

// State is where an order of the queue is.
type State struct {
	ledger.Position
	ETA    time.Duration // until it is delivered; 0 = not known
	Answer proxy.KeptAnswer
}

// Settled reports whether nothing of it changes any more.
func (s *State) Settled() bool { return s.Status != ledger.StatusHeld }

// maxLooks are the orders that are looked for at once.
const maxLooks = 16 << 10

// Find finds an order. tooMany reports that too many ask.
func (d *Deliverer) Find(ctx context.Context, sku, serial string) (s State, tooMany bool, err error) {
	if ledger.CheckSKU(sku) != nil || ledger.CheckSerial(serial) != nil {
		return State{}, false, nil
	}
	defer d.looking.Add(-1)
	if d.looking.Add(1) > maxLooks {
		return State{}, true, nil
	}
	place, err := d.looks.Do(ctx, sku, serial)
	if err != nil {
		return State{}, false, err
	}
	return d.StateOf(sku, place), false, nil
}

// FindAll finds orders of a SKU, by position.
func (d *Deliverer) FindAll(sku string, serials []string) (states []State, err error) {
	for some := range slices.Chunk(serials, ledger.MaxItems) {
		places, err := d.find(sku, some)
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			states = append(states, d.StateOf(sku, p))
		}
	}
	return states, nil
}

// StateOf is what is known of an order at a place.
func (d *Deliverer) StateOf(sku string, p ledger.Position) State {
	s := State{Position: p}
	if s.Where == ledger.Queued {
		s.ETA = d.lines.eta(sku, s.Ahead)
	}
	s.Answer, _ = proxy.DecodeKeptAnswer(p.Answer) // what cannot be read is no answer
	return s
}

// Delivers reports whether this instance is delivering an order: what becomes of it is going to be news.
func (d *Deliverer) Delivers(sku, serial string) bool { return d.underway.has(orderName{sku, serial}) }

// find asks the store where orders of a SKU are. It does so while this instance drains, too.
func (d *Deliverer) find(sku string, serials []string) ([]ledger.Position, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	d.calls[callPlaces].Add(1)
	return d.live().Store.Positions(ctx, sku, serials)
}

// Cancel releases an order while it waits.
func (d *Deliverer) Cancel(ctx context.Context, sku, serial string) (ledger.Done, error) {
	if ledger.CheckSKU(sku) != nil || ledger.CheckSerial(serial) != nil {
		return ledger.NotFound, nil
	}
	came, err := d.decider.batch.Do(ctx, sku, ledger.Decision{Serial: serial, Move: ledger.MoveCancel,
		Answer: (&proxy.KeptAnswer{State: proxy.OrderCancelled}).Text()})
	if err == nil && came.done == ledger.Changed {
		d.live().Settled(sku, serial, ledger.Release, came.version)
	}
	return came.done, err
}
