package redisstore

import (
	"errors"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// overruled calls Overrule of SKU 1001 for a pause, and returns what it will be again, and whether it is in force.
func overruled(t *testing.T, s *Store, number int64) (protocol.State, bool) {
	t.Helper()
	_, before, inForce, err := s.Overrule(t.Context(), "1001", protocol.Paused, number)
	ledgertest.Check(t, err)
	return before, inForce
}

func reinstated(t *testing.T, s *Store, number int64) {
	t.Helper()
	ledgertest.Must[protocol.Stock](t)(s.Reinstate(t.Context(), "1001", number))
}

func isState(t *testing.T, s *Store, what string, want protocol.State) {
	t.Helper()
	ledgertest.Want(t, what, ledgertest.StockOf(t, s).State, want)
}

// Each number begins once and ends once, however often and in whichever order its calls arrive.
func TestOverrule_EachNumberBeginsAndEndsOnce(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		for range 2 {
			before, inForce := overruled(t, s, 7)
			ledgertest.Want(t, "before", before, protocol.On)
			ledgertest.Want(t, "in force", inForce, true)
			isState(t, s, "overruled", protocol.Paused)
		}
		ledgertest.Want(t, "an order", ledgertest.Take(t, s, "a", "ann"), protocol.NotOnSale)
		for range 2 {
			reinstated(t, s, 7)
			isState(t, s, "ended", protocol.On)
		}
		_, inForce := overruled(t, s, 7)
		ledgertest.Want(t, "in force after its end", inForce, false)
		isState(t, s, "late", protocol.On)
		reinstated(t, s, 9)
		_, inForce = overruled(t, s, 8)
		ledgertest.Want(t, "one that was ended before it came", inForce, false)
		isState(t, s, "late", protocol.On)
	})
}

// The second of two pauses keeps what was before the first, whose end changes nothing any more.
func TestOverrule_LaterOneTakesThePlaceOfTheFormer(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		overruled(t, s, 7)
		before, _ := overruled(t, s, 8)
		ledgertest.Want(t, "before", before, protocol.On)
		reinstated(t, s, 7)
		isState(t, s, "after the end of the former", protocol.Paused)
		_, inForce := overruled(t, s, 7)
		ledgertest.Want(t, "the former in force", inForce, false)
		reinstated(t, s, 8)
		isState(t, s, "after the end of the later", protocol.On)
	})
}

// A pause that took the place of another one, and was ended before it came here, has ended the other one too: that one
// is in no list any more, and no one would open the SKU again.
func TestOverrule_EndOfOneThatNeverCameEndsTheFormer(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		overruled(t, s, 7)
		reinstated(t, s, 8)
		isState(t, s, "ended", protocol.On)
		for _, number := range []int64{7, 8} {
			_, inForce := overruled(t, s, number)
			ledgertest.Want(t, "late in force", inForce, false)
			reinstated(t, s, number)
			isState(t, s, "late", protocol.On)
		}
	})
}

// What an operator says meanwhile stands.
func TestOverrule_SetStateEndsIt(t *testing.T) {
	for _, state := range []protocol.State{protocol.On, protocol.Paused, protocol.Ended} {
		withUnits(t, func(t *testing.T, s *Store) {
			overruled(t, s, 7)
			ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", state))
			_, inForce := overruled(t, s, 7)
			ledgertest.Want(t, "in force", inForce, false)
			reinstated(t, s, 7)
			isState(t, s, "after its end", state)
		})
	}
}

func TestOverrule_LeavesAFrozenLedgerAlone(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.Frozen))
		_, inForce := overruled(t, s, 7)
		ledgertest.Want(t, "in force", inForce, false)
		reinstated(t, s, 7)
		isState(t, s, "its state", protocol.Frozen)
	})
}

func TestOverrule_WantsALedgerAndANumber(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		_, _, _, err := s.Overrule(t.Context(), "none", protocol.Paused, 7)
		_, again := s.Reinstate(t.Context(), "none", 7)
		if !errors.Is(err, protocol.ErrUnknownSKU) || !errors.Is(again, protocol.ErrUnknownSKU) {
			t.Errorf("%v, %v", err, again)
		}
		for state, number := range map[protocol.State]int64{protocol.Paused: 0, protocol.On: 7, protocol.Frozen: 7} {
			if _, _, _, err := s.Overrule(t.Context(), "1001", state, number); err == nil {
				t.Errorf("%s under %d", state, number)
			}
		}
	})
}

// A ledger that froze by itself while it was paused is open once it is recovered, when the pause has ended meanwhile.
func TestOverrule_EndsInAFrozenLedgerToo(t *testing.T) {
	server, r := onRedis(t)
	overruled(t, r, 7)
	ledgertest.Check(t, server.Client.HDel(t.Context(), hashOf1001, "m:"+r.instance).Err())
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
	isState(t, r, "now", protocol.Frozen)
	reinstated(t, r, 7)
	isState(t, r, "now", protocol.Frozen)
	ledgertest.Want(t, "what it goes back to",
		server.Client.HGet(t.Context(), hashOf1001, "was").Val(), string(protocol.On))
}
