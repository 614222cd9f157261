package roomstore

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/room"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func open(t *testing.T, r *redistest.Server) *Store {
	t.Helper()
	link, err := redisconn.New(redisconn.Options{Addresses: []string{r.Addr}, PoolSize: 2, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: redisconn.Unbroken, BreakerPause: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return New(link, "double-11")
}

// made is a store whose room was made.
func made(t *testing.T, r *redistest.Server, sale room.Sale) *Store {
	t.Helper()
	s := open(t, r)
	if ok, err := s.Create(t.Context(), &room.Rules{Draw: true}, sale, Reading{}); err != nil || !ok {
		t.Fatalf("made %v, %v", ok, err)
	}
	return s
}

func (s *Store) read(t *testing.T, rules room.Rules, sale room.Sale, stock *Stock, last *room.State) Reading {
	t.Helper()
	r, err := s.Tick(t.Context(), &rules, sale, stock, last)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// around is a sale that began a minute ago, or begins in one.
func around(began bool) room.Sale {
	by := time.Minute
	if began {
		by = -by
	}
	return room.Sale{Starts: time.Now().Add(by).UnixMilli(), Ends: time.Now().Add(time.Hour).UnixMilli()}
}

func TestStore_NumbersAreGivenOutOnce(t *testing.T) {
	r := redistest.Start(t)
	s := open(t, r)
	if _, err := s.Join(t.Context(), 1); !errors.Is(err, ErrNoRoom) {
		t.Errorf("before the room is made: %v", err)
	}
	s = made(t, r, around(false))
	if n, err := s.Join(t.Context(), 5); err != nil || n.First != 1 || !n.Early {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := s.Join(t.Context(), 1); err != nil || n.First != 6 {
		t.Errorf("%+v, %v", n, err)
	}
	got := s.read(t, room.Rules{}, around(true), nil, nil)
	if got.State.Issued != 6 || got.State.Known {
		t.Errorf("%+v", got.State)
	}
	if n, err := s.Join(t.Context(), 1); err != nil || n.Early {
		t.Errorf("after the start: %+v, %v", n, err)
	}
}

// A million numbers of 100,000 users: the room is a hash and a HyperLogLog, which is sparse at first and then of 12 KiB.
func TestStore_AMillionPeopleTakeNoMemory(t *testing.T) {
	r := redistest.Start(t)
	s := made(t, r, around(false))
	const most = 16 << 10
	for call := range 100 {
		users := make([]string, 1000)
		for i := range users {
			users[i] = fmt.Sprint("user-", call*len(users)+i)
		}
		if _, err := s.Join(t.Context(), 10_000, users...); err != nil {
			t.Fatal(err)
		}
	}
	bytes := int64(0)
	for _, key := range []string{s.keys.room, s.keys.people} {
		n, err := r.Client.MemoryUsage(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		bytes += n
	}
	keys, err := r.Client.DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if bytes > most || keys != 2 {
		t.Errorf("%d bytes in %d keys", bytes, keys)
	}
	state := s.read(t, room.Rules{}, around(false), nil, nil).State
	if state.Issued != 1_000_000 || state.People < 95_000 || state.People > 105_000 {
		t.Errorf("%d numbers of %d people", state.Issued, state.People)
	}
}

func TestStore_OneOfManyMovesTheRoom(t *testing.T) {
	r := redistest.Start(t)
	s := made(t, r, around(true))
	if _, err := s.Join(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	read := s.read(t, room.Rules{}, around(true), nil, nil)
	for i, want := range []bool{true, false, false} {
		if ok, err := s.Move(t.Context(), read.State, room.Move{Calls: 10, Serving: 10}, 0); err != nil || ok != want {
			t.Errorf("instance %d: moved %v, %v", i, ok, err)
		}
	}
	next := s.read(t, room.Rules{}, around(true), nil, read.State)
	if next.State.Called != 10 || next.State.Serving != 10 || next.State.Moves != 1 || len(next.State.Steps) != 1 {
		t.Errorf("%+v", next.State)
	}
	if again := s.read(t, room.Rules{}, around(true), nil, next.State); len(again.State.Steps) != 1 {
		t.Errorf("steps %+v", again.State.Steps)
	}
}

func TestStore_StepsAreReadFromWhereTheyWereLeft(t *testing.T) {
	last := &room.State{Count: 2, Steps: []room.Step{{At: 1000, Serving: 1}, {At: 2000, Serving: 2}}}
	line := func(at, serving int64) string { return room.Step{At: at, Serving: serving}.String() }
	for name, c := range map[string]struct {
		last  *room.State
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

func TestStore_PassesCountOnce(t *testing.T) {
	r := redistest.Start(t)
	s := made(t, r, around(true))
	ctx, far := t.Context(), time.Now().Add(time.Hour).UnixMilli()
	claim := func(expires int64, within time.Duration, want int64, users ...string) {
		t.Helper()
		var claims []Claim
		for _, u := range users {
			claims = append(claims, Claim{User: u, Waited: 3 * time.Second})
		}
		until, err := s.Claim(ctx, expires, within, claims)
		if err != nil || len(until) != len(users) || until[len(until)-1] != want {
			t.Errorf("%v: %v, %v, want %d", users, until, err, want)
		}
	}
	use := func(users ...string) {
		t.Helper()
		if err := s.Use(ctx, users); err != nil {
			t.Fatal(err)
		}
	}
	counts := func(claimed, used, expired, inside int64) {
		t.Helper()
		got := s.read(t, room.Rules{}, around(true), nil, nil).State
		if got.Claimed != claimed || got.Used != used || got.Expired != expired || got.Inside != inside {
			t.Errorf("claimed %d, used %d, expired %d, inside %d; want %d, %d, %d, %d", got.Claimed, got.Used, got.Expired,
				got.Inside, claimed, used, expired, inside)
		}
	}
	claim(far, time.Minute, far, "a", "b", "a")
	claim(far+5, time.Minute, far, "a") // it has one
	counts(2, 0, 0, 2)
	use("a", "a", "none")
	use("a")
	claim(far+5, time.Minute, far, "a") // it was used
	counts(2, 1, 0, 1)
	claim(far, 0, far, "slow") // no order came in time
	counts(3, 1, 1, 1)
	claim(far+5, time.Minute, far, "slow")
	use("slow") // and then it did
	counts(3, 2, 0, 1)
	claim(1000, 0, 1000, "ended")
	use("ended")
	claim(far, time.Minute, far, "ended") // a new one
	counts(5, 3, 0, 2)
	state := s.read(t, room.Rules{}, around(true), nil, nil).State
	if wait, ok := state.Waits.Quantile(0.5); !ok || wait != 4*time.Second || state.Waits[4] != 5 {
		t.Errorf("waits %v: %v", state.Waits, wait)
	}
}

func TestStore_NewerStockWins(t *testing.T) {
	r := redistest.Start(t)
	s := made(t, r, around(true))
	for _, c := range []struct {
		told       Stock
		free, held int64
	}{
		{Stock{true, "a", 1, 5, 10, 0, time.Minute}, 10, 0},
		{Stock{true, "a", 1, 9, 0, 3, time.Minute}, 0, 3},
		{Stock{true, "a", 1, 7, 4, 3, time.Minute}, 0, 3},
		{Stock{}, 0, 3},
		{Stock{true, "a", 2, 1, 8, 0, time.Minute}, 8, 0},
		{Stock{true, "b", 1, 1, 3, 0, time.Minute}, 3, 0}, // a SKU has left the sale
	} {
		got := s.read(t, room.Rules{}, around(true), &c.told, nil).State
		if got.Free != c.free || got.Held != c.held || !got.Known || (got.Returns > got.At) != (c.held > 0) {
			t.Errorf("%+v: free %d, held %d, returns %d", c.told, got.Free, got.Held, got.Returns)
		}
	}
}

func TestStore_DrawWaitsForItsBeacon(t *testing.T) {
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
	if _, err := got.State.Lottery.Final(); err != nil || got.State.Lottery.DrawnBy != room.ByBeacon {
		t.Errorf("%+v, %v", got.State.Lottery, err)
	}
}

func TestStore_OrderStandsFromTheStartOn(t *testing.T) {
	r := redistest.Start(t)
	s := open(t, r)
	fifo, draw := room.Rules{}, beaconRules()
	if ok, err := s.Create(t.Context(), &fifo, around(false), Reading{}); err != nil || !ok {
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
	r := redistest.Start(t)
	s := made(t, r, around(true))
	rules, was, later := room.Rules{Draw: true}, around(true), around(false)
	first := s.read(t, rules, was, nil, nil)
	if _, err := s.Move(t.Context(), first.State, room.Move{Calls: 1, Threshold: 99}, 0); err != nil {
		t.Fatal(err)
	}
	first = s.read(t, rules, was, nil, first.State)
	got := s.read(t, rules, later, nil, first.State)
	if got.State.Lottery.Drawn() || got.State.Lottery.Commit == first.State.Lottery.Commit || got.State.Threshold != 0 ||
		len(got.State.Steps) != 0 || got.State.Called != 0 {
		t.Errorf("%+v", got.State)
	}
	if n, err := s.Join(t.Context(), 9); err != nil || !n.Early {
		t.Errorf("%+v, %v", n, err)
	}
	if same := s.read(t, rules, later, nil, got.State); same.State.Lottery != got.State.Lottery {
		t.Errorf("drawn twice: %+v", same.State.Lottery)
	}
	if got = s.read(t, rules, was, nil, got.State); got.State.Early != 9 || !got.State.Lottery.Drawn() {
		t.Errorf("at the start: %+v", got.State)
	}
}

func TestStore_WithoutABeaconTheCommitmentDraws(t *testing.T) {
	r := redistest.Start(t)
	s := made(t, r, around(true))
	got := s.read(t, room.Rules{Draw: true}, around(true), nil, nil)
	if _, err := got.State.Lottery.Final(); err != nil || got.State.Lottery.DrawnBy != room.ByShop {
		t.Errorf("%+v, %v", got.State.Lottery, err)
	}
}

func TestStore_ARedisThatLostAllIsTold(t *testing.T) {
	r := redistest.Start(t)
	sale := around(true)
	s := made(t, r, sale)
	if _, err := s.Join(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	rules := room.Rules{Draw: true}
	read := s.read(t, rules, sale, nil, nil)
	if _, err := s.Move(t.Context(), read.State, room.Move{Calls: 2, Threshold: 1 << 50}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), Word, room.WordHold); err != nil {
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
		a.Early != b.Early || a.Lottery != b.Lottery || after.Word != room.WordHold || len(b.Steps) != 1 {
		t.Errorf("%+v, was %+v", b, a)
	}
}

func TestStore_TheNextSaleHasARoomOfItsOwn(t *testing.T) {
	r := redistest.Start(t)
	over := room.Sale{Starts: 1000, Ends: time.Now().UnixMilli() - 1000}
	s := made(t, r, over)
	if _, err := s.Join(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	if got := s.read(t, room.Rules{}, over, nil, nil); got.State.Issued != 9 {
		t.Errorf("%+v", got.State)
	}
	next := around(false)
	if _, err := s.Tick(t.Context(), &room.Rules{}, next, nil, nil); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	if ok, err := s.Create(t.Context(), &room.Rules{}, next, Reading{}); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if got := s.read(t, room.Rules{}, next, nil, nil); got.State.Issued != 0 || got.State.Opened < over.Ends {
		t.Errorf("%+v", got.State)
	}
	if _, err := s.Join(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	for _, sale := range []room.Sale{over, next} { // an instance with the configuration before
		if got := s.read(t, room.Rules{}, sale, nil, nil); got.State.Issued != 5 || got.State.Ends != next.Ends {
			t.Errorf("%+v", got.State)
		}
	}
}

func TestStore_ThresholdIsExact(t *testing.T) {
	r := redistest.Start(t)
	s := made(t, r, around(true))
	read := s.read(t, room.Rules{Draw: true}, around(true), nil, nil)
	for _, threshold := range []int64{room.ScoreEnd/3 + 1, room.ScoreEnd} {
		if _, err := s.Move(t.Context(), read.State, room.Move{Calls: 1, Threshold: threshold}, math.Pi); err != nil {
			t.Fatal(err)
		}
		if read = s.read(t, room.Rules{Draw: true}, around(true), nil, read.State); read.State.Threshold != threshold ||
			read.State.Steps[len(read.State.Steps)-1].Threshold != threshold || read.Credit != 3.142 {
			t.Errorf("%d: %+v, credit %v", threshold, read.State, read.Credit)
		}
	}
}
