package settle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	givebacksAtOnce = 100
	givebackEvery   = time.Second
	minGivebackWait = time.Second     // after the first try
	maxGivebackWait = 5 * time.Minute // between two tries
	givebackAlarm   = time.Hour       // an older one is a conflict
	maxGivenBack    = 10_000          // whose first try is remembered
)

// Giveback is the shop's word that an order is cancelled, written in the transaction that cancelled it.
type Giveback struct {
	ID     int64
	SKU    string
	Serial string
	Tries  int
	Age    time.Duration // since the shop wrote it

	Earlier bool // another home settles the SKU now: only an order of an earlier ledger than the cursor's is given back
}

// Known is what a database knows of an order that is given back.
type Known byte

const (
	KnownNot      Known = iota // there is no order yet, or it is not sold yet
	KnownRefunded              // it is refunded now, or was before
	KnownEarlier               // it is refunded, and belongs to an earlier ledger than the cursor's
	KnownReleased              // it was released: no unit was sold
	KnownMissing               // it is refunded, and the ledger did not know it: the give-back is done
)

// Givebacks are the orders that the shop gives back by the database.
type Givebacks interface {
	// Due returns the oldest due ones, at most n.
	Due(ctx context.Context, n int) ([]Giveback, error)

	// GiveBack refunds an order that is sold, or missing: its row and the stock, in one transaction. It is idempotent. Of
	// one that is missing it ends g. Born is the ledger of the order. One of an earlier ledger is KnownNot until all is
	// settled up to a position: the present ledger may have an order of this serial, too. Of an Earlier g, so is
	// one of the cursor's ledger. Its error wraps ErrElsewhere if another settler works on the SKU.
	GiveBack(ctx context.Context, g Giveback, upTo Position) (known Known, born int64, err error)

	// Postpone makes g due again after wait, and counts a try.
	Postpone(ctx context.Context, g Giveback, wait time.Duration) error

	// Done ends g.
	Done(ctx context.Context, g Giveback, outcome string) error
}

// GiveBack tries the orders that are due to be given back once, at most 100, and returns how many there were. The
// database comes first: its stock is never less than what Redis has free.
func (s *Settler) GiveBack(ctx context.Context) (n int, err error) {
	due, err := s.o.Givebacks.Due(ctx, givebacksAtOnce)
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, g := range due {
		if err := s.giveBack(ctx, g); err != nil && !errors.Is(err, ErrElsewhere) {
			faults = append(faults, fmt.Errorf("give back %q of %q: %w", g.Serial, g.SKU, err))
		}
	}
	return len(due), errors.Join(faults...)
}

func (s *Settler) giveBack(ctx context.Context, g Giveback) error {
	here, err := s.isHere(ctx, g.SKU)
	var upTo Position
	var elsewhere bool // it must be written into the database of the home that has the SKU
	switch {
	case err == nil && here:
		upTo = s.ledgerAtFirst(ctx, g)
	case err == nil:
		g.Earlier = true
		elsewhere, err = s.stream.knows(ctx, g.SKU, g.Serial)
	}
	if err != nil || elsewhere {
		return errors.Join(err, s.postpone(ctx, g))
	}
	known, born, err := s.o.Givebacks.GiveBack(ctx, g, upTo)
	if errors.Is(err, ErrElsewhere) {
		return errors.Join(err, s.o.Givebacks.Postpone(ctx, g, minGivebackWait))
	}
	if err != nil {
		return errors.Join(err, s.postpone(ctx, g))
	}
	switch known {
	case KnownReleased:
		return s.o.Givebacks.Done(ctx, g, "released")
	case KnownNot:
		return s.postpone(ctx, g)
	case KnownMissing:
		s.counts.givebacks.Add(1)
		_, err := s.o.Ledger.Refund(ctx, g.SKU, g.Serial) // an operator may have taken the order just now
		return err
	}
	if g.Earlier { // no ledger has it
		s.counts.givebacks.Add(1)
		return s.o.Givebacks.Done(ctx, g, "refunded")
	}
	l, current, err := s.current(ctx, g.SKU)
	if err != nil || !current {
		return errors.Join(err, s.postpone(ctx, g))
	}
	if !l.archived || l.Born == born { // else the ledger has no order of that sale: one of this serial is another order
		ok, err := s.o.Ledger.Refund(ctx, g.SKU, g.Serial)
		if err != nil || !ok && known != KnownEarlier {
			return errors.Join(err, s.postpone(ctx, g))
		}
	}
	s.counts.givebacks.Add(1)
	return s.o.Givebacks.Done(ctx, g, "refunded")
}

// ledgerAtFirst is where the ledger was when g was tried first: an order that the shop gives back was made before.
func (s *Settler) ledgerAtFirst(ctx context.Context, g Giveback) Position {
	at, ok := s.givenBack[g.ID]
	if ok {
		return at
	}
	all, err := s.stream.Ledgers(ctx, []string{g.SKU})
	if err != nil {
		return Position{math.MaxInt64, math.MaxInt64}
	}
	if len(s.givenBack) >= maxGivenBack {
		clear(s.givenBack)
	}
	s.givenBack[g.ID] = all[0].Position
	return all[0].Position
}

// current reports whether Redis has all that is settled. If the ledger is gone or behind, a refund there would be lost
// when the right Redis is back. The cursor is read first: a ledger is never behind it then.
func (s *Settler) current(ctx context.Context, sku string) (l Ledger, current bool, err error) {
	c, _, err := s.db.Cursor(ctx, sku)
	if err != nil {
		return l, false, err
	}
	all, err := s.stream.Ledgers(ctx, []string{sku})
	if err != nil {
		return l, false, err
	}
	return all[0], !all[0].Position.Before(c.Position), nil
}

// postpone tries again after 1 s, 2 s, 4 s ... 5 min. After an hour an operator is told.
func (s *Settler) postpone(ctx context.Context, g Giveback) error {
	wait := maxGivebackWait
	if g.Tries < 9 {
		wait = min(minGivebackWait<<g.Tries, maxGivebackWait)
	}
	if err := s.o.Givebacks.Postpone(ctx, g, wait); err != nil || g.Age < givebackAlarm {
		return err
	}
	s.log.Error("settle: an order cannot be given back for more than an hour", "sku", g.SKU, "serial", g.Serial)
	detail := fmt.Sprintf("the shop gives back the order %q, which is not known as sold, or whose ledger is gone from "+
		"Redis or older than the database; it is tried every 5 minutes; restore Redis, "+
		"correct the serial in row %d of sluice_giveback, or set its done", g.Serial, g.ID)
	if len(s.o.Home.All) > 1 {
		all, err := s.stream.Ledgers(ctx, []string{g.SKU})
		if err != nil {
			return err
		}
		detail += fmt.Sprintf("; the SKU is settled in %s now: give back an order of its present sale there, and an "+
			"order of an earlier sale in the home that settled that sale", s.o.Home.Owner(g.SKU, all[0]))
	}
	return s.db.Report(ctx, Conflict{SKU: g.SKU, Position: Position{0, g.ID}, Kind: "giveback", Detail: plain(detail)})
}
