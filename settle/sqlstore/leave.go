package sqlstore

import (
	"context"
	"fmt"

	"sluice/settle"
)

// Leave implements settle.Leaver: the cursors of all targets are marked.
func (s *Store) Leave(ctx context.Context, sku string) (bool, error) {
	n, err := affected(s.db.ExecContext(ctx, s.sql("UPDATE sluice_cursor SET state = ?, changed = "+s.d.now+
		" WHERE sku = ? AND state <> ?"), settle.Moved, stored(sku), settle.Moved))
	if err != nil {
		return false, fmt.Errorf("mark %q as moved: %w", sku, err)
	}
	return n > 0, nil
}
