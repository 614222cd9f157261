package room

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

func TestStore_OneOfManyMovesTheRoom(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(true))
	if _, err := s.Join(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	read := s.read(t, Rules{}, around(true), nil, nil)
	for i, want := range []bool{true, false, false} {
		if ok, err := s.Move(t.Context(), read.State, Move{Calls: 10, Serving: 10}, 0); err != nil || ok != want {
			t.Errorf("instance %d: moved %v, %v", i, ok, err)
		}
	}
	next := s.read(t, Rules{}, around(true), nil, read.State)
	if next.State.Called != 10 || next.State.Serving != 10 || next.State.Moves != 1 || len(next.State.Steps) != 1 {
		t.Errorf("%+v", next.State)
	}
	if again := s.read(t, Rules{}, around(true), nil, next.State); len(again.State.Steps) != 1 {
		t.Errorf("steps %+v", again.State.Steps)
	}
}

func TestStore_StepsAreReadFromWhereTheyWereLeft(t *testing.T) {
	last := &State{Count: 2, Steps: []Step{{At: 1000, Serving: 1}, {At: 2000, Serving: 2}}}
	line := func(at, serving int64) string { return Step{At: at, Serving: serving}.String() }
	for name, c := range map[string]struct {
		last  *State
		lines []string
		count int64
		want  string
	}{
		"nothing new":     {last, []string{line(2000, 2)}, 2, "1 2"},
		"the last grew":   {last, []string{line(2000, 3)}, 2, "1 3"},
		"another one":     {last, []string{line(2000, 2), line(3000, 9)}, 3, "1 2 9"},
		"first":           {nil, []string{line(2000, 2), line(3000, 9)}, 2, "2 9"},
		"Redis lost some": {last, []string{line(5000, 7)}, 1, "7"},
		"much was missed": {last, []string{line(5000, 7), line(6000, 8)}, 9000, "7 8"},
	} {
		steps, err := merge(c.last, c.lines, c.count)
		var got []string
		for _, s := range steps {
			got = append(got, fmt.Sprint(s.Serving))
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, c.want)
		}
	}
	if last.Steps[1].Serving != 2 {
		t.Error("what others read has changed")
	}
}

func TestStore_NewerStockWins(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(true))
	for _, c := range []struct {
		told       KnownStock
		free, held int64
	}{
		{KnownStock{true, "a", 1, 5, 10, 0, time.Minute, 0}, 10, 0},
		{KnownStock{true, "a", 1, 9, 0, 3, time.Minute, 0}, 0, 3},
		{KnownStock{true, "a", 1, 7, 4, 3, time.Minute, 0}, 0, 3},
		{KnownStock{}, 0, 3},
		{KnownStock{true, "a", 2, 1, 8, 0, time.Minute, 0}, 8, 0},
		{KnownStock{true, "b", 1, 1, 3, 0, time.Minute, 0}, 3, 0}, // a SKU has left the sale
	} {
		got := s.read(t, Rules{}, around(true), &c.told, nil).State
		if got.Free != c.free || got.Held != c.held || !got.Known || (got.Returns > got.At) != (c.held > 0) {
			t.Errorf("%+v: free %d, held %d, returns %d", c.told, got.Free, got.Held, got.Returns)
		}
	}
}

func TestStore_ARedisThatLostAllIsTold(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	sale := around(true)
	s := made(t, r, sale)
	if _, err := s.Join(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	rules := Rules{Draw: true}
	read := s.read(t, rules, sale, nil, nil)
	if _, err := s.Move(t.Context(), read.State, Move{Calls: 2, Threshold: 1 << 50}, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Set(t.Context(), said{}, FieldOverride, OverrideHold); err != nil {
		t.Fatal(err)
	}
	before := s.read(t, rules, sale, nil, read.State)
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tick(t.Context(), &rules, sale, nil, before.State); !errors.Is(err, ErrNoRoom) {
		t.Fatalf("empty: %v", err)
	}
	for i, want := range []bool{true, false} {
		if ok, err := s.Create(t.Context(), &rules, sale, before); err != nil || ok != want {
			t.Fatalf("instance %d: %v, %v", i, ok, err)
		}
	}
	after := s.read(t, rules, sale, nil, nil)
	a, b := before.State, after.State
	if a.Opened != b.Opened || a.Issued != b.Issued || a.Threshold != b.Threshold || a.Called != b.Called ||
		a.Early != b.Early || a.Lottery != b.Lottery || after.Override != OverrideHold || len(b.Steps) != 1 {
		t.Errorf("%+v, was %+v", b, a)
	}
}

// An operator says something before any instance has seen that Redis has lost what was said before.
func TestStore_AWordSaysAgainWhatRedisHasLost(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	sale, rules := around(true), Rules{Draw: true}
	s := made(t, r, sale)
	say := func(known said, field, value string) (now said, lost bool) {
		t.Helper()
		now, lost, err := s.Set(t.Context(), known, field, value)
		if err != nil {
			t.Fatal(err)
		}
		return now, lost
	}
	if err := r.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	known := said{opened: s.read(t, rules, sale, nil, nil).State.Opened}
	known, _ = say(known, FieldOverride, OverrideHold)
	known, _ = say(known, FieldRate, "3")
	if read := s.read(t, rules, sale, nil, nil); read.said != known {
		t.Fatalf("%+v, was said %+v", read.said, known)
	}
	r.Kill()
	r.Restart()
	say(said{}, FieldMessage, "now") // by an instance that knows nothing
	now, lost := say(known, FieldMessage, "soon")
	if !lost {
		t.Error("nothing was lost")
	}
	got := s.read(t, rules, sale, nil, nil)
	if got.Override != OverrideHold || got.State.Rate != 3 || got.State.Message != "soon" || got.said != now {
		t.Errorf("%+v %+v", got, got.State)
	}
	if say(known, FieldOverride, ""); s.read(t, rules, sale, nil, nil).Override != "" {
		t.Error("an older reading undoes what was said since")
	}
}

func TestStore_TheNextSaleHasARoomOfItsOwn(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	over := Sale{Starts: 1000, Ends: time.Now().UnixMilli() - 1000}
	s := made(t, r, over)
	if _, err := s.Join(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	if got := s.read(t, Rules{}, over, nil, nil); got.State.Issued != 9 {
		t.Errorf("%+v", got.State)
	}
	next := around(false)
	if _, err := s.Tick(t.Context(), &Rules{}, next, nil, nil); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	if ok, err := s.Create(t.Context(), &Rules{}, next, storeReading{}); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if got := s.read(t, Rules{}, next, nil, nil); got.State.Issued != 0 || got.State.Opened < over.Ends {
		t.Errorf("%+v", got.State)
	}
	if _, err := s.Join(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	for _, sale := range []Sale{over, next} { // an instance with the configuration before
		if got := s.read(t, Rules{}, sale, nil, nil); got.State.Issued != 5 || got.State.Ends != next.Ends {
			t.Errorf("%+v", got.State)
		}
	}
}

func TestStore_ThresholdIsExact(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(true))
	read := s.read(t, Rules{Draw: true}, around(true), nil, nil)
	for _, threshold := range []int64{ScoreEnd/3 + 1, ScoreEnd} {
		if _, err := s.Move(t.Context(), read.State, Move{Calls: 1, Threshold: threshold}, math.Pi); err != nil {
			t.Fatal(err)
		}
		if read = s.read(t, Rules{Draw: true}, around(true), nil, read.State); read.State.Threshold != threshold ||
			read.State.Steps[len(read.State.Steps)-1].Threshold != threshold || read.Credit != 3.141592654 {
			t.Errorf("%d: %+v, credit %v", threshold, read.State, read.Credit)
		}
	}
}

// Redis' clock was a day ahead for a moment, in which the room was moved and read.
func TestStore_TimesOfAClockThatRanAheadAreNotBelieved(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(true))
	told := KnownStock{true, "a", 1, 1, 0, 3, time.Minute, 0}
	read := s.read(t, Rules{}, around(true), &told, nil)
	if ok, err := s.Move(t.Context(), read.State, Move{Calls: 10, Serving: 10}, 0); err != nil || !ok {
		t.Fatalf("moved %v, %v", ok, err)
	}
	tomorrow := time.Now().Add(24 * time.Hour).UnixMilli()
	write := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	write(r.Client.HSet(t.Context(), s.keys.room, "moved_at", tomorrow, "returns", tomorrow, "stock_at", tomorrow).Err())
	write(r.Client.Del(t.Context(), s.keys.steps).Err())
	for i := range int64(3) {
		step := Step{At: tomorrow + 1000*i, Serving: 8 + i, Called: 8 + i}
		write(r.Client.RPush(t.Context(), s.keys.steps, step.String()).Err())
	}
	write(r.Client.HSet(t.Context(), s.keys.room, "steps", 3).Err())
	read = s.read(t, Rules{}, around(true), &told, nil)
	if soon := read.State.At + time.Minute.Milliseconds(); read.MovedAt > read.State.At || read.State.Returns > soon {
		t.Errorf("moved at %d, all units are decided by %d, now is %d", read.MovedAt, read.State.Returns, read.State.At)
	}
	if at := r.Client.HGet(t.Context(), s.keys.room, "stock_at").Val(); at >= strconv.FormatInt(tomorrow, 10) {
		t.Errorf("the stock is known until %s", at)
	}
	if ok, err := s.Move(t.Context(), read.State, Move{Calls: 1, Serving: 11}, 0); err != nil || !ok {
		t.Fatalf("moved %v, %v", ok, err)
	}
	read = s.read(t, Rules{}, around(true), &told, nil)
	for _, step := range read.State.Steps {
		if step.At > read.State.At {
			t.Errorf("a step is %+v, now is %d", step, read.State.At)
		}
	}
	if last := read.State.Steps[len(read.State.Steps)-1]; last.Serving != 11 {
		t.Errorf("the last step is %+v", last)
	}
}
