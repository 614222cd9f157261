package ledger

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// askAll asks once for each of n SKUs, at the same instant.
func askAll(t *testing.T, d *Desk, n int, want Code) {
	t.Helper()
	codes, _ := glanced(d, 0, n)
	if codes[want] != n {
		t.Fatalf("%v, want %d times %v", codes, n, want)
	}
}

// manySoldOut is a desk over n SKUs of which all is sold.
func manySoldOut(t *testing.T, n int) (*Desk, *shelf) {
	t.Helper()
	t.Helper()
	s := newShelf()
	for i := range n {
		s.put(fmt.Sprint("many-", i), 0, 0)
	}
	return opened(t, deskOptions(), s, nil), s
}

// A crowd over very many SKUs that are sold out is no call each: the looks have a pace, and all have their turn.
func TestManyClosedSKUsAreLookedAtInTurn(t *testing.T) {
	at(t, func(t *testing.T) {
		const n = 1000
		d, s := manySoldOut(t, n)
		askAll(t, d, n, SoldOut)
		synctest.Wait()
		if calls := s.count("reserve"); calls != n {
			t.Fatalf("%d calls, want one a SKU", calls)
		}
		time.Sleep(time.Second + 1)
		began := d.o.Now()
		askAll(t, d, n, SoldOut)
		if s.glances != probesAtOnce {
			t.Errorf("%d looks at once, want %d", s.glances, probesAtOnce)
		}
		for range 40 { // 4 s, and what the glances wait for: each is looked at again, some twice
			time.Sleep(100 * time.Millisecond)
			askAll(t, d, n, SoldOut)
		}
		if most := probesAtOnce + int((d.o.Now()-began)/probeEvery) + 1; s.glances < n || s.glances > most {
			t.Errorf("%d looks, want %d to %d", s.glances, n, most)
		}
		if calls := s.count("reserve"); calls != n {
			t.Errorf("%d orders had calls of their own, want none", calls-n)
		}
	})
}

// SKUs of which somebody knows that they have a ledger are no newcomers, however many are asked for at once, and are not
// forgotten before anybody has asked.
func TestExpectedSKUsAreNotKeptWaiting(t *testing.T) {
	at(t, func(t *testing.T) {
		const n = newSKUsAtOnce + 500
		d, _ := manySoldOut(t, n)
		for i := range n {
			if !d.Expect(fmt.Sprint("many-", i)) {
				t.Fatalf("there is no room for %d", i)
			}
		}
		time.Sleep(time.Minute) // many sweeps
		askAll(t, d, n, SoldOut)
	})
}
