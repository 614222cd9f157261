package ledger

// Time in this file is virtual (testing/synctest).

import (
	"testing"
	"time"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// say changes what the fakeStore says of the SKU.
func (s *fakeStore) say(change func(*protocol.Stock)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.skus[ledgertest.SKU].stock)
}

func TestReserver_VerifyingStateIsRefreshedSoonAndByOneOrder(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "before", d.buy("1", ""), protocol.Held)
		s.say(func(st *protocol.Stock) { st.State = protocol.Verifying })
		for i := range 100 {
			if out := d.buy("2", ""); out.Code != protocol.NotOnSale || out.State != protocol.Verifying {
				t.Fatalf("%d: %v", i, out)
			}
		}
		if n := s.asked(); n != 2 {
			t.Errorf("%d calls", n)
		}
		s.say(func(st *protocol.Stock) { st.State = protocol.On })
		wants(t, "still believed", d.buy("2", ""), protocol.NotOnSale)
		time.Sleep(time.Duration(verifyingFor) + 1)
		wants(t, "looked into", d.buy("2", ""), protocol.Held)
	})
}

// What is gone is older than what was known, and yet it is the truth.
func TestReserver_LostLedgerClosesTheSKUUntilALaterOneIsThere(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "before", d.buy("1", ""), protocol.Held)
		d.Learn(
			ledgertest.SKU,
			protocol.StockVersion{Free: 9, Epoch: 1, Ver: 50, State: protocol.On}, // by another way, and newer
		)
		s.say(func(st *protocol.Stock) {
			st.StockVersion = protocol.StockVersion{Epoch: 1, Ver: 2, State: protocol.Lost}
		})
		for range 3 {
			if out := d.buy("2", ""); out.Code != protocol.NotOnSale || out.State != protocol.Lost {
				t.Fatal(out)
			}
		}
		if s.count("state") != 0 || ledgertest.Value(d.lost) != 0 {
			t.Error("the reserver froze what is not there")
		}
		time.Sleep(time.Second + 1)
		s.say(func(st *protocol.Stock) {
			st.StockVersion = protocol.StockVersion{Free: 5, Epoch: 2, Ver: 1, State: protocol.On}
		})
		wants(t, "a later one", d.buy("2", ""), protocol.Held)
	})
}
