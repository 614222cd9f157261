package queue

import (
	"context"
	"slices"
	"sync"
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

// looks finds orders for clients that ask, many in one call.
type looks struct {
	d       *Deliverer
	mu      sync.Mutex
	waiting map[string]*look // by SKU
	serials int
}

// look is one question about orders of a SKU.
type look struct {
	serials []string
	done    chan struct{}
	places  []protocol.Place
	err     error
}

const (
	lookPause = 5 * time.Millisecond // questions that come meanwhile are asked together
	maxLooks  = 16 << 10             // serials that wait
)

func (x *looks) open(d *Deliverer) { x.d, x.waiting = d, make(map[string]*look) }

// Look finds an order. tooMany reports that too many ask.
func (d *Deliverer) Look(ctx context.Context, sku, serial string) (s State, tooMany bool, err error) {
	if protocol.CheckSKU(sku) != nil || protocol.CheckSerial(serial) != nil {
		return State{}, false, nil
	}
	place, ok, err := d.looks.find(ctx, sku, serial)
	if err != nil || !ok {
		return State{}, !ok, err
	}
	s.Place = place
	switch {
	case place.Where == protocol.Queued:
		s.ETA = d.lines.eta(sku, place.Ahead)
	case place.Status != protocol.StatusHeld && place.Status != protocol.StatusNone:
		text, err := d.o.Store.Answer(ctx, sku, serial)
		if err != nil {
			return State{}, false, err
		}
		s.Answer, _ = message.DecodeAnswer(text) // what cannot be read is no answer
	}
	return s, false, nil
}

func (x *looks) find(ctx context.Context, sku, serial string) (p protocol.Place, ok bool, err error) {
	x.mu.Lock()
	l := x.waiting[sku]
	if l == nil {
		l = &look{done: make(chan struct{})}
	}
	at := slices.Index(l.serials, serial)
	if at < 0 {
		if x.serials >= maxLooks {
			x.mu.Unlock()
			return p, false, nil
		}
		x.serials++
		at = len(l.serials)
		l.serials = append(l.serials, serial)
	}
	if x.waiting[sku] == nil {
		x.waiting[sku] = l
		go x.call(sku, l) // it ends with its call, which is bounded
	}
	if len(l.serials) == protocol.MaxItems {
		delete(x.waiting, sku) // the next one begins another call
	}
	x.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		return p, true, ctx.Err()
	}
	if l.err != nil {
		return p, true, l.err
	}
	return l.places[at], true, nil
}

func (x *looks) call(sku string, l *look) {
	time.Sleep(lookPause)
	x.mu.Lock()
	if x.waiting[sku] == l {
		delete(x.waiting, sku)
	}
	x.serials -= len(l.serials)
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(x.d.ctx, callLimit)
	defer cancel()
	l.places, l.err = x.d.o.Store.Places(ctx, sku, l.serials)
	close(l.done)
}

// Cancel releases an order while it waits.
func (d *Deliverer) Cancel(ctx context.Context, sku, serial string) (protocol.Done, error) {
	if protocol.CheckSKU(sku) != nil || protocol.CheckSerial(serial) != nil {
		return protocol.NotFound, nil
	}
	now := time.Now()
	done, h, err := d.o.Store.Decide(ctx, sku, protocol.Decision{Serial: serial, Move: protocol.MoveCancel,
		Now: now.UnixMilli(), Keep: now.Add(d.o.Keep).UnixMilli(),
		Answer: (&message.Answer{State: message.Cancelled}).Text(), AnswerMS: AnswerFor.Milliseconds()})
	if err == nil && done == protocol.Changed {
		d.o.Settled(sku, serial, protocol.Release, h)
	}
	return done, err
}
