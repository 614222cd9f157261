package ledger

import (
	"context"

	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/protocol"
)

// Store is what a reserver asks of its ledgers: a *redisstore.Store, or in tests one whose calls are late, lost or
// wrong. Times are Unix milliseconds. Every call may be repeated after an error: what was done by the first is found by
// the second.
type Store interface {
	Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []protocol.Item, codes []protocol.Code) (
		protocol.StockVersion, error)
	Finish(ctx context.Context, sku string, now, keep int64, op protocol.Op, items []protocol.Item,
		done []protocol.Done) (protocol.StockVersion, error)
	Decide(ctx context.Context, sku string, c protocol.DecideCall) ([]protocol.Done, protocol.StockVersion, error)
	Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]protocol.Record, error)
	SweepAll(ctx context.Context, skus []string, now, lease int64) []protocol.Swept
	Find(ctx context.Context, sku, serial string) (r protocol.Record, ok bool, err error)
	FindAll(ctx context.Context, orders []protocol.OrderName) []protocol.Found
	ReadStock(ctx context.Context, sku string) (s protocol.Stock, ok bool, err error)
	SetState(ctx context.Context, sku string, state protocol.State) (protocol.Stock, error)
	Backlog(ctx context.Context, skus []string) []error
	Listen(ctx context.Context, hear func(sku string, h protocol.StockVersion), missed func())

	Inspect(ctx context.Context, sku string, p protocol.Part, cursor string, most int) (protocol.Page, error)
	InspectAll(ctx context.Context, skus []string) []protocol.Inspection

	Pending() []string
	NoteUnknown(sku, serial string)
	Look(ctx context.Context, sku string, now int64) (failover.Result, error)
	Recover(ctx context.Context, sku string, now, keep int64) (failover.Result, error)
}
