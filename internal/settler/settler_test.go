package settler

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// A reservation that is put back is looked at when its own time is over; one of an unknown time has the whole time.
func TestSettlement_PutsReservationsBackWithTheirTime(t *testing.T) {
	server := redistest.Start(t)
	s := NewLedgers(openLedger(t, server), "", 15*time.Minute)
	if _, err := s.store.SetTotal(t.Context(), "1001", 9, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	at := func(serial string, reserved int64) settle.Record {
		return settle.Record{Serial: serial, User: serial, Quantity: 1, Status: 'H', At: reserved}
	}
	orders := []settle.Record{
		at("over", now.Add(-time.Hour).UnixMilli()), at("under-way", now.Add(-time.Minute).UnixMilli()), at("unknown", 0),
	}
	if err := s.PutBack(t.Context(), "1001", orders); err != nil {
		t.Fatal(err)
	}
	due := func(serial string) int64 {
		return int64(server.Client.ZScore(t.Context(), "sluice:shop:{1001}:x", serial).Val())
	}
	if got, want := due("over"), now.Add(-45*time.Minute).UnixMilli(); got != want {
		t.Errorf("over: due at %d, want %d", got, want)
	}
	if got, want := due("under-way"), now.Add(14*time.Minute).UnixMilli(); got != want {
		t.Errorf("under way: due at %d, want %d", got, want)
	}
	if got, want := due("unknown"), now.Add(15*time.Minute).UnixMilli(); got < want {
		t.Errorf("unknown: due at %d, want %d or later", got, want)
	}
}

func openLedger(t *testing.T, server *redistest.Server) *ledger.Store {
	t.Helper()
	store, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: storetest.Redis(server.Addr), Events: 10,
		Visitor: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func TestSettlement_RefundByALedgerThatIsGoneIsNotDone(t *testing.T) {
	s := NewLedgers(openLedger(t, redistest.Start(t)), "", time.Minute)
	if ok, err := s.Refund(t.Context(), "gone", "o1"); ok || err != nil {
		t.Errorf("%v, %v: want false, so that it is tried again", ok, err)
	}
}

// onWrite calls itself with what is written.
type onWrite func(text string)

func (w onWrite) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestSettlement_LogsInWordsWhenItTriesAgain(t *testing.T) {
	store, err := sqlstore.Open(sqlstore.Options{URL: "postgres://u@127.0.0.1:1/shop"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, stop := context.WithCancel(t.Context())
	var said string
	log := slog.New(slog.NewJSONHandler(onWrite(func(text string) { said = text; stop() }), nil))
	s := Settlement{Store: store}
	if err := s.waitForSchema(ctx, &config.Config{}, log); err == nil || !strings.Contains(said, `"again_in":"2s"`) {
		t.Errorf("%v, %s", err, said)
	}
}
