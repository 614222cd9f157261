package ledger

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// takeNow reserves and confirms one unit in the ledger's present epoch.
func takeNow(t *testing.T, r *Store, serial, user string) {
	t.Helper()
	ctx, sku := t.Context(), testSKU
	s := stockIn(t, r)
	codes := make([]Code, 1)
	now := time.Now().UnixMilli()
	order := []Item{{Serial: serial, User: user, Quantity: 1}}
	_, err := r.Reserve(ctx, sku, s.Epoch, now, now+60_000, order, codes)
	testkit.Check(t, err)
	testkit.Want(t, serial, codes[0], Held)
	testkit.Want(t, serial, finishOne(t, r, Confirm, serial), Changed)
}

// Redis has lost everything while an instance was cut off, and an operator made the SKU anew and froze it. The orders
// of the instance are in the ledger before it opens.
func TestSale_OrdersThatAReplacedLedgerLacksAreTold(t *testing.T) {
	t.Parallel()
	for name, archived := range map[string]bool{"first sale": false, "later sale": true} {
		t.Run(name, func(t *testing.T) {
			ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
			op, x := connect(t, server, texts()), connect(t, server, texts())
			x.Settle = 0
			testkit.Must[Stock](t)(op.SetTotal(ctx, sku, 1, 0))
			if archived {
				nextSale(t, op, 1)
			}
			takeNow(t, x, "won", "ann")
			testkit.Check(t, op.Close())
			testkit.Check(t, server.Client.FlushAll(ctx).Err())
			operator := visitor(t, server)
			testkit.Must[Stock](t)(operator.SetTotal(ctx, sku, 1, 0))
			testkit.Must[Stock](t)(operator.SetState(ctx, sku, Frozen))
			_, err := x.Sweep(ctx, sku, 1, 2, 1) // the instance is back
			testkit.Check(t, err)
			for range 4 {
				_, err := x.Recover(ctx, sku, 1, 2)
				testkit.Check(t, err)
			}
			testkit.Must[Stock](t)(operator.SetState(ctx, sku, On))
			_, err = x.Sweep(ctx, sku, 1, 2, 1)
			testkit.Check(t, err)
			s := stockIn(t, operator)
			if _, ok, err := operator.Find(ctx, sku, "won"); !ok || err != nil {
				t.Errorf("the order of the instance is not in the ledger: %v; %+v", err, s)
			}
		})
	}
}

// A visitor makes the ledger again that does not know its sale. The instance that knows it must tell what it has.
func TestSale_InstanceIsOnTheRollOfALedgerThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	for name, archived := range map[string]bool{"first sale": false, "later sale": true} {
		t.Run(name, func(t *testing.T) {
			ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
			op, x := connect(t, server, texts()), connect(t, server, texts())
			testkit.Must[Stock](t)(op.SetTotal(ctx, sku, 1, 0))
			if archived {
				nextSale(t, op, 1)
			}
			takeNow(t, x, "won", "ann")
			testkit.Check(t, op.Close())
			testkit.Check(t, server.Client.FlushAll(ctx).Err())
			operator := visitor(t, server)
			testkit.Must[Stock](t)(operator.Recreate(ctx, sku, 1, 0, false))
			for range 3 {
				_, err := x.Sweep(ctx, sku, 1, 2, 1)
				testkit.Check(t, err)
			}
			testkit.Want(t, "instances that have not told", stockIn(t, operator).Untold, 1)
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
	ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
	op, heard := connect(t, server, texts()), connect(t, server, texts())
	testkit.Must[Stock](t)(op.SetTotal(ctx, sku, 5, 0))
	takeNow(t, heard, "first", "zoe") // it has seen the first sale
	behind := snapshotOf(t, server, sku)
	listen(t, heard)
	for range n { // sales more, of which it only hears
		nextSale(t, op, 5)
	}
	sale := stockIn(t, op).Sale
	testkit.Eventually(t, "it has heard", func() bool { return heard.Seen.Find(sku).Claim().Sale == sale })
	testkit.Check(t, op.Close())
	behind.restore(t, server)
	_, err := heard.Sweep(ctx, sku, 1, 2, 1)
	testkit.Check(t, err)
	operator := visitor(t, server)
	s := testkit.Must[Stock](t)(operator.SetState(ctx, sku, On))
	nextSale(t, operator, 5)
	s = stockIn(t, operator)
	if s.Sale <= sale {
		t.Errorf("the next sale is %d, after %d", s.Sale, sale)
	}
	_, err = heard.Sweep(ctx, sku, 1, 2, 1)
	testkit.Check(t, err)
	s = stockIn(t, operator)
	if s.State != On || s.Sale == sale {
		t.Errorf("after an honest archive: %s, sale %d again", s.State, s.Sale)
	}
}

// A report that finds the ledger in an earlier sale does not open it, although all is told.
func TestSale_ReportDoesNotOpenWhatItFindsBehind(t *testing.T) {
	t.Parallel()
	ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
	x, y := connect(t, server, texts()), connect(t, server, texts())
	x.Settle, y.Settle = 0, 0
	testkit.Must[Stock](t)(x.SetTotal(ctx, sku, 5, 0))
	takeNow(t, x, "first", "zoe")
	takeNow(t, y, "second", "yan")
	testkit.Check(t, server.Client.HSet(ctx, home(sku), "state", "frozen", "why", "mark", "was", "on", "since",
		time.Now().UnixMilli()).Err())
	testkit.Check(t, server.Client.HIncrBy(ctx, home(sku), "epoch", 1).Err())
	x.Settle = time.Hour
	_, err := x.Sweep(ctx, sku, 1, 2, 1)
	testkit.Check(t, err)
	r, err := x.Recover(ctx, sku, 1, 2)
	testkit.Check(t, err)
	x.Settle = 0
	x.Seen.HearSale(sku, r.Epoch+5)
	r, err = x.Recover(ctx, sku, 1, 2)
	testkit.Check(t, err)
	if r.Opened || r.State != Frozen {
		t.Errorf("it opens by itself: %+v", r)
	}
	for range 3 { // this one has seen no later sale
		if _, err = y.Sweep(ctx, sku, 1, 2, 1); err == nil {
			r, err = y.Recover(ctx, sku, 1, 2)
		}
		testkit.Check(t, err)
		if r.Opened || r.State != Frozen {
			t.Errorf("another one opens it: %+v", r)
		}
	}
}

// An override ends with a call that finds the ledger in an earlier sale: it opens by hand alone.
func TestSale_EndOfAnOverrideOpensNoLedgerThatIsBehind(t *testing.T) {
	t.Parallel()
	ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
	op, x := connect(t, server, texts()), connect(t, server, texts())
	x.Settle = 0
	testkit.Must[Stock](t)(op.SetTotal(ctx, sku, 5, 0))
	_, _, _, err := op.Overrule(ctx, sku, Paused, 7)
	testkit.Check(t, err)
	testkit.Must[Stock](t)(x.SetTotal(ctx, sku, 6, 0))
	x.Seen.HearSale(sku, stockIn(t, op).Epoch+5)
	testkit.Check(t, server.Client.HSet(ctx, home(sku), "state", "frozen", "why", "mark", "was", "paused",
		"since", 0).Err())
	_, err = x.Reinstate(ctx, sku, 7)
	testkit.Check(t, err)
	testkit.Want(t, "was", server.Client.HGet(ctx, home(sku), "was").Val(), "frozen")
}

// A ledger of a later sale that is made again does not take in the orders that were archived.
func TestSale_ArchivedOrdersAreNotPutBackIntoTheNextOne(t *testing.T) {
	t.Parallel()
	ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
	x := connect(t, server, texts())
	x.Settle = 0
	testkit.Must[Stock](t)(x.SetTotal(ctx, sku, 1, 1))
	takeNow(t, x, "archived", "zoe")
	nextSale(t, x, 1)
	for range 3 {
		_, err := x.Recover(ctx, sku, 1, 2)
		testkit.Check(t, err)
	}
	testkit.Want(t, "sold in the next sale", stockIn(t, x).Sold, 0)
	testkit.Check(t, server.Client.FlushAll(ctx).Err())
	testkit.Must[Stock](t)(x.Recreate(ctx, sku, 1, 1, false))
	_, err := x.Sweep(ctx, sku, 1, 2, 1)
	testkit.Check(t, err)
	for range 3 {
		_, err := x.Recover(ctx, sku, 1, 2)
		testkit.Check(t, err)
	}
	testkit.Must[Stock](t)(x.SetState(ctx, sku, On))
	s := stockIn(t, x)
	testkit.Want(t, "sold in the next sale", s.Sold, 0)
}

// The same, as buyers see it: the only unit is not sold again.
func TestSale_ReplacedLedgerSellsNoUnitTwice(t *testing.T) {
	t.Parallel()
	ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
	op, x := connect(t, server, texts()), connect(t, server, texts())
	x.Settle = 0
	testkit.Must[Stock](t)(op.SetTotal(ctx, sku, 1, 0))
	nextSale(t, op, 1)
	o := testOptions()
	o.PerUser = 1
	d := opened(t, o, x, nil)
	won := sells(t, d, "ann")
	testkit.Check(t, op.Close())
	operator := visitor(t, server)
	// All at once, as while the instance has no connection.
	other := redistest.Start(t)
	maker := visitor(t, other)
	testkit.Must[Stock](t)(maker.SetTotal(ctx, sku, 1, 0))
	testkit.Must[Stock](t)(maker.SetState(ctx, sku, Frozen))
	snapshotOf(t, other, sku).restore(t, server)
	testkit.Eventually(t, "the instance has told all", func() bool {
		asked := server.Client.HGet(ctx, home(sku), "rc:"+x.instance).Val() != ""
		return asked && len(x.Pending()) == 0 && stockIn(t, operator).Untold == 0
	})
	testkit.Must[Stock](t)(operator.SetState(ctx, sku, On))
	out := buys(t, opened(t, o, connect(t, server, texts()), nil), "bob", "")
	if out.Code == Held {
		t.Errorf("bob has a unit, and ann has the only one: %s", won)
	}
}

// visitor is sluice stock --config.
func visitor(t *testing.T, server *redistest.Server) *Store {
	o := optionsFor(server, 8)
	o.Visitor = true
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	return r
}

// An instance that has seen the sale before alone gives back an order of the present one. Redis loses that, and the
// instance tells it again.
func TestSale_GiveBackByAnInstanceOfTheSaleBeforeIsToldAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx := t.Context()
	x, y := connect(t, server, texts()), connect(t, server, texts())
	x.Settle, y.Settle = 0, 0
	testkit.Must[Stock](t)(x.SetTotal(ctx, testSKU, 2, 0))
	takeNow(t, x, "first", "zoe")
	testkit.Want(t, "first", finishOne(t, y, Refund, "first"), Changed)
	nextSale(t, x, 2)
	takeNow(t, x, "won", "ann")
	kept := snapshotOf(t, server, testSKU)
	testkit.Want(t, "the shop cancels it", finishOne(t, y, Refund, "won"), Changed)
	kept.restore(t, server)
	for range 4 {
		for _, r := range []*Store{x, y} {
			testkit.Must[[]Record](t)(r.Sweep(ctx, testSKU, 1, 2, 1))
			tells(t, r)
		}
	}
	testkit.Want(t, "it stays given back", statusOf(t, x, "won"), "R")
}
