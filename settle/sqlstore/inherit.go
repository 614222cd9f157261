package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"sluice/settle"
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

// inherit moves what orders have taken from the earlier ledger to that of the batch, which has adopted them: an order
// lowers the shop's stock once. The row that it makes is older than any change. It returns the units.
func (s *Store) inherit(ctx context.Context, tx *sql.Tx, b *settle.Batch, earlier int64,
	records []settle.Record) (units int64, err error) {
	if earlier == 0 {
		return 0, nil
	}
	args := []any{stored(b.SKU), earlier}
	for _, r := range records {
		args = append(args, stored(r.Serial))
	}
	where := " WHERE sku = ? AND born = ? AND taken > 0 AND serial IN (" + strings.Repeat(", ?", len(records))[2:] + ")"
	err = tx.QueryRowContext(ctx, s.sql("SELECT COALESCE(SUM(taken), 0) FROM sluice_order"+where), args...).Scan(&units)
	if err != nil || units == 0 {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, s.sql(s.d.insertion+" INTO "+orderTable+fmt.Sprintf(
		" SELECT sku, %d, serial, buyer, quantity, status, 0, 0, at, taken FROM sluice_order", b.To.Born)+where+
		s.d.ignored), args...)
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET taken = 0"+where), args...)
	return units, err
}
