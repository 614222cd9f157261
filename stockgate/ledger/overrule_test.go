package ledger

import (
	"errors"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// overruled calls Overrule of SKU 1001 for a pause, and returns what it will be again, and whether it is in force.
func overruled(t *testing.T, s *Store, number int64) (State, bool) {
	t.Helper()
	_, before, inForce, err := s.Overrule(t.Context(), "1001", Paused, number)
	testkit.Check(t, err)
	return before, inForce
}

func reinstated(t *testing.T, s *Store, number int64) {
	t.Helper()
	testkit.Must[Stock](t)(s.Reinstate(t.Context(), "1001", number))
}

func isState(t *testing.T, s *Store, what string, want State) {
	t.Helper()
	testkit.Want(t, what, stockIn(t, s).State, want)
}

// Each number begins once and ends once, however often and in whichever order its calls arrive.
func TestOverrule_EachNumberBeginsAndEndsOnce(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		for range 2 {
			before, inForce := overruled(t, s, 7)
			testkit.Want(t, "before", before, On)
			testkit.Want(t, "in force", inForce, true)
			isState(t, s, "overruled", Paused)
		}
		testkit.Want(t, "an order", takeUnit(t, s, "a", "ann"), NotOnSale)
		for range 2 {
			reinstated(t, s, 7)
			isState(t, s, "ended", On)
		}
		_, inForce := overruled(t, s, 7)
		testkit.Want(t, "in force after its end", inForce, false)
		isState(t, s, "late", On)
		reinstated(t, s, 9)
		_, inForce = overruled(t, s, 8)
		testkit.Want(t, "one that was ended before it came", inForce, false)
		isState(t, s, "late", On)
	})
}

// The second of two pauses keeps what was before the first, whose end changes nothing any more.
func TestOverrule_LaterOneTakesThePlaceOfTheFormer(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		overruled(t, s, 7)
		before, _ := overruled(t, s, 8)
		testkit.Want(t, "before", before, On)
		reinstated(t, s, 7)
		isState(t, s, "after the end of the former", Paused)
		_, inForce := overruled(t, s, 7)
		testkit.Want(t, "the former in force", inForce, false)
		reinstated(t, s, 8)
		isState(t, s, "after the end of the later", On)
	})
}

// A pause that took the place of another one, and was ended before it came here, has ended the other one too: that one
// is in no list any more, and no one would open the SKU again.
func TestOverrule_EndOfOneThatNeverCameEndsTheFormer(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		overruled(t, s, 7)
		reinstated(t, s, 8)
		isState(t, s, "ended", On)
		for _, number := range []int64{7, 8} {
			_, inForce := overruled(t, s, number)
			testkit.Want(t, "late in force", inForce, false)
			reinstated(t, s, number)
			isState(t, s, "late", On)
		}
	})
}

// What an operator says meanwhile stands.
func TestOverrule_SetStateEndsIt(t *testing.T) {
	t.Parallel()
	for _, state := range []State{On, Paused, Ended} {
		withUnits(t, func(t *testing.T, s *Store) {
			overruled(t, s, 7)
			testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", state))
			_, inForce := overruled(t, s, 7)
			testkit.Want(t, "in force", inForce, false)
			reinstated(t, s, 7)
			isState(t, s, "after its end", state)
		})
	}
}

func TestOverrule_LeavesAFrozenLedgerAlone(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", Frozen))
		_, inForce := overruled(t, s, 7)
		testkit.Want(t, "in force", inForce, false)
		reinstated(t, s, 7)
		isState(t, s, "its state", Frozen)
	})
}

func TestOverrule_WantsALedgerAndANumber(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		_, _, _, err := s.Overrule(t.Context(), "none", Paused, 7)
		_, again := s.Reinstate(t.Context(), "none", 7)
		if !errors.Is(err, ErrUnknownSKU) || !errors.Is(again, ErrUnknownSKU) {
			t.Errorf("%v, %v", err, again)
		}
		for state, number := range map[State]int64{Paused: 0, On: 7, Frozen: 7} {
			if _, _, _, err := s.Overrule(t.Context(), "1001", state, number); err == nil {
				t.Errorf("%s under %d", state, number)
			}
		}
	})
}

// A ledger that froze by itself while it was paused is open once it is recovered, when the pause has ended meanwhile.
func TestOverrule_EndsInAFrozenLedgerToo(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	overruled(t, r, 7)
	testkit.Check(t, server.Client.HDel(t.Context(), hashOf1001, "m:"+r.instance).Err())
	testkit.Want(t, "reserve", takeUnit(t, r, "new", "zoe"), NotOnSale)
	isState(t, r, "now", Frozen)
	reinstated(t, r, 7)
	isState(t, r, "now", Frozen)
	testkit.Want(t, "what it goes back to",
		server.Client.HGet(t.Context(), hashOf1001, "was").Val(), string(On))
}

// A SKU is ended for a while, and archived meanwhile. The next sale opens when an operator says so.
func TestOverrule_EndsWithItsSale(t *testing.T) {
	t.Parallel()
	r, ctx := connect(t, redistest.Start(t), texts()), t.Context()
	testkit.Must[Stock](t)(r.SetTotal(ctx, testSKU, 2, 0))
	_, _, _, err := r.Overrule(ctx, testSKU, Ended, 7)
	testkit.Check(t, err)
	over := stockIn(t, r)
	testkit.Check(t, r.Archive(ctx, testSKU, over.Epoch, over.Ver))
	testkit.Must[Stock](t)(r.SetTotal(ctx, testSKU, 5, 0))
	reinstated(t, r, 7)
	isState(t, r, "the next sale", Ended)
}
