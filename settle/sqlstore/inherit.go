package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// earlier is the ledger of the SKU before that of the batch; 0 = there is none, or its units do not count: Sluice's own
// table counts the units of one ledger.
func (s *Store) earlier(ctx context.Context, tx *sql.Tx, b *settle.Batch) (born int64, err error) {
	if s.stock.Table == "" || len(b.Records) == 0 {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, s.sql("SELECT COALESCE(MAX(born), 0) FROM sluice_order WHERE sku = ? AND born < ?"),
		stored(b.SKU), b.To.Born).Scan(&born)
	return born, err
}

// firstStatuses are those in which the batch meets each order first.
func firstStatuses(b *settle.Batch) map[string]ledger.Status {
	first := make(map[string]ledger.Status)
	note := func(records []settle.Record) {
		for _, r := range records {
			if first[r.Serial] == 0 {
				first[r.Serial] = r.Status
			}
		}
	}
	for i := range b.Entries {
		note(b.Entries[i].Records)
	}
	if b.Whole && !b.Archived {
		note(b.Records)
	}
	return first
}

// inherit moves what orders have taken from the earlier ledger to that of the batch, which has adopted them: an order
// lowers the shop's stock once. The row that it makes is older than any change. It returns the units. An order that the
// ledger has reserved itself is another one, also where its user had the same serial in the sale before.
func (w *writer) inherit(ctx context.Context, records []settle.Record) (units int64, err error) {
	args := []any{stored(w.b.SKU), w.earlier, w.b.To.Born}
	for _, r := range records {
		if w.first[r.Serial] == ledger.StatusSold {
			args = append(args, stored(r.Serial))
		}
	}
	if len(args) == 3 {
		return 0, nil
	}
	adopted := []any{stored(w.b.SKU), w.earlier}
	err = w.s.each(ctx, w.tx, func(rows *sql.Rows) error {
		var serial string
		var taken int64
		err := rows.Scan(&serial, &taken)
		adopted, units = append(adopted, serial), units+taken
		return err
	}, "SELECT o.serial, o.taken FROM sluice_order o WHERE o.sku = ? AND "+
		"o.born = ? AND o.taken > 0 AND NOT EXISTS (SELECT 1 FROM sluice_order n WHERE n.sku = o.sku AND n.born = ? AND "+
		"n.serial = o.serial) AND o.serial IN ("+strings.Repeat(", ?", len(args)-3)[2:]+")", args...)
	if err != nil || units == 0 {
		return 0, err
	}
	where := " WHERE sku = ? AND born = ? AND serial IN (" + strings.Repeat(", ?", len(adopted)-2)[2:] + ")"
	_, err = w.tx.ExecContext(ctx, w.s.sql("INSERT INTO "+orderTable+fmt.Sprintf(" SELECT sku, %d, serial, buyer, "+
		"quantity, status, 0, 0, at, taken FROM sluice_order", w.b.To.Born)+where), adopted...)
	if err != nil {
		return 0, err
	}
	_, err = w.tx.ExecContext(ctx, w.s.sql("UPDATE sluice_order SET taken = 0"+where), adopted...)
	return units, err
}
