package stockgate

import (
	"context"
	"log/slog"
	"time"
)

const (
	askedAtOnce = 256  // buyers in one round trip
	maxAsking   = 4096 // buyers that wait for their turn
)

// Buyer asks whether User has bought SKU before.
type Buyer struct {
	SKU    string
	User   []byte
	Bought bool
	Fault  error // it cannot be known of this SKU
}

// buyers knows who has bought by asking, for requests that may go on otherwise. One round trip is under way at a
// time, in which all go who came during the one before: the busier, the larger, and never a timer.
type buyers struct {
	ask  func(context.Context, []Buyer) error
	wait time.Duration

	queue  chan *question
	spare  chan *question
	faults faults
	done   chan struct{} // closed when run has returned

	// The goroutine's own.
	asking []*question
	asked  []Buyer
}

// question is one buyer's, kept for the next one once it is answered. Who stops waiting leaves it to the goroutine.
type question struct {
	sku    string
	user   []byte // a copy: the request's own bytes may be gone before the answer is there
	answer chan membership
	timer  *time.Timer
}

// membership is what is known of one user and the set of buyers.
type membership uint8

const (
	undetermined membership = iota
	newBuyer
	hasBought
)

func newBuyers(ask func(context.Context, []Buyer) error, wait time.Duration, log *slog.Logger) *buyers {
	return &buyers{
		ask:    ask,
		wait:   wait,
		queue:  make(chan *question, maxAsking),
		spare:  make(chan *question, askedAtOnce),
		faults: faults{named: make(map[string]bool), log: log},
		done:   make(chan struct{}),
	}
}

// acquireQuestion returns an unused one.
func (b *buyers) acquireQuestion() *question {
	select {
	case q := <-b.spare:
		return q
	default:
		return &question{answer: make(chan membership, 1), timer: time.NewTimer(time.Hour)}
	}
}

// releaseQuestion takes one back that is answered, or was never asked.
func (b *buyers) releaseQuestion(q *question) {
	q.timer.Stop()
	select {
	case b.spare <- q:
	default:
	}
}

// membershipOf waits for the answer about one user, at most for the gate's bound.
func (b *buyers) membershipOf(sku string, user []byte) membership {
	q := b.acquireQuestion()
	q.sku, q.user = sku, append(q.user[:0], user...)
	select {
	case b.queue <- q:
	default:
		b.releaseQuestion(q)
		return undetermined
	}
	q.timer.Reset(b.wait)
	select {
	case found := <-q.answer:
		b.releaseQuestion(q)
		return found
	case <-q.timer.C:
	case <-b.done:
		q.timer.Stop()
	}
	return undetermined
}

// run answers until ctx ends.
func (b *buyers) run(ctx context.Context) {
	defer close(b.done)
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-b.queue:
			b.round(ctx, q)
		}
	}
}

// round answers first and all who wait behind it, as far as they fit into one round trip.
func (b *buyers) round(ctx context.Context, first *question) {
	b.asking = append(b.asking[:0], first)
	for len(b.asking) < askedAtOnce && len(b.queue) > 0 {
		b.asking = append(b.asking, <-b.queue) // no other goroutine takes from it
	}
	b.asked = b.asked[:0]
	for _, q := range b.asking {
		b.asked = append(b.asked, Buyer{SKU: q.sku, User: q.user})
	}
	err := b.ask(ctx, b.asked)
	for i, q := range b.asking {
		found := undetermined
		if err == nil {
			found = b.readAnswer(&b.asked[i])
		}
		b.asking[i] = nil
		q.answer <- found // it has room for one
	}
}

// readAnswer reads one answer.
func (b *buyers) readAnswer(a *Buyer) membership {
	b.faults.report(a.SKU, a.Fault)
	switch {
	case a.Fault != nil:
		return undetermined
	case a.Bought:
		return hasBought
	}
	return newBuyer
}
