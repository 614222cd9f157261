// Package settler makes a settlement of a configuration: the streams of its Redis, its database, and its ledgers.
//
// It promises that what Open returns can be closed at any time. It decides nothing.
package settler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sluice/config"
	"sluice/internal/app/stores"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/settle/webhook"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
	"sluice/stockgate/redisconn"
)

// Settlement is what the commands of sluice settle work on.
type Settlement struct {
	Stream settle.Stream
	Store  *sqlstore.Store
	ledger *redisstore.Store
	home   settle.Home
	hold   time.Duration // for which an undecided order is reserved
}

// OpenStore opens the configured database alone.
func OpenStore(c *config.Config) (*sqlstore.Store, error) {
	s := c.Settle
	if s.Database == "" {
		return nil, c.Errorf("settle.database",
			`is "": name a database, like "postgres://sluice@db/shop" or "sqlite:settle.db"`)
	}
	inserted, err := jobsOf(s.Jobs)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(sqlstore.Options{URL: s.URL, Password: string(s.Password), Stock: sqlstore.Stock{
		Table: s.Stock.Table, SKUColumn: s.Stock.SKUColumn, LeftColumn: s.Stock.LeftColumn, Check: s.Stock.Check,
	}, Webhook: s.Webhook.URL != "", Jobs: inserted})
	if err != nil {
		return nil, c.Errorf("settle.database", "%v", err)
	}
	return store, nil
}

// openHome opens the database of one home, and the Redis.
func openHome(c *config.Config, name string, log *slog.Logger) (*Settlement, error) {
	if c = c.AtHome(name); c == nil {
		return nil, fmt.Errorf("there is no home %q", name)
	}
	c = stores.WaitLonger(c)
	store, err := OpenStore(c)
	if err != nil {
		return nil, err
	}
	s := &Settlement{Store: store, hold: c.Stock.Reserve.ReservationTTL,
		home: settle.Home{Name: name, All: c.Settle.HomeNames(), Of: c.Settle.HomeOf}}
	options := stores.RedisOptions(c)
	options.Log = log
	if s.Stream.Redis, err = redisconn.New(options); err == nil {
		s.ledger, err = stores.OpenLedger(c, true, log)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends all connections.
func (s *Settlement) Close() {
	if s.ledger != nil {
		_ = s.ledger.Close()
	}
	if s.Stream.Redis != nil {
		_ = s.Stream.Redis.Close()
	}
	_ = s.Store.Close()
}

// Settler returns a settler of all SKUs.
func (s *Settlement) Settler(c *config.Config, log *slog.Logger) (*settle.Settler, error) {
	var paid settle.Paid
	if query := c.Settle.Paid.Query; query != "" {
		paid.Every = c.Settle.Paid.Every
		paid.Count = func(ctx context.Context, sku string) (int64, error) { return s.Store.CountPaid(ctx, query, sku) }
	}
	var shop func(context.Context, string, int64) ([]settle.ShopOrder, error)
	if query := c.Settle.OrdersQuery; query != "" {
		shop = func(ctx context.Context, sku string, born int64) ([]settle.ShopOrder, error) {
			return s.Store.CompareShop(ctx, query, sku, born)
		}
	}
	return settle.New(s.Stream, s.Store, settle.Options{
		Batch: c.Settle.Batch, Workers: c.Settle.Workers, Ledger: s, Log: log, Givebacks: s.Store, Paid: paid,
		Home: s.home, Verify: c.Settle.Verify, Auditor: s.Store, Shop: shop,
		Listen: s.listen,
	})
}

// webhook returns a settler of all SKUs that sends to the webhook, and its target.
func (s *Settlement) webhook(c *config.Config, log *slog.Logger) (*settle.Settler, *webhook.Target, error) {
	w := c.Settle.Webhook
	target := webhook.New(s.Store, webhook.Options{URL: w.URL, Key: []byte(w.Key), Batch: w.Batch, Timeout: w.Timeout})
	worker, err := settle.New(s.Stream, target, settle.Options{
		Target: settle.WebhookTarget, Batch: w.Batch, Workers: c.Settle.Workers, Ledger: s, Log: log, Listen: s.listen,
		Home: s.home,
	})
	return worker, target, err
}

func (s *Settlement) listen(ctx context.Context, wake func(string)) {
	s.ledger.Listen(ctx, func(sku string, _ protocol.StockVersion) { wake(sku) }, func() {})
}

// Acknowledge implements settle.ChangeableLedger.
func (s *Settlement) Acknowledge(ctx context.Context, sku, id string) error {
	_, err := s.ledger.Acknowledge(ctx, sku, id)
	return err
}

// JoinRecovery implements settle.ChangeableLedger.
func (s *Settlement) JoinRecovery(ctx context.Context, sku string, l settle.Ledger) error {
	return s.ledger.JoinRecovery(ctx, s.home.Name, sku,
		protocol.StockVersion{Epoch: l.Epoch, Ver: l.Ver, State: protocol.State(l.State)})
}

// Told implements settle.ChangeableLedger.
func (s *Settlement) Told(ctx context.Context, sku string) (opened bool, err error) {
	done, err := s.ledger.ToldSettled(ctx, s.home.Name, sku)
	return done.Opened, err
}

// End implements settle.ChangeableLedger.
func (s *Settlement) End(ctx context.Context, sku string) error {
	_, err := s.ledger.SetState(ctx, sku, protocol.Ended)
	return err
}

// Refund implements settle.ChangeableLedger. A ledger that is gone may come back.
func (s *Settlement) Refund(ctx context.Context, sku, serial string) (ok bool, err error) {
	now, done := time.Now(), make([]protocol.Done, 1)
	_, err = s.ledger.Finish(ctx, sku, now.UnixMilli(), now.Add(stores.KeepReleased).UnixMilli(), protocol.Refund,
		[]protocol.Item{{Serial: serial}}, done)
	if errors.Is(err, protocol.ErrUnknownSKU) {
		return false, nil
	}
	return err == nil && done[0] != protocol.NotFound && done[0] != protocol.NoLedger, err
}

// PutBack implements settle.ChangeableLedger. The resolver asks about a reserved order when its time is over, as it
// would have done: before, the shop may not have the order yet.
func (s *Settlement) PutBack(ctx context.Context, sku string, orders []settle.Record) error {
	for some := range slices.Chunk(orders, putBackAtOnce) {
		now := time.Now()
		known := make([]failover.Known, len(some))
		for i, r := range some {
			known[i] = failover.Known{
				Item: protocol.Item{Serial: r.Serial, User: r.User, Quantity: r.Quantity}, Status: r.Status,
				Due: s.due(r, now.UnixMilli()), Done: protocol.StockVersion{Epoch: r.Epoch, Ver: r.Ver},
			}
		}
		err := s.ledger.PutBack(ctx, sku, now.UnixMilli(), now.Add(stores.KeepReleased).UnixMilli(), known)
		if err != nil {
			return err
		}
	}
	return nil
}

// due is when the time of a reserved order is over, Unix ms, where it is not known when it was reserved: as of now.
func (s *Settlement) due(r settle.Record, now int64) int64 {
	if r.At < 1 || r.At > now {
		return now + s.hold.Milliseconds()
	}
	return r.At + s.hold.Milliseconds()
}

// Archive implements settle.ArchivedLedger.
func (s *Settlement) Archive(ctx context.Context, sku string, epoch, ver int64) error {
	return s.ledger.Archive(ctx, sku, epoch, ver)
}

// putBackAtOnce is how many orders one call to the ledger tells.
const putBackAtOnce = 100
