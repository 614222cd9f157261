package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// buys orders for a user once the seller has heard that the SKU is on sale.
func buys(t *testing.T, d *Reserver, user, key string) (out Outcome) {
	t.Helper()
	testkit.Eventually(t, "on sale", func() bool {
		out = d.buy(user, key)
		return out.Code != NotOnSale
	})
	return out
}

// sells confirms a user's order without a key, and returns its serial.
func sells(t *testing.T, d *Reserver, user string) string {
	t.Helper()
	out := buys(t, d, user, "")
	wants(t, "order", out, Held)
	d.Settle(testSKU, out.Serial, Confirm)
	testkit.Eventually(t, "confirmed", func() bool {
		rec, ok, err := d.store.Find(t.Context(), testSKU, out.Serial)
		return err == nil && ok && rec.Status == StatusSold
	})
	return out.Serial
}

// nextSale archives a sale that is over and begins another one of the SKU, as an operator does.
func nextSale(t *testing.T, r *Store, units int64) {
	t.Helper()
	ctx, sku := t.Context(), testSKU
	over := testkit.Must[Stock](t)(r.SetState(ctx, sku, Ended))
	testkit.Check(t, r.Archive(ctx, sku, over.Epoch, over.Ver))
	testkit.Must[Stock](t)(r.SetTotal(ctx, sku, units, 0))
	testkit.Must[Stock](t)(r.SetState(ctx, sku, On))
}

// onlyHeld fails unless the ledger holds one unit, for one serial.
func onlyHeld(t *testing.T, r *Store, serial string) {
	t.Helper()
	var all []Record
	testkit.Check(t, r.Records(t.Context(), testSKU, func(rec Record) bool {
		all = append(all, rec)
		return true
	}))
	if s := stockIn(t, r); len(all) != 1 || all[0].Serial != serial || s.Held != 1 || s.Sold != 0 {
		t.Fatalf("%+v of %+v: want one unit held, for %s", s, all, serial)
	}
}

// A user who sends no key gets another serial in the next sale of the SKU, at an instance that has seen the sale
// before, at one that has seen none, and at one that follows a key. The sale between two of them counts as well.
func TestSale_ReturningUserGetsASerialOfItsOwnInEachSale(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	operator := connect(t, server, texts())
	testkit.Must[Stock](t)(operator.SetTotal(t.Context(), testSKU, 5, 0))
	open := func() *Reserver { return opened(t, testOptions(), connect(t, server, texts()), nil) }
	saw := open()
	used := map[string]bool{sells(t, saw, "ann"): true, sells(t, saw, "ann"): true}
	for range 3 {
		nextSale(t, operator, 5)
		out := buys(t, saw, "ann", "")
		wants(t, "in the next sale", out, Held)
		if used[out.Serial] {
			t.Fatalf("%s comes again", out.Serial)
		}
		used[out.Serial] = true
		onlyHeld(t, operator, out.Serial)
		for what, d := range map[string]*Reserver{"the same instance": saw, "a new instance": open()} {
			again := d.buy("ann", "")
			wants(t, what, again, ReplayHeld)
			testkit.Want(t, what, again.Serial, out.Serial)
		}
		late := open()
		wants(t, "with a key", late.buy("bob", "k"), Held)
		for _, serial := range []string{"k", out.Serial} {
			late.Settle(testSKU, serial, Confirm)
		}
		testkit.Eventually(t, "both are sold", func() bool { return stockIn(t, operator).Sold == 2 })
	}
}

// No instance takes a unit under a serial of another sale, whatever it knows: nothing, the sale before, or that the
// ledger is gone.
func TestSale_InstanceThatIsBehindTakesNoUnitUnderAnEarlierSerial(t *testing.T) {
	t.Parallel()
	type scene struct {
		server   *redistest.Server
		operator *Store
		d        *Reserver
	}
	// asks has the instance learn what the ledger is, and leaves nothing.
	asks := func(t *testing.T, s *scene, key string) {
		wants(t, "another user", buys(t, s.d, "bob", key), Held)
		s.d.Settle(testSKU, key, Release)
		testkit.Eventually(t, "given back", func() bool { return stockIn(t, s.operator).Held == 0 })
	}
	for name, begin := range map[string]func(t *testing.T, s *scene){
		"knows nothing":        func(t *testing.T, s *scene) { nextSale(t, s.operator, 5) },
		"knows the first sale": func(t *testing.T, s *scene) { asks(t, s, "k"); nextSale(t, s.operator, 5) },
		"heard that the ledger is gone": func(t *testing.T, s *scene) {
			nextSale(t, s.operator, 5)
			asks(t, s, "k")
			key := home(testSKU)
			testkit.Check(t, s.server.Client.Rename(t.Context(), key, "away").Err())
			testkit.Eventually(t, "gone", func() bool { return s.d.buy("bob", "k2").State == Lost })
			testkit.Check(t, s.server.Client.Rename(t.Context(), "away", key).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			open := func() *Reserver { return opened(t, testOptions(), connect(t, server, texts()), nil) }
			s := &scene{server, connect(t, server, texts()), open()}
			testkit.Must[Stock](t)(s.operator.SetTotal(t.Context(), testSKU, 5, 0))
			first := sells(t, open(), "ann")
			begin(t, s)
			wants(t, "order", buys(t, s.d, "ann", ""), Held)
			if _, ok, err := s.operator.Find(t.Context(), testSKU, first); ok || err != nil {
				t.Errorf("a unit was taken under the serial of the first sale: %v", err)
			}
		})
	}
}

// A ledger that was lost and made again is that of the same sale: its users get the serials of before.
func TestSale_RecreatedLedgerKeepsItsSerials(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]string{
		"records": keys(testSKU)[1:2],
		"numbers": keys(testSKU)[:1],
		"all":     keys(testSKU),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
			r := connect(t, server, texts())
			testkit.Must[Stock](t)(r.SetTotal(ctx, sku, 5, 0))
			d := opened(t, testOptions(), r, nil)
			sells(t, d, "ann")
			nextSale(t, r, 5)
			serial, sale := sells(t, d, "ann"), stockIn(t, r).Sale
			testkit.Check(t, server.Client.Del(ctx, lost...).Err())
			maker := r
			if name == "records" { // its numbers tell the sale: it need not have been seen
				maker = connect(t, server, texts())
			}
			made := testkit.Must[Stock](t)(maker.Recreate(ctx, sku, 5, 0, false))
			if made.Sale != sale || made.Epoch <= sale {
				t.Fatalf("sale %d, epoch %d: want sale %d in a later epoch", made.Sale, made.Epoch, sale)
			}
			_, err := maker.Finish(ctx, sku, 1, 2, Adopt,
				[]Item{{Serial: serial, User: "ann", Quantity: 1}}, make([]Done, 1))
			testkit.Check(t, err)
			testkit.Must[Stock](t)(maker.SetState(ctx, sku, On))
			o := testOptions()
			o.PerUser = 1
			out := opened(t, o, connect(t, server, texts()), nil).buy("ann", "")
			wants(t, "repetition", out, ReplaySold)
			testkit.Want(t, "serial", out.Serial, serial)
		})
	}
}

// A ledger whose keys an operator has deleted, but for its changes, is followed by that of another sale.
func TestSale_LedgerThatFollowsDeletedKeysIsAnotherSale(t *testing.T) {
	t.Parallel()
	ctx, sku, server := t.Context(), testSKU, redistest.Start(t)
	first := connect(t, server, texts())
	s := testkit.Must[Stock](t)(first.SetTotal(ctx, sku, 5, 0))
	testkit.Want(t, "the first sale", s.Sale, 0)
	serial := sells(t, opened(t, testOptions(), first, nil), "ann")
	testkit.Check(t, server.Client.Del(ctx, append(keys(sku)[:4:4], "sluice:shop:skus")...).Err())
	r := connect(t, server, texts())
	s = testkit.Must[Stock](t)(r.SetTotal(ctx, sku, 5, 0))
	testkit.Want(t, "the next one", s.Sale, s.Epoch)
	out := opened(t, testOptions(), r, nil).buy("ann", "")
	wants(t, "order", out, Held)
	if out.Serial == serial {
		t.Errorf("%s comes again", serial)
	}
}

// Nothing but the archiving of its orders begins another sale of a SKU: a later epoch does not.
func TestSale_StaysWhileTheLedgerStays(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		stays := func(want int64) {
			ctx, must := t.Context(), testkit.Must[Stock](t)
			before := must(s.SetState(ctx, "1001", Frozen))
			must(s.SetState(ctx, "1001", On))
			must(s.Add(ctx, "1001", 1, ""))
			must(s.SetTotal(ctx, "1001", 9, KeepLimit))
			after := must(s.SetSchedule(ctx, "1001", 0, 0))
			if before.Sale != want || after.Sale != want || stockIn(t, s).Sale != want {
				t.Fatalf("sale %d, then %d: want %d", before.Sale, after.Sale, want)
			}
		}
		stays(0)
		testkit.Want(t, "whatever the epoch is", takeUnit(t, s, "a", "ann"), Held)
		finishOne(t, s, Release, "a")
		nextSale(t, s, 5)
		sale := stockIn(t, s)
		testkit.Want(t, "the next sale", sale.Sale, sale.Epoch)
		testkit.Want(t, "whatever the epoch is", takeUnit(t, s, "b", "ann"), StaleEpoch)
		stays(sale.Sale)
	})
}

// The keys of a ledger are gone, then a server that is behind answers, then the right one again: the instance, which
// knows of no sale meanwhile, does not take a unit by a serial of the first sale.
func TestSale_IsNotGuessedAfterALostLedger(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	op := connect(t, server, texts())
	testkit.Must[Stock](t)(op.SetTotal(t.Context(), testSKU, 9, 0))
	o := testOptions()
	o.SoldOutMemory = 5 * time.Millisecond
	d := opened(t, o, connect(t, server, texts()), nil)
	sells(t, d, "zoe")
	behind := snapshotOf(t, server, testSKU)
	nextSale(t, op, 9)
	won := buys(t, d, "ann", "")
	wants(t, "ann", won, Held)
	right := snapshotOf(t, server, testSKU)
	all := append(keys(testSKU), queueKeys(testSKU)...)
	testkit.Check(t, server.Client.Del(t.Context(), all...).Err())
	testkit.Eventually(t, "lost", func() bool { return d.buy("bob", "k").State == Lost })
	behind.restore(t, server)
	testkit.Eventually(t, "frozen", func() bool { return d.buy("bob", "k").State == Frozen })
	right.restore(t, server)
	testkit.Eventually(t, "ann has her order", func() bool {
		out := d.buy("ann", "")
		if out.Code == Held {
			t.Fatalf("ann has two units: %s and %s", won.Serial, out.Serial)
		}
		return out.Code == ReplayHeld && out.Serial == won.Serial
	})
}

// lateSale plays the ledger of a SKU in an earlier sale than an instance knows. It must be closed until an operator
// opens it, and be of the later sale then, in a later epoch.
func lateSale(t *testing.T, server *redistest.Server, texts map[string]string, sku string, older func(behind snapshot,
	operator *Store) error) error {
	ctx := t.Context()
	knows, operator := connect(t, server, texts), connect(t, server, texts)
	knows.Settle = 0
	var errs []error
	note := func(s Stock, err error) Stock {
		errs = append(errs, err)
		return s
	}
	note(knows.SetTotal(ctx, sku, 9, 0))
	behind := snapshotOf(t, server, sku)
	over := note(knows.SetState(ctx, sku, Ended))
	errs = append(errs, knows.Archive(ctx, sku, over.Epoch, over.Ver))
	note(knows.SetTotal(ctx, sku, 9, 0))
	now := note(knows.SetState(ctx, sku, On))
	found := knows.FindAll(ctx, []OrderName{{SKU: sku, Serial: "none"}})[0]
	errs = append(errs, found.Err, differ("sale", found.Sale, now.Sale))

	errs = append(errs, older(behind, operator))
	before := note(operator.readOnly(ctx, sku))
	if f := knows.FindAll(ctx, []OrderName{{SKU: sku, Serial: "none"}})[0]; f.Err == nil {
		errs = append(errs, errors.New("it says that there is no such order"))
	}
	_, err := knows.Sweep(ctx, sku, 1, 2, 1)
	errs = append(errs, err)
	for range 3 {
		_, err := knows.Recover(ctx, sku, 1, 2)
		errs = append(errs, err)
	}
	s := note(operator.readOnly(ctx, sku))
	errs = append(errs, differ("found", fmt.Sprint(s.State, s.Sale), fmt.Sprint(Frozen, now.Sale)))
	s = note(operator.SetState(ctx, sku, On))
	errs = append(errs, differ("opened", fmt.Sprint(s.State, s.Sale), fmt.Sprint(On, now.Sale)))
	if s.Epoch <= before.Epoch || s.Epoch <= now.Epoch {
		errs = append(errs, fmt.Errorf("it opens in epoch %d, after %d and %d", s.Epoch, before.Epoch, now.Epoch))
	}
	return errors.Join(errs...)
}

// readOnly is ReadStock of a ledger that is there.
func (r *Store) readOnly(ctx context.Context, sku string) (Stock, error) {
	s, _, err := r.ReadStock(ctx, sku)
	return s, err
}

func TestSale_LedgerNeverFallsBehindTheLatestSale(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	older := map[string]func(sku string, behind snapshot, operator *Store) error{
		"older": func(_ string, behind snapshot, _ *Store) error {
			behind.restore(t, server)
			return nil
		},
		"made again": func(sku string, _ snapshot, operator *Store) error {
			testkit.Check(t, server.Client.Del(t.Context(), keys(sku)...).Err())
			_, err := operator.Recreate(t.Context(), sku, 9, 0, true)
			return err
		},
		"opened": func(sku string, behind snapshot, _ *Store) error {
			behind.restore(t, server)
			return server.Client.HIncrBy(t.Context(), home(sku), "epoch", 1000).Err()
		},
		"about to open": func(sku string, behind snapshot, _ *Store) error {
			behind.restore(t, server)
			return server.Client.HSet(t.Context(), home(sku), "state", "frozen", "why", "mark", "was", "on", "since", 0).Err()
		},
	}
	play := func(t *testing.T, texts map[string]string, name string) error { // until one is wrong
		for how, become := range older {
			sku := name + " " + how
			if err := lateSale(t, server, texts, sku, func(behind snapshot, operator *Store) error {
				return become(sku, behind, operator)
			}); err != nil {
				return err
			}
		}
		return nil
	}
	testkit.Check(t, play(t, texts(), "as it is"))
	for name, m := range map[string]mutant{
		"the sale is not taken over": {"mark", "	if behind then begin_sale(stock, tonumber(SALE)) end\n", ""},
		"the sale is not missed":     {"mark", "	if stock.sale < tonumber(SALE) then return 'version' end\n", ""},
		"it opens in that epoch":     {"mark", "math.max(tonumber(EPOCH), stock.epoch, ", "math.max(tonumber(EPOCH), "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := play(t, m.apply(t), name); err == nil {
				t.Error("not noticed")
			}
		})
	}
}

// A server takes over that is older than the archiving of the last sale. An operator adopts the order that it lacks,
// and opens the SKU: that order is repeated, and a buyer of the sale before gets another one.
func TestSale_OlderServerThatIsOpenedKnowsTheOrdersOfTheLatestSale(t *testing.T) {
	t.Parallel()
	ctx, server := t.Context(), redistest.Start(t)
	op := connect(t, server, texts())
	testkit.Must[Stock](t)(op.SetTotal(ctx, testSKU, 9, 0))
	open := func() *Reserver {
		o := testOptions()
		o.PerUser = 1
		return opened(t, o, connect(t, server, texts()), nil)
	}
	d := open()
	first := sells(t, d, "zoe")
	behind := snapshotOf(t, server, testSKU)
	nextSale(t, op, 9)
	won := sells(t, d, "ann")
	behind.restore(t, server)
	testkit.Eventually(t, "frozen", func() bool { return d.buy("bob", "k").State == Frozen })
	operator := connect(t, server, texts())
	testkit.Want(t, "adopted", finishOne(t, operator, Adopt, won), Changed)
	testkit.Must[Stock](t)(operator.SetState(ctx, testSKU, On))
	for what, d := range map[string]*Reserver{"a new instance": open(), "the same instance": d} {
		out := buys(t, d, "ann", "")
		wants(t, what, out, ReplaySold)
		testkit.Want(t, what, out.Serial, won)
	}
	back := buys(t, open(), "zoe", "")
	wants(t, "a buyer of the sale before", back, Held)
	if back.Serial == first {
		t.Errorf("%s comes again", first)
	}
}

// An instance that has only heard of the present sale makes its ledger again.
func TestSale_LedgerThatIsMadeAgainIsOfTheSaleThatNewsTold(t *testing.T) {
	ctx, server := t.Context(), redistest.Start(t)
	op, heard := connect(t, server, texts()), connect(t, server, texts())
	testkit.Must[Stock](t)(op.SetTotal(ctx, testSKU, 5, 0))
	listen(t, heard)
	nextSale(t, op, 5)
	sale := stockIn(t, op).Sale
	testkit.Eventually(t, "it has heard", func() bool { return heard.Seen.Find(testSKU).Claim().Sale == sale })
	testkit.Check(t, op.Close()) // it does not tell
	testkit.Check(t, server.Client.FlushAll(ctx).Err())
	made := testkit.Must[Stock](t)(heard.Recreate(ctx, testSKU, 5, 0, false))
	testkit.Want(t, "sale", made.Sale, sale)
}
