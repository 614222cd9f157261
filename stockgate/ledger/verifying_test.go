package ledger

// Time in this file is virtual (testing/synctest).

import (
	"testing"
	"time"
)

// say changes what the fakeStore says of the SKU.
func (s *fakeStore) say(change func(*Stock)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.skus[testSKU].stock)
}

func TestReserver_VerifyingStateIsRefreshedSoonAndByOneOrder(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "before", d.buy("1", ""), Held)
		s.say(func(st *Stock) { st.State = Verifying })
		for i := range 100 {
			if out := d.buy("2", ""); out.Code != NotOnSale || out.State != Verifying {
				t.Fatalf("%d: %v", i, out)
			}
		}
		if n := s.asked(); n != 2 {
			t.Errorf("%d calls", n)
		}
		s.say(func(st *Stock) { st.State = On })
		wants(t, "still believed", d.buy("2", ""), NotOnSale)
		time.Sleep(time.Duration(verifyingFor) + 1)
		wants(t, "looked into", d.buy("2", ""), Held)
	})
}

// What is gone is older than what was known, and yet it is the truth.
func TestReserver_LostLedgerClosesTheSKUUntilALaterOneIsThere(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "before", d.buy("1", ""), Held)
		d.Learn(
			testSKU,
			StockVersion{Free: 9, Epoch: 1, Ver: 50, State: On}, // by another way, and newer
		)
		s.say(func(st *Stock) {
			st.StockVersion = StockVersion{Epoch: 1, Ver: 2, State: Lost}
		})
		for range 3 {
			if out := d.buy("2", ""); out.Code != NotOnSale || out.State != Lost {
				t.Fatal(out)
			}
		}
		if s.count("state") != 0 || valueOf(d.lost) != 0 {
			t.Error("the reserver froze what is not there")
		}
		time.Sleep(time.Second + 1)
		s.say(func(st *Stock) {
			st.StockVersion = StockVersion{Free: 5, Epoch: 2, Ver: 1, State: On}
		})
		wants(t, "a later one", d.buy("2", ""), Held)
	})
}
