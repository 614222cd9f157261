package main

import (
	"math"
	"testing"
)

func TestYardstick_CostsSomethingAndIsKeptBesideEachRound(t *testing.T) {
	nightly(t)
	y, err := newYardstick()
	if err != nil {
		t.Fatal(err)
	}
	defer y.close()
	c, err := y.measured(func() (cost, error) { return cost{Gates: 1}, nil })
	if err != nil || c.Yardstick <= 0 || c.Gates != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A round that was measured while the machine was half as fast counts for half of what it cost.
func TestYardstick_RoundsAreLevelledToTheMedianSpeed(t *testing.T) {
	spots := []spot{{Rounds: []cost{
		{Gates: 100, Redis: 10, Calls: 3, Yardstick: 20}, {Gates: 50, Redis: 5, Calls: 3, Yardstick: 10},
		{Gates: 50, Redis: 5, Yardstick: 10}, {Gates: 70},
	}}}
	got := levelled(spots)[0].Rounds
	for i, want := range []cost{{Gates: 50, Redis: 5, Calls: 3}, {Gates: 50, Redis: 5, Calls: 3}, {Gates: 50, Redis: 5},
		{Gates: 70}} {
		if c := got[i]; math.Abs(c.Gates-want.Gates)+math.Abs(c.Redis-want.Redis) > 1e-9 || c.Calls != want.Calls {
			t.Errorf("round %d: %+v", i, c)
		}
	}
	if spots[0].Rounds[0].Gates != 100 {
		t.Error("what is kept is changed")
	}
}
