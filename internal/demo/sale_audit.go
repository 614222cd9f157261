package demo

import (
	"context"
	"time"

	"sluice/stockgate/ledger"
)

// auditTime bounds the last step of a sale, also after an interrupt.
const auditTime = 30 * time.Second

// audit counts a sale that is over, whose orders in the shop are buyers by serial.
func (d *Options) audit(ctx context.Context, store *ledger.Store, orders map[string]string) (
	*Audit, error,
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	if d.Audit != nil {
		return d.Audit(ctx, store, orders)
	}
	return AuditRecords(ctx, store, orders)
}

// AuditRecords compares each record of the ledger with the shop's order of the same serial. The shop is the one to
// believe about its own orders; the ledger says how many there could be.
func AuditRecords(ctx context.Context, store *ledger.Store, orders map[string]string) (
	*Audit, error,
) {
	stock, _, err := store.ReadStock(ctx, SKU)
	if err != nil {
		return nil, err
	}
	sold := make(map[string]int64) // units by serial; a record may be read twice
	err = store.Records(ctx, SKU, func(r ledger.Record) bool {
		if r.Status == ledger.StatusSold {
			sold[r.Serial] = r.Quantity
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	a := &Audit{By: "The ledger's records and the shop's orders agree, one by one",
		Left: stock.Free + stock.Held, Orders: int64(len(orders)), Oversold: max(0, int64(len(orders))-stock.Total)}
	for serial, units := range sold {
		a.Sold += units
		if _, ok := orders[serial]; !ok {
			a.NoOrder += units
		}
	}
	bought := make(map[string]int, len(orders))
	for serial, buyer := range orders {
		if _, ok := sold[serial]; !ok {
			a.NoUnit++
		}
		if bought[buyer]++; bought[buyer] == 2 {
			a.Twice++
		}
	}
	return a, nil
}
