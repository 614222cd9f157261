package room

import (
	"errors"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

func TestStore_DrawWaitsForItsBeacon(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(false))
	rules, beacon := beaconRules(), strings.Repeat("ab", 48)
	if _, err := s.Join(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	got := s.read(t, rules, around(false), nil, nil)
	if got.State.Lottery.Commit == "" || got.State.Lottery.Seed != "" || got.State.Early != 0 {
		t.Errorf("before: %+v", got.State.Lottery)
	}
	l := got.State.Lottery
	if err := s.Draw(t.Context(), &l, beacon); !errors.Is(err, ErrTooEarly) {
		t.Errorf("before the start: %v", err)
	}
	if got = s.read(t, rules, around(true), nil, nil); got.State.Lottery.Drawn() || got.State.Early != 5 {
		t.Errorf("at the start: %+v", got.State)
	}
	if err := s.Draw(t.Context(), &l, beacon); !errors.Is(err, ErrRound) {
		t.Errorf("by the round of the start before: %v", err)
	}
	l = got.State.Lottery
	if err := s.Draw(t.Context(), &l, beacon); err != nil {
		t.Fatal(err)
	}
	if err := s.Draw(t.Context(), &l, beacon); !errors.Is(err, ErrDrawn) {
		t.Errorf("twice: %v", err)
	}
	got = s.read(t, rules, around(true), nil, nil)
	if _, err := got.State.Lottery.Final(); err != nil || got.State.Lottery.DrawnBy != ByBeacon {
		t.Errorf("%+v, %v", got.State.Lottery, err)
	}
}

func TestStore_OrderStandsFromTheStartOn(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := openStore(t, r)
	fifo, draw := Rules{}, beaconRules()
	if ok, err := s.Create(t.Context(), &fifo, around(false), storeReading{}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	before := around(false)
	first := s.read(t, fifo, before, nil, nil)
	if _, err := s.Join(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	got := s.read(t, draw, before, nil, nil) // an instance that has started with another order
	if first.State.Draw || !got.State.Draw || got.State.Lottery.Commit == "" || got.State.Lottery.BeaconRound == 0 {
		t.Errorf("%+v, then %+v", first.State, got.State)
	}
	if old := s.read(t, fifo, before, nil, first.State); old.State.Lottery != got.State.Lottery || !old.State.Draw {
		t.Errorf("an instance that has the order before: %+v, want %+v", old.State, got.State)
	}
	if late := s.read(t, fifo, around(true), nil, nil); !late.State.Draw || late.State.Early != 5 ||
		late.State.Lottery.Commit != got.State.Lottery.Commit {
		t.Errorf("one that has started after the start: %+v", late.State)
	}
}

func TestStore_ALaterStartHasADrawOfItsOwn(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(true))
	rules, was, later := Rules{Draw: true}, around(true), around(false)
	first := s.read(t, rules, was, nil, nil)
	if _, err := s.Move(t.Context(), first.State, Move{Calls: 1, Threshold: 99}, 0); err != nil {
		t.Fatal(err)
	}
	first = s.read(t, rules, was, nil, first.State)
	got := s.read(t, rules, later, nil, first.State)
	if got.State.Lottery.Drawn() || got.State.Lottery.Commit == first.State.Lottery.Commit || got.State.Threshold != 0 ||
		len(got.State.Steps) != 0 || got.State.Called != 0 {
		t.Errorf("%+v", got.State)
	}
	if n, err := s.Join(t.Context(), 9); err != nil || !n.early {
		t.Errorf("%+v, %v", n, err)
	}
	if same := s.read(t, rules, later, nil, got.State); same.State.Lottery != got.State.Lottery {
		t.Errorf("drawn twice: %+v", same.State.Lottery)
	}
	got = s.read(t, rules, was, nil, got.State)
	if _, err := got.State.Lottery.Final(); got.State.Early != 9 || err != nil || got.State.Lottery.DrawnBy != ByShop {
		t.Errorf("at the start, without a beacon: %+v, %v", got.State, err)
	}
}
