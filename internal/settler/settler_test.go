package settler

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/redisstore"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestSettlement_RefundByALedgerThatIsGoneIsNotDone(t *testing.T) {
	server := redistest.Start(t)
	store, err := redisstore.New(redisstore.Options{Options: redisconn.Options{
		Addresses: []string{server.Addr}, PoolSize: 1, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
	}, Events: 10, Visitor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := Settlement{ledger: store}
	if ok, err := s.Refund(t.Context(), "gone", "o1"); ok || err != nil {
		t.Errorf("%v, %v: want false, so that it is tried again", ok, err)
	}
}
