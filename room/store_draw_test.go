package room

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// beaconRules are those of a draw by a beacon that publishes a round each second.
func beaconRules() Rules {
	return Rules{Draw: true, BeaconKey: "the key", Beacon: BeaconSchedule{Genesis: 1000, Period: 1000}}
}

// in is a sale that begins after some time.
func in(by time.Duration) Sale {
	now := time.Now()
	return Sale{Starts: now.Add(by).UnixMilli(), Ends: now.Add(time.Hour).UnixMilli()}
}

func TestDraw_RoundIsTheFirstOneAfterTheStartAndAfterNow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after time.Duration }{
		"as announced":        {time.Minute, time.Minute},
		"postponed":           {time.Minute, 10 * time.Minute},
		"moved into the past": {time.Minute, -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, rules := openStore(t, redistest.Start(t)), beaconRules()
			first, moved := in(c.before), in(c.after)
			if ok, err := s.Create(t.Context(), &rules, first, storeReading{}); err != nil || !ok {
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
	t.Parallel()
	s, rules := openStore(t, redistest.Start(t)), beaconRules()
	if ok, err := s.Create(t.Context(), &rules, in(50*time.Millisecond), storeReading{}); err != nil || !ok {
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
	for _, r := range []Rules{other, without} {
		if got := s.read(t, r, soon, nil, nil).State; got.Lottery != was.Lottery {
			t.Errorf("%+v, was %+v", got.Lottery, was.Lottery)
		}
	}
}

// Instances read their files one after the other. Until all have, some still know the start before, which is over.
func TestDraw_PostponedOneHasOneNewSeedWhileInstancesReload(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]Rules{"beacon": beaconRules(), "seed alone": {Draw: true}} {
		t.Run(name, func(t *testing.T) {
			s, was, later := openStore(t, redistest.Start(t)), in(-time.Second), in(time.Minute)
			if ok, err := s.Create(t.Context(), &rules, was, storeReading{}); err != nil || !ok {
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
			if first == second.Commit || a.Lottery != second || b.Lottery != second || b.Early != 0 ||
				b.Starts != later.Starts ||
				second.Redrawn != 1 || second.Drawn() {
				t.Errorf("committed to %s, then %+v, then %+v", first, second, b)
			}
			if n, err := s.Join(t.Context(), 1, "u"); err != nil || !n.early {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}

// An instance that was cut off while a draw was made anew has no step of the draw before.
func TestDraw_StepsOfTheOneBeforeAreDropped(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, rules, was, later := openStore(t, server), Rules{Draw: true}, in(-time.Second), in(time.Minute)
	steps := func(first int64) (all []Step) {
		for i := range int64(5) {
			all = append(all, Step{At: first + 1000*i, Serving: 10 * i})
		}
		return all
	}
	known := storeReading{State: &State{Opened: 1, Early: 1, Steps: steps(1000)}, Seed: "seed"}
	if ok, err := s.Create(t.Context(), &rules, was, known); err != nil || !ok {
		t.Fatal(ok, err)
	}
	cutOff := s.read(t, rules, was, nil, nil).State
	if now := s.read(t, rules, later, nil, cutOff).State; len(cutOff.Steps) != 5 || len(now.Steps) != 0 {
		t.Fatalf("steps %+v, then %+v", cutOff.Steps, now.Steps)
	}
	for i, one := range steps(9000) {
		if err := errors.Join(server.Client.RPush(t.Context(), s.keys.steps, one.String()).Err(),
			server.Client.HSet(t.Context(), s.keys.room, "steps", i+1).Err()); err != nil {
			t.Fatal(err)
		}
	}
	if back := s.read(t, rules, later, nil, cutOff).State; !slices.Equal(back.Steps, steps(9000)) {
		t.Errorf("its steps are %+v", back.Steps)
	}
}

// A reload changes hours. The order is that of the instance which has started last, also where the one that reloads
// has another.
func TestDraw_ReloadChangesNoOrder(t *testing.T) {
	t.Parallel()
	s, draw, fifo := openStore(t, redistest.Start(t)), beaconRules(), Rules{}
	first, later := in(time.Minute), in(2*time.Minute)
	if ok, err := s.Create(t.Context(), &fifo, first, storeReading{}); err != nil || !ok {
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

// A user who joins ten times has ten numbers and one score. The threshold rises by people, or a tenth of those who are
// wanted would be called.
func TestDraw_PeopleCountAndNotTheirNumbers(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]bool{"the tick sees the start first": false, "a late one does": true} {
		t.Run(name, func(t *testing.T) {
			r, rules := redistest.Start(t), Rules{Draw: true, Overshoot: 1, ClaimWithin: time.Minute}
			s := openStore(t, r)
			sale := in(time.Hour)
			if ok, err := s.Create(t.Context(), &rules, sale, storeReading{}); err != nil || !ok {
				t.Fatal(ok, err)
			}
			state := s.read(t, rules, sale, nil, nil).State
			var users []string
			for i := range 1000 {
				users = append(users, fmt.Sprint("u", i))
			}
			if _, err := s.Join(t.Context(), 10*len(users), users...); err != nil {
				t.Fatal(err)
			}
			began := in(-time.Second)
			if join {
				if err := r.Client.HSet(t.Context(), s.keys.room, "starts", began.Starts).Err(); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Join(t.Context(), 1, "late"); err != nil {
					t.Fatal(err)
				}
			}
			state = s.read(t, rules, began, &KnownStock{Known: true, Epoch: 1, Version: 1, Free: 100}, state).State
			state.Phase = Open
			if state.Early != 10_000 || state.EarlyPeople < 950 || state.EarlyPeople > 1050 {
				t.Fatalf("%d numbers of %d people", state.Early, state.EarlyPeople)
			}
			final, err := state.Lottery.Final()
			if err != nil {
				t.Fatal(err)
			}
			called, threshold := 0, rules.Move(state, 1<<40).Threshold
			for _, u := range users {
				if final.Score([]byte(u)) < threshold {
					called++
				}
			}
			if called < 60 || called > 140 { // 100, by chance: four standard deviations
				t.Errorf("%d people are called for 100 units", called)
			}
		})
	}
}

// Redis has lost who had joined before: then numbers count, or far too many would be called.
func TestDraw_NumbersCountWhereRedisHasLostThePeople(t *testing.T) {
	t.Parallel()
	r, rules, sale := redistest.Start(t), Rules{Draw: true}, in(time.Hour)
	s := openStore(t, r)
	if ok, err := s.Create(t.Context(), &rules, sale, storeReading{}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := s.Join(t.Context(), 1000, "u"); err != nil {
		t.Fatal(err)
	}
	known := s.read(t, rules, sale, nil, nil)
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Create(t.Context(), &rules, sale, known); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := s.Join(t.Context(), 1, "v"); err != nil {
		t.Fatal(err)
	}
	if got := s.read(t, rules, in(-time.Second), nil, known.State).State; got.InDraw() != 1001 {
		t.Errorf("%d people are drawn", got.InDraw())
	}
}
