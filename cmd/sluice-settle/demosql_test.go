package main

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/demo"
	"sluice/internal/storetest"
	"sluice/settle"
	"sluice/stockgate/ledger"
)

// threeUnits are a ledger of which two units are sold, "s1" and "s2", and one was given back.
func threeUnits(t *testing.T) *ledger.Store {
	t.Helper()
	m := storetest.Ledger(t)
	now := time.Now().UnixMilli()
	items := []ledger.Item{{Serial: "s1", User: "a", Quantity: 1}, {Serial: "s2", User: "b", Quantity: 1},
		{Serial: "s3", User: "c", Quantity: 1}}
	_, err1 := m.SetTotal(t.Context(), demo.SKU, 3, 1)
	_, err2 := m.Reserve(t.Context(), demo.SKU, 0, now, now+60_000, items, make([]ledger.Code, 3))
	_, err3 := m.Finish(t.Context(), demo.SKU, now, now+60_000, ledger.Confirm, items[:2], make([]ledger.Done, 2))
	_, err4 := m.Finish(t.Context(), demo.SKU, now, now+60_000, ledger.Release, items[2:], make([]ledger.Done, 1))
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// What the shop wrote down is counted beside what was sold, by the ledger's records and by SQL alike.
func TestAudit_TellsByWhatTheShopHasOtherOrders(t *testing.T) {
	for name, c := range map[string]struct {
		orders map[string]string
		want   demo.Audit
	}{
		"the books balance": {map[string]string{"s1": "a", "s2": "b"}, demo.Audit{Sold: 2, Left: 1, Orders: 2}},
		"oversold, to one person twice": {map[string]string{"s1": "a", "s2": "a", "x": "d", "y": "e"},
			demo.Audit{Sold: 2, Left: 1, Orders: 4, Oversold: 1, Twice: 1, NoUnit: 2}},
		"an order that was given back": {map[string]string{"s1": "a", "s2": "b", "s3": "c"},
			demo.Audit{Sold: 2, Left: 1, Orders: 3, NoUnit: 1}},
		"an order is lost": {map[string]string{"s2": "b"}, demo.Audit{Sold: 2, Left: 1, Orders: 1, NoOrder: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			type audit func(context.Context, *ledger.Store, map[string]string) (*demo.Audit, error)
			for how, audit := range map[string]audit{
				"SQL": s.Audit, "records": demo.AuditRecords} {
				got, err := audit(t.Context(), threeUnits(t), c.orders)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if got.By, got.Proof = "", ""; *got != c.want {
					t.Errorf("%s: %+v; want %+v", how, got, c.want)
				}
			}
		})
	}
}

func TestSettlement_CountsRecordsThatDiffer(t *testing.T) {
	s, err := Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	records, err := s.settle(t.Context(), threeUnits(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		serial string
		record settle.Record
		differ int64
	}{
		"alike":             {"s1", records["s1"], 0},
		"of another person": {"s1", settle.Record{Serial: "s1", User: "z", Quantity: 1, Status: 'C'}, 1},
		"not settled":       {"s9", settle.Record{Serial: "s9", User: "z", Quantity: 1, Status: 'C'}, 1},
	} {
		changed := maps.Clone(records)
		changed[c.serial] = c.record
		if got, err := s.verify(t.Context(), changed); err != nil || got != c.differ {
			t.Errorf("%s: %d differ, %v; want %d", name, got, err, c.differ)
		}
	}
}

func TestSettlement_KeepsTheFileThatIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Audit(t.Context(), threeUnits(t), nil)
	s.Close()
	if err != nil || !strings.Contains(got.Proof, "sqlite3 "+path) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = Open(t.Context(), path) // its orders are of another ledger
	if err == nil || !strings.Contains(err.Error(), "--database") {
		t.Errorf("settling into it once more: %v", err)
	}
}
