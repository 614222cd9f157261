package sqlstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// One master of a cluster is away. The SKUs of the other one are settled, verified, and end when they are paid.
func TestCluster_MasterThatIsAwayStopsNoOtherSKU(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 2)
	o := redisconn.Options{Topology: redisconn.Cluster, Addresses: nodes.Addrs(), PoolSize: 4,
		ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second, BreakerErrors: redisconn.Unbroken,
		BreakerPause: time.Second, Identify: redisconn.RunID}
	l := newLedger(t, nil, must(ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: o, Events: 1_000_000,
		Acknowledged: true, Visitor: true}))(t))
	t.Cleanup(func() { l.store.Close() })
	link := must(redisconn.New(o))(t)
	t.Cleanup(func() { link.Close() })
	s := &site{T: t, ledger: l, stream: settle.Stream{Name: "shop", Redis: link},
		url: "sqlite:" + filepath.Join(t.TempDir(), "s.db")}
	s.store = must(sqlstore.Open(sqlstore.Options{URL: s.url}))(t)
	t.Cleanup(func() { s.store.Close() })
	must(s.store.Migrate(t.Context()))(t)
	s.settler = must(settle.New(s.stream, s.store, settle.Options{Batch: 7, Ledger: l, Log: slog.New(slog.DiscardHandler),
		Givebacks: s.store, Auditor: s.store, Verify: time.Second, Paid: settle.Paid{Every: 50 * time.Millisecond,
			Count: func(ctx context.Context, sku string) (int64, error) {
				return s.store.CountPaid(ctx, "SELECT SUM(units) FROM paid WHERE sku = :sku", sku)
			}}}))(t)
	home := nodes.Owner(redistest.Slot(redisconn.Tag("sluice:shop:skus"))) // has what is no SKU's own
	on := func(there bool) string {
		for i := 1001; ; i++ {
			if sku := fmt.Sprint(i); (nodes.Owner(redistest.Slot(redisconn.Tag("{"+sku+"}"))) == home) == there {
				return sku
			}
		}
	}
	lives, dead := on(true), on(false)
	s.exec("CREATE TABLE paid (sku varchar(64), units bigint)")
	s.exec("INSERT INTO paid VALUES ('" + lives + "', 5)")
	for _, sku := range []string{lives, dead} {
		l.set(sku, 5)
		l.buy(sku, 0, 2)
	}
	s.runs(s.settler)
	sold := func(sku string, n int64) func() bool {
		return func() bool {
			c, _, _ := s.store.Cursor(t.Context(), sku)
			return c.Sold == n
		}
	}
	s.until("both are settled", func() bool { return sold(lives, 2)() && sold(dead, 2)() })
	for _, node := range nodes.Masters {
		if node != home {
			node.Kill()
		}
	}
	l.buy(lives, 2, 3)
	s.until("the SKU that lives is settled", sold(lives, 5))
	s.until("it has ended, since it is paid", func() bool { return l.state(lives) == "ended" })
}

// A sale was archived and another one has sold out before the database heard of it: what is paid is of the first one.
func TestPaid_OfAnEarlierSaleEndsNoLaterOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "s.db"), sqlstore.Stock{})
	s.settler = must(settle.New(s.stream, s.store, settle.Options{Batch: 7, Ledger: s.ledger,
		Log: slog.New(slog.DiscardHandler), Givebacks: s.store, Auditor: s.store, Paid: settle.Paid{Every: time.Hour,
			Count: func(ctx context.Context, sku string) (int64, error) {
				return s.store.CountPaid(ctx, `SELECT SUM(p.quantity) FROM paid p
					JOIN sluice_order o ON o.sku = p.sku AND o.serial = p.serial
					JOIN sluice_cursor c ON c.sku = o.sku AND c.born = o.born WHERE p.sku = :sku`, sku)
			}}}))(t)
	s.exec("CREATE TABLE paid (sku varchar(64), serial varchar(64), quantity bigint)")
	const sku = "twice"
	s.ledger.set(sku, 2)
	s.ledger.buy(sku, 0, 2)
	s.exec("INSERT INTO paid VALUES ('twice','twice-0',1),('twice','twice-1',1)")
	s.ledger.change(sku, ledger.Ended)
	s.drain(sku)
	if err := s.archives(sku); err != nil {
		t.Fatal(err)
	}
	s.ledger.set(sku, 2)
	s.ledger.open(sku)
	s.ledger.buy(sku, 10, 2)
	if err := s.settler.EndPaid(t.Context()); err != nil || s.ledger.state(sku) != "on" {
		t.Errorf("before the database has heard of the sale it is %s: %v", s.ledger.state(sku), err)
	}
	s.drain(sku)
	s.exec("INSERT INTO paid VALUES ('twice','twice-10',1),('twice','twice-11',1)")
	if err := s.settler.EndPaid(t.Context()); err != nil || s.ledger.state(sku) != "ended" {
		t.Errorf("when all is paid it is %s: %v", s.ledger.state(sku), err)
	}
}
