package redisstore

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// takeNow reserves and confirms one unit in the ledger's present epoch.
func takeNow(t *testing.T, r *Store, serial, user string) {
	t.Helper()
	ctx, sku := t.Context(), ledgertest.SKU
	s := ledgertest.StockOf(t, r)
	codes := make([]protocol.Code, 1)
	now := time.Now().UnixMilli()
	order := []protocol.Item{{Serial: serial, User: user, Quantity: 1}}
	_, err := r.Reserve(ctx, sku, s.Epoch, now, now+60_000, order, codes)
	ledgertest.Check(t, err)
	ledgertest.Want(t, serial, codes[0], protocol.Held)
	ledgertest.Want(t, serial, ledgertest.Finish(t, r, protocol.Confirm, serial), protocol.Changed)
}

// Redis has lost everything while an instance was cut off, and an operator made the SKU anew and froze it. The orders
// of the instance are in the ledger before it opens.
func TestSale_OrdersThatAReplacedLedgerLacksAreTold(t *testing.T) {
	for name, archived := range map[string]bool{"first sale": false, "later sale": true} {
		t.Run(name, func(t *testing.T) {
			ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
			op, x := connect(t, server, texts()), connect(t, server, texts())
			x.Settle = 0
			ledgertest.Must[protocol.Stock](t)(op.SetTotal(ctx, sku, 1, 0))
			if archived {
				nextSale(t, op, 1)
			}
			takeNow(t, x, "won", "ann")
			ledgertest.Check(t, op.Close())
			ledgertest.Check(t, server.Client.FlushAll(ctx).Err())
			operator := visitor(t, server)
			ledgertest.Must[protocol.Stock](t)(operator.SetTotal(ctx, sku, 1, 0))
			ledgertest.Must[protocol.Stock](t)(operator.SetState(ctx, sku, protocol.Frozen))
			_, err := x.Sweep(ctx, sku, 1, 2, 1) // the instance is back
			ledgertest.Check(t, err)
			for range 4 {
				_, err := x.Recover(ctx, sku, 1, 2)
				ledgertest.Check(t, err)
			}
			ledgertest.Must[protocol.Stock](t)(operator.SetState(ctx, sku, protocol.On))
			_, err = x.Sweep(ctx, sku, 1, 2, 1)
			ledgertest.Check(t, err)
			s := ledgertest.StockOf(t, operator)
			if _, ok, err := operator.Find(ctx, sku, "won"); !ok || err != nil {
				t.Errorf("the order of the instance is not in the ledger: %v; %+v", err, s)
			}
		})
	}
}

// A visitor makes the ledger again that does not know its sale. The instance that knows it must tell what it has.
func TestSale_InstanceIsOnTheRollOfALedgerThatWasMadeAgain(t *testing.T) {
	for name, archived := range map[string]bool{"first sale": false, "later sale": true} {
		t.Run(name, func(t *testing.T) {
			ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
			op, x := connect(t, server, texts()), connect(t, server, texts())
			ledgertest.Must[protocol.Stock](t)(op.SetTotal(ctx, sku, 1, 0))
			if archived {
				nextSale(t, op, 1)
			}
			takeNow(t, x, "won", "ann")
			ledgertest.Check(t, op.Close())
			ledgertest.Check(t, server.Client.FlushAll(ctx).Err())
			operator := visitor(t, server)
			ledgertest.Must[protocol.Stock](t)(operator.Recreate(ctx, sku, 1, 0, false))
			for range 3 {
				_, err := x.Sweep(ctx, sku, 1, 2, 1)
				ledgertest.Check(t, err)
			}
			ledgertest.Want(t, "instances that have not told", ledgertest.StockOf(t, operator).Untold, 1)
		})
	}
}

// An instance has only heard of later sales, and an older server is opened. The next sale is later than all of them.
func TestSale_NeverGoesBack(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { saleGoesBack(t, n) })
	}
}

func saleGoesBack(t *testing.T, n int) {
	ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
	op, heard := connect(t, server, texts()), connect(t, server, texts())
	ledgertest.Must[protocol.Stock](t)(op.SetTotal(ctx, sku, 5, 0))
	takeNow(t, heard, "first", "zoe") // it has seen the first sale
	behind := snapshotOf(t, server, sku)
	listen(t, heard)
	for range n { // sales more, of which it only hears
		nextSale(t, op, 5)
	}
	sale := ledgertest.StockOf(t, op).Sale
	ledgertest.Until(t, "it has heard", func() bool { return heard.Seen.Find(sku).Claim().Sale == sale })
	ledgertest.Check(t, op.Close())
	behind.restore(t, server)
	_, err := heard.Sweep(ctx, sku, 1, 2, 1)
	ledgertest.Check(t, err)
	operator := visitor(t, server)
	s := ledgertest.Must[protocol.Stock](t)(operator.SetState(ctx, sku, protocol.On))
	nextSale(t, operator, 5)
	s = ledgertest.StockOf(t, operator)
	if s.Sale <= sale {
		t.Errorf("the next sale is %d, after %d", s.Sale, sale)
	}
	_, err = heard.Sweep(ctx, sku, 1, 2, 1)
	ledgertest.Check(t, err)
	s = ledgertest.StockOf(t, operator)
	if s.State != protocol.On || s.Sale == sale {
		t.Errorf("after an honest archive: %s, sale %d again", s.State, s.Sale)
	}
}

// A report that finds the ledger in an earlier sale does not open it, although all is told.
func TestSale_ReportDoesNotOpenWhatItFindsBehind(t *testing.T) {
	ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
	x := connect(t, server, texts())
	x.Settle = 0
	ledgertest.Must[protocol.Stock](t)(x.SetTotal(ctx, sku, 5, 0))
	takeNow(t, x, "first", "zoe")
	ledgertest.Check(t, server.Client.HSet(ctx, home(sku), "state", "frozen", "why", "mark", "was", "on", "since",
		time.Now().UnixMilli()).Err())
	ledgertest.Check(t, server.Client.HIncrBy(ctx, home(sku), "epoch", 1).Err())
	x.Settle = time.Hour
	_, err := x.Sweep(ctx, sku, 1, 2, 1)
	ledgertest.Check(t, err)
	r, err := x.Recover(ctx, sku, 1, 2)
	ledgertest.Check(t, err)
	x.Settle = 0
	x.Seen.HearSale(sku, r.Epoch+5)
	r, err = x.Recover(ctx, sku, 1, 2)
	ledgertest.Check(t, err)
	if r.Opened || r.State != protocol.Frozen {
		t.Errorf("it opens by itself: %+v", r)
	}
}

// An override ends with a call that finds the ledger in an earlier sale: it opens by hand alone.
func TestSale_EndOfAnOverrideOpensNoLedgerThatIsBehind(t *testing.T) {
	ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
	op, x := connect(t, server, texts()), connect(t, server, texts())
	x.Settle = 0
	ledgertest.Must[protocol.Stock](t)(op.SetTotal(ctx, sku, 5, 0))
	_, _, _, err := op.Overrule(ctx, sku, protocol.Paused, 7)
	ledgertest.Check(t, err)
	ledgertest.Must[protocol.Stock](t)(x.SetTotal(ctx, sku, 6, 0))
	x.Seen.HearSale(sku, ledgertest.StockOf(t, op).Epoch+5)
	ledgertest.Check(t, server.Client.HSet(ctx, home(sku), "state", "frozen", "why", "mark", "was", "paused",
		"since", 0).Err())
	_, err = x.Reinstate(ctx, sku, 7)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "was", server.Client.HGet(ctx, home(sku), "was").Val(), "frozen")
}

// A ledger of a later sale that is made again does not take in the orders that were archived.
func TestSale_ArchivedOrdersAreNotPutBackIntoTheNextOne(t *testing.T) {
	ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
	x := connect(t, server, texts())
	x.Settle = 0
	ledgertest.Must[protocol.Stock](t)(x.SetTotal(ctx, sku, 1, 1))
	takeNow(t, x, "archived", "zoe")
	nextSale(t, x, 1)
	for range 3 {
		_, err := x.Recover(ctx, sku, 1, 2)
		ledgertest.Check(t, err)
	}
	ledgertest.Want(t, "sold in the next sale", ledgertest.StockOf(t, x).Sold, 0)
	ledgertest.Check(t, server.Client.FlushAll(ctx).Err())
	ledgertest.Must[protocol.Stock](t)(x.Recreate(ctx, sku, 1, 1, false))
	_, err := x.Sweep(ctx, sku, 1, 2, 1)
	ledgertest.Check(t, err)
	for range 3 {
		_, err := x.Recover(ctx, sku, 1, 2)
		ledgertest.Check(t, err)
	}
	ledgertest.Must[protocol.Stock](t)(x.SetState(ctx, sku, protocol.On))
	s := ledgertest.StockOf(t, x)
	ledgertest.Want(t, "sold in the next sale", s.Sold, 0)
}

// The same, as buyers see it: the only unit is not sold again.
func TestSale_ReplacedLedgerSellsNoUnitTwice(t *testing.T) {
	ctx, sku, server := t.Context(), ledgertest.SKU, redistest.Start(t)
	op, x := connect(t, server, texts()), connect(t, server, texts())
	x.Settle = 0
	ledgertest.Must[protocol.Stock](t)(op.SetTotal(ctx, sku, 1, 0))
	nextSale(t, op, 1)
	o := deskOptions()
	o.PerUser = 1
	d := opened(t, o, x, nil)
	won := sells(t, d, "ann")
	ledgertest.Check(t, op.Close())
	operator := visitor(t, server)
	// All at once, as while the instance has no connection.
	other := redistest.Start(t)
	maker := visitor(t, other)
	ledgertest.Must[protocol.Stock](t)(maker.SetTotal(ctx, sku, 1, 0))
	ledgertest.Must[protocol.Stock](t)(maker.SetState(ctx, sku, protocol.Frozen))
	snapshotOf(t, other, sku).restore(t, server)
	ledgertest.Until(t, "the instance has told all", func() bool {
		asked := server.Client.HGet(ctx, home(sku), "rc:"+x.instance).Val() != ""
		return asked && len(x.Pending()) == 0 && ledgertest.StockOf(t, operator).Untold == 0
	})
	ledgertest.Must[protocol.Stock](t)(operator.SetState(ctx, sku, protocol.On))
	out := buys(t, opened(t, o, connect(t, server, texts()), nil), "bob", "")
	if out.Code == protocol.Held {
		t.Errorf("bob has a unit, and ann has the only one: %s", won)
	}
}

// visitor is sluice stock --config.
func visitor(t *testing.T, server *redistest.Server) *Store {
	o := optionsFor(server, 8)
	o.Visitor = true
	r := ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { r.Close() })
	return r
}
