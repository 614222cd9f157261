package ledger

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// askAll asks once for each of n SKUs.
func askAll(t *testing.T, d *Desk, n int, want Code) {
	t.Helper()
	for i := range n {
		o := attempt("somebody", "")
		o.SKU = fmt.Append(nil, "many-", i)
		wants(t, string(o.SKU), d.Reserve(d.o.Now(), o), want)
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
		askAll(t, d, n, SoldOut)
		if calls := s.count("reserve") - n; calls != probesAtOnce {
			t.Errorf("%d looks at once, want %d", calls, probesAtOnce)
		}
		for range 40 { // 4 s: each is looked at again, some twice
			time.Sleep(100 * time.Millisecond)
			askAll(t, d, n, SoldOut)
		}
		calls := s.count("reserve") - n
		if most := probesAtOnce + int(4*time.Second)/int(probeEvery); calls < n || calls > most {
			t.Errorf("%d looks in 4 s, want %d to %d", calls, n, most)
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
