package roomstore

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/room"
	"sluice/room/beacon"
)

// beaconRules are those of a draw by a beacon that publishes a round each second.
func beaconRules() room.Rules {
	return room.Rules{Draw: true, BeaconKey: "the key", Beacon: beacon.Schedule{Genesis: 1000, Period: 1000}}
}

// in is a sale that begins after some time.
func in(by time.Duration) room.Sale {
	now := time.Now()
	return room.Sale{Starts: now.Add(by).UnixMilli(), Ends: now.Add(time.Hour).UnixMilli()}
}

func TestDraw_RoundIsTheFirstOneAfterTheStartAndAfterNow(t *testing.T) {
	for name, c := range map[string]struct{ before, after time.Duration }{
		"as announced":        {time.Minute, time.Minute},
		"postponed":           {time.Minute, 10 * time.Minute},
		"moved into the past": {time.Minute, -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, rules := open(t, redistest.Start(t)), beaconRules()
			first, moved := in(c.before), in(c.after)
			if ok, err := s.Create(t.Context(), &rules, first, Reading{}); err != nil || !ok {
				t.Fatal(ok, err)
			}
			was := s.read(t, rules, first, nil, nil).State
			if _, err := s.Join(t.Context(), 1, "u"); err != nil {
				t.Fatal(err)
			}
			now := time.Now().UnixMilli()
			got := s.read(t, rules, moved, nil, was).State
			l, known := got.Lottery, max(moved.Starts, now)
			if l.BeaconAt <= known || l.BeaconAt > max(moved.Starts, got.At)+1000 || l.BeaconKey != rules.BeaconKey ||
				l.BeaconRound != l.BeaconAt/1000 || l.Commit != was.Lottery.Commit || l.Redrawn != 0 {
				t.Errorf("%+v for a start at %d", l, moved.Starts)
			}
		})
	}
}

// What a draw will be verified by is fixed when it is published: another key in the configuration of an instance that
// starts later changes nothing.
func TestDraw_KeyAndRoundStandFromTheStartOn(t *testing.T) {
	s, rules := open(t, redistest.Start(t)), beaconRules()
	if ok, err := s.Create(t.Context(), &rules, in(50*time.Millisecond), Reading{}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	soon := in(50 * time.Millisecond)
	was := s.read(t, rules, soon, nil, nil).State
	if _, err := s.Join(t.Context(), 1, "u"); err != nil {
		t.Fatal(err)
	}
	for was.At < soon.Starts {
		was = s.read(t, rules, soon, nil, was).State
	}
	other := rules
	other.BeaconKey, other.Beacon.Period = "of another beacon", 7000
	without := rules
	without.BeaconKey = ""
	for _, r := range []room.Rules{other, without} {
		if got := s.read(t, r, soon, nil, nil).State; got.Lottery != was.Lottery {
			t.Errorf("%+v, was %+v", got.Lottery, was.Lottery)
		}
	}
}

// Instances read their files one after the other. Until all have, some still know the start before, which is over.
func TestDraw_PostponedOneHasOneNewSeedWhileInstancesReload(t *testing.T) {
	for name, rules := range map[string]room.Rules{"beacon": beaconRules(), "seed alone": {Draw: true}} {
		t.Run(name, func(t *testing.T) {
			s, was, later := open(t, redistest.Start(t)), in(-time.Second), in(time.Minute)
			if ok, err := s.Create(t.Context(), &rules, was, Reading{}); err != nil || !ok {
				t.Fatal(ok, err)
			}
			a := s.read(t, rules, was, nil, nil).State
			b := s.read(t, rules, was, nil, nil).State
			first := a.Lottery.Commit
			a = s.read(t, rules, later, nil, a).State // it has reloaded
			second := a.Lottery
			for range 3 { // b has not
				b = s.read(t, rules, was, nil, b).State
				a = s.read(t, rules, later, nil, a).State
			}
			b = s.read(t, rules, later, nil, b).State
			if first == second.Commit || a.Lottery != second || b.Lottery != second || b.Early != 0 || b.Starts != later.Starts ||
				second.Redrawn != 1 || second.Drawn() {
				t.Errorf("committed to %s, then %+v, then %+v", first, second, b)
			}
			if n, err := s.Join(t.Context(), 1, "u"); err != nil || !n.Early {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}

// A reload changes hours. The order is that of the instance which has started last, also where the one that reloads
// has another.
func TestDraw_ReloadChangesNoOrder(t *testing.T) {
	s, draw, fifo := open(t, redistest.Start(t)), beaconRules(), room.Rules{}
	first, later := in(time.Minute), in(2*time.Minute)
	if ok, err := s.Create(t.Context(), &fifo, first, Reading{}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	old := s.read(t, fifo, first, nil, nil).State
	was := s.read(t, draw, first, nil, nil).State
	if _, err := s.Join(t.Context(), 1, "u"); err != nil {
		t.Fatal(err)
	}
	got := s.read(t, fifo, later, nil, old).State
	if l := got.Lottery; !got.Draw || l.Commit != was.Lottery.Commit || got.Starts != later.Starts ||
		l.BeaconAt <= later.Starts || l.BeaconAt > later.Starts+1000 {
		t.Errorf("%+v, was %+v", got, was.Lottery)
	}
}
