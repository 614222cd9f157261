package memstore

import (
	"context"
	"sync"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestMemstore_MemoryTellsASlowListenerThatItMissedNews(t *testing.T) {
	m := New()
	ledgertest.Must[protocol.Stock](t)(m.SetTotal(t.Context(), "1001", 5, 0))
	ctx, cancel := context.WithCancel(t.Context())
	begun, missed, all := make(chan bool), 0, sync.WaitGroup{}
	all.Go(func() {
		m.Listen(ctx, func(string, protocol.StockVersion) {}, func() {
			if missed++; missed == 1 {
				begun <- true // and it listens only when this returns
				<-begun
			} else {
				cancel()
			}
		})
	})
	<-begun
	for i := range 2 * bufferSize {
		ledgertest.Must[protocol.Stock](
			t,
		)(
			m.SetState(t.Context(), "1001", []protocol.State{protocol.Paused, protocol.On}[i%2]),
		)
	}
	begun <- true
	all.Wait()
	ledgertest.Want(t, "times it may have missed news", missed, 2)
}
