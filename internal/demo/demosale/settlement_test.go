package demosale

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/demo"
	"sluice/internal/storetest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
)

// threeUnits are a ledger of which two units are sold, "s1" and "s2", and one was given back.
func threeUnits(t *testing.T) *redisstore.Store {
	t.Helper()
	m := storetest.Ledger(t)
	now := time.Now().UnixMilli()
	items := []protocol.Item{{Serial: "s1", User: "a", Quantity: 1}, {Serial: "s2", User: "b", Quantity: 1},
		{Serial: "s3", User: "c", Quantity: 1}}
	_, err1 := m.SetTotal(t.Context(), demoSKU, 3, 1)
	_, err2 := m.Reserve(t.Context(), demoSKU, 0, now, now+60_000, items, make([]protocol.Code, 3))
	_, err3 := m.Finish(t.Context(), demoSKU, now, now+60_000, protocol.Confirm, items[:2], make([]protocol.Done, 2))
	_, err4 := m.Finish(t.Context(), demoSKU, now, now+60_000, protocol.Release, items[2:], make([]protocol.Done, 1))
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// What the shop wrote down is counted by SQL, beside what was settled.
func TestSettlement_TellsByWhatTheShopHasOtherOrders(t *testing.T) {
	for name, c := range map[string]struct {
		orders map[string]string
		want   demo.Settled
	}{
		"the books balance": {map[string]string{"s1": "a", "s2": "b"}, demo.Settled{Sold: 2, Left: 1, Orders: 2}},
		"oversold, to one person twice": {map[string]string{"s1": "a", "s2": "a", "x": "d", "y": "e"},
			demo.Settled{Sold: 2, Left: 1, Orders: 4, Oversold: 1, Twice: 1, NoUnit: 2}},
		"an order that was given back": {map[string]string{"s1": "a", "s2": "b", "s3": "c"},
			demo.Settled{Sold: 2, Left: 1, Orders: 3, NoUnit: 1}},
		"an order is lost": {map[string]string{"s2": "b"}, demo.Settled{Sold: 2, Left: 1, Orders: 1, NoOrder: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := (&Options{}).openSettlement(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.end()
			got, err := s.read(t.Context(), threeUnits(t), c.orders)
			if err != nil || *got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestSettlement_KeepsTheFileThatIsNamed(t *testing.T) {
	d := &Options{Database: filepath.Join(t.TempDir(), "demo.db")}
	s, err := d.openSettlement(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.read(t.Context(), threeUnits(t), nil)
	s.end()
	if err != nil || got.File != d.Database {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = d.openSettlement(t.Context()) // its orders are of another ledger
	if err == nil || !strings.Contains(err.Error(), "--database") {
		t.Errorf("settling into it once more: %v", err)
	}
}
