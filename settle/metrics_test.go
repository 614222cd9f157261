package settle

import (
	"errors"
	"testing"
	"time"
)

func TestPlace_TellsHowManyChangesWaitAndSinceWhen(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	ledger := func(ver int64) Ledger { return Ledger{Position: Position{1, ver}, Born: 1} }
	cursor := func(ver int64) *Cursor { return &Cursor{Position: Position{1, ver}, Born: 1} }
	fault := errors.New("the database is away")
	p := &skuCursor{}
	for i, step := range []struct {
		ledger Ledger
		cursor *Cursor // nil = not read
		err    error
		behind int64
		since  time.Time
	}{
		{ledger(5), cursor(5), nil, 0, time.Time{}},
		{ledger(9), cursor(5), nil, 4, at(1)},
		{ledger(12), cursor(5), fault, 7, at(1)}, // it has waited since the first of them
		{ledger(20), nil, fault, 7, at(1)},       // the cursor is not known: as it was
		{ledger(20), cursor(20), nil, 0, time.Time{}},
		{ledger(20), cursor(20), fault, 0, at(5)}, // whether anything waits is not known
		{ledger(30), nil, ErrElsewhere, 0, time.Time{}},
		{ledger(3), cursor(30), nil, 0, time.Time{}},                           // read before it was settled
		{Ledger{Position: Position{7, 2}, Born: 7}, cursor(30), nil, 2, at(8)}, // another ledger
		{Ledger{Position: Position{8, 2}}, cursor(30), nil, 1, at(8)},          // made again, and not read yet
		{Ledger{Position: Position{1, 30}}, cursor(30), nil, 0, time.Time{}},   // made again, and settled
	} {
		p.ledger, p.cursor, p.loaded = step.ledger, step.cursor, step.cursor != nil
		elsewhere := errors.Is(step.err, ErrElsewhere)
		p.measure(at(i), elsewhere, step.err != nil && !elsewhere)
		if p.behind != step.behind || !p.behindSince.Equal(step.since) {
			t.Errorf("step %d: %d changes wait since %v: want %d since %v", i, p.behind, p.behindSince, step.behind, step.since)
		}
	}
}
