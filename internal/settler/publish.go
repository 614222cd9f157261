package settler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sluice/admin"
)

// What the dashboard shows of conflicts.
const (
	shownConflicts = 20
	shownDetail    = 300 // bytes
)

// publish writes into Redis how the home stands, where gates read it for their dashboards: a gate never opens the
// database. Of several settlers the one that has written last is shown.
func (s *Settlement) publish(ctx context.Context, w worker) {
	done := w.orders.Stats()
	last, up, err := w.watch.last()
	told := admin.Settlement{Home: s.home.Name, At: time.Now().UnixMilli(), Behind: done.Behind,
		BehindSeconds: done.BehindFor.Seconds(), LagSeconds: done.Lag.Seconds(), Up: up,
		Conflicts: []admin.SettlementConflict{}, Database: "it answers"}
	if err != nil {
		told.Database = err.Error()
	} else if !up {
		told.Database = "it was not asked yet"
	}
	var waiting int64
	for _, n := range last.Conflicts {
		waiting += n
	}
	if up && waiting > 0 {
		conflicts, _ := s.Store.Conflicts(ctx, shownConflicts)
		for _, c := range conflicts {
			detail := fmt.Sprintf("%+q", c.Detail)
			detail = detail[1 : len(detail)-1]
			told.Conflicts = append(told.Conflicts, admin.SettlementConflict{ID: c.ID, Kind: c.Kind, SKU: c.SKU,
				Detail: detail[:min(len(detail), shownDetail)], Next: s.WayOut(ctx, c.Conflict)})
		}
	}
	told.More = max(waiting-int64(len(told.Conflicts)), 0)
	text, err := json.Marshal(told)
	if err == nil {
		_ = s.store.NoteSettlement(ctx, s.home.Name, string(text)) // the next one is written in 5 s
	}
}
