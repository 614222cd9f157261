package room

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
)

func openStore(t *testing.T, r *redistest.Server) *Store {
	t.Helper()
	link := storetest.Link(t, r.Addr)
	return NewStore(link, "shop", "double-11")
}

// made is a store whose room was made.
func made(t *testing.T, r *redistest.Server, sale Sale) *Store {
	t.Helper()
	s := openStore(t, r)
	if ok, err := s.Create(t.Context(), &Rules{Draw: true}, sale, storeReading{}); err != nil || !ok {
		t.Fatalf("made %v, %v", ok, err)
	}
	return s
}

func (s *Store) read(t *testing.T, rules Rules, sale Sale, stock *KnownStock, last *State) storeReading {
	t.Helper()
	r, err := s.Tick(t.Context(), &rules, sale, stock, last)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// around is a sale that began a minute ago, or begins in one.
func around(began bool) Sale {
	by := time.Minute
	if began {
		by = -by
	}
	return Sale{Starts: time.Now().Add(by).UnixMilli(), Ends: time.Now().Add(time.Hour).UnixMilli()}
}

func TestStore_NumbersAreGivenOutOnce(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := openStore(t, r)
	if _, err := s.Join(t.Context(), 1); !errors.Is(err, ErrNoRoom) {
		t.Errorf("before the room is made: %v", err)
	}
	s = made(t, r, around(false))
	if n, err := s.Join(t.Context(), 5); err != nil || n.number != 1 || !n.early {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := s.Join(t.Context(), 1); err != nil || n.number != 6 {
		t.Errorf("%+v, %v", n, err)
	}
	got := s.read(t, Rules{}, around(true), nil, nil)
	if got.State.Issued != 6 || got.State.Known {
		t.Errorf("%+v", got.State)
	}
	if n, err := s.Join(t.Context(), 1); err != nil || n.early {
		t.Errorf("after the start: %+v, %v", n, err)
	}
}

// A million numbers of 100,000 users: the room is a hash and a HyperLogLog, which is sparse at first and then of 12
// KiB.
func TestStore_AMillionPeopleTakeNoMemory(t *testing.T) {
	t.Parallel()
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
	state := s.read(t, Rules{}, around(false), nil, nil).State
	if state.Issued != 1_000_000 || state.People < 95_000 || state.People > 105_000 {
		t.Errorf("%d numbers of %d people", state.Issued, state.People)
	}
}

func TestStore_PassesCountOnce(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := made(t, r, around(true))
	rules := Rules{ClaimWithin: time.Minute}
	ctx, far := t.Context(), time.Now().Add(time.Hour).UnixMilli()
	claim := func(expires int64, within time.Duration, want int64, users ...string) {
		t.Helper()
		var claims []Claim
		for _, u := range users {
			claims = append(claims, Claim{User: u, waited: 3 * time.Second, From: time.Now().UnixMilli()})
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
		got := s.read(t, rules, around(true), nil, nil).State
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
	if got := s.read(t, rules, around(true), nil, nil).State.Lately; got != 2 {
		t.Errorf("%d passes are of people who were called lately", got)
	}
	claim(far, 0, far, "slow") // no order came in time, and no one else who was called with it can come any more
	if got := s.read(t, rules, around(true), nil, nil).State.Lately; got != 2 {
		t.Errorf("then %d passes are of people who were called lately", got)
	}
	counts(3, 1, 1, 1)
	claim(far+5, time.Minute, far, "slow")
	use("slow") // and then it did
	counts(3, 2, 0, 1)
	claim(1000, 0, 1000, "ended")
	use("ended")
	claim(far, time.Minute, far, "ended") // a new one
	counts(5, 3, 0, 2)
	state := s.read(t, rules, around(true), nil, nil).State
	if wait, ok := state.Waits.Quantile(0.5); !ok || wait != 4*time.Second || state.Waits[4] != 5 {
		t.Errorf("waits %v: %v", state.Waits, wait)
	}
}
