// Package settler makes a settlement of a configuration: the streams of its Redis, its database, and its ledgers.
//
// It promises that what Open returns can be closed at any time. It decides nothing.
package settler

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// Settlement is what the commands of sluice-settle work on.
type Settlement struct {
	Stream settle.Stream
	Store  *sqlstore.Store
	*Ledgers
	home settle.Home
}

// openDatabase opens the configured database alone.
func openDatabase(c *config.Config) (*sqlstore.Store, error) {
	s := c.Settle
	if s.Database == "" {
		return nil, c.Errorf("settle.database",
			`is "": name a database, like "postgres://sluice@db/shop" or "sqlite:settle.db"`)
	}
	inserted, err := jobsOf(s.Jobs)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(sqlstore.Options{URL: s.URL, Password: string(s.Password), Shop: c.Name,
		Stock: sqlstore.Stock{Table: s.Stock.Table, SKUColumn: s.Stock.SKUColumn, LeftColumn: s.Stock.LeftColumn,
			Check: s.Stock.Check},
		Webhook: s.Webhook.URL != "", Jobs: inserted})
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
	store, err := openDatabase(c)
	if err != nil {
		return nil, err
	}
	s := &Settlement{Store: store,
		home: settle.Home{Name: name, All: c.Settle.HomeNames(), Of: c.Settle.HomeOf}}
	options := stores.RedisOptions(c)
	options.Identify = redisconn.RunID
	options.Log = log
	s.Stream.Name = stores.Name(c)
	if s.Stream.Redis, err = redisconn.New(options); err == nil {
		var ledgers *ledger.Store
		if ledgers, err = stores.OpenLedger(c, true, log); err == nil {
			s.Ledgers = NewLedgers(ledgers, name, c.Stock.Reserve.ReservationTTL)
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends all connections.
func (s *Settlement) Close() {
	if s.Ledgers != nil {
		_ = s.store.Close()
	}
	if s.Stream.Redis != nil {
		_ = s.Stream.Redis.Close()
	}
	_ = s.Store.Close()
}

// How many changes of a ledger one transaction settles, and one request of the webhook holds, at most. Beyond these a
// change costs hardly less, and more of them are repeated after a fault.
const (
	transactionChanges = 500
	requestChanges     = 100
)

const (
	paidEvery      = 5 * time.Second // between two runs of settle.paid.query for a SKU: it costs the shop's database
	webhookTimeout = 5 * time.Second // of one request with its response; it is sent again
)

// Settler returns a settler of all SKUs.
func (s *Settlement) Settler(c *config.Config, log *slog.Logger) (*settle.Settler, error) {
	var paid settle.Paid
	if query := c.Settle.Paid.Query; query != "" {
		paid.Every = paidEvery
		paid.Count = func(ctx context.Context, sku string) (int64, error) { return s.Store.CountPaid(ctx, query, sku) }
	}
	var shop func(context.Context, string, int64) ([]settle.ShopOrder, error)
	if query := c.Settle.OrdersQuery; query != "" {
		shop = func(ctx context.Context, sku string, born int64) ([]settle.ShopOrder, error) {
			return s.Store.CompareShop(ctx, query, sku, born)
		}
	}
	return settle.New(s.Stream, s.Store, settle.Options{
		Batch: transactionChanges, Ledger: s, Log: log, Givebacks: s.Store, Paid: paid,
		Home: s.home, Verify: c.Settle.Verify, Auditor: s.Store, Shop: shop,
		Listen: s.listen,
	})
}

// webhook returns a settler of all SKUs that sends to the webhook, and its target.
func (s *Settlement) webhook(c *config.Config, log *slog.Logger) (*settle.Settler, *webhookTarget, error) {
	w := c.Settle.Webhook
	target := newWebhook(s.Store, webhookOptions{URL: w.URL, Key: []byte(w.Key), Batch: requestChanges,
		Timeout: webhookTimeout, Here: s.isHere})
	worker, err := settle.New(s.Stream, target, settle.Options{
		Target: settle.WebhookTarget, Batch: requestChanges, Ledger: s, Log: log, Listen: s.listen,
		Home: s.home,
	})
	return worker, target, err
}

// isHere reports whether a SKU is settled in this home now.
func (s *Settlement) isHere(ctx context.Context, sku string) (bool, error) {
	all, err := s.Stream.Ledgers(ctx, []string{sku})
	return err == nil && s.Has(sku, all[0]), err
}

func (s *Settlement) listen(ctx context.Context, wake func(string)) {
	s.store.Listen(ctx, func(sku string, _ ledger.StockVersion) { wake(sku) }, func() {})
}
