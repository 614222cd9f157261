package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/periodic"
	"sluice/internal/testkit"
)

// hostile is a fakeStore behind a network that is bad at times: calls take long, are lost, are done although no caller
// hears of it, or are done later, when the caller has asked again.
type hostile struct {
	*fakeStore
	mu  sync.Mutex
	r   *rand.Rand
	bad bool
}

func (h *hostile) upTo(n int) int { h.mu.Lock(); defer h.mu.Unlock(); return h.r.IntN(n) }

func (h *hostile) be(bad func(bool) bool) { h.mu.Lock(); defer h.mu.Unlock(); h.bad = bad(h.bad) }

func (h *hostile) isBad() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.bad }

// lag takes some time, within what the caller allows.
func (h *hostile) lag(ctx context.Context) error {
	d := time.Duration(h.upTo(15)) * time.Millisecond
	if h.isBad() {
		switch h.upTo(4) {
		case 0:
			d = time.Hour
		case 1:
			d = time.Duration(h.upTo(600)) * time.Millisecond
		case 2:
			return errNetwork
		}
	}
	if !periodic.Pause(ctx, d) {
		return ctx.Err()
	}
	return nil
}

// through makes a call whose request and whose reply have their lags.
func (h *hostile) through(ctx context.Context, call func() error) error {
	if err := h.lag(ctx); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	return h.lag(ctx)
}

func (h *hostile) Reserve(
	ctx context.Context,
	sku string,
	epoch, now, deadline int64,
	items []Item,
	codes []Code,
) (hint StockVersion, err error) {
	if err = h.lag(ctx); err == nil {
		if hint, err = h.fakeStore.Reserve(ctx, sku, epoch, now, deadline, items, codes); err == nil {
			err = h.lag(ctx)
		}
		return hint, err
	}
	if h.upTo(2) == 0 {
		sent, wait := append([]Item(nil), items...), time.Duration(h.upTo(4)*h.upTo(1000))*time.Millisecond
		go func() {
			time.Sleep(wait)
			_, _ = h.fakeStore.Reserve(context.Background(), sku, epoch, now, deadline, sent, make([]Code, len(sent)))
		}()
	}
	return StockVersion{}, err
}

func (h *hostile) Finish(
	ctx context.Context,
	sku string,
	now, keep int64,
	op Op,
	items []Item,
	done []Done,
) (hint StockVersion, err error) {
	err = h.through(ctx, func() (err error) {
		hint, err = h.fakeStore.Finish(ctx, sku, now, keep, op, items, done)
		return err
	})
	return hint, err
}

func (h *hostile) FindAll(ctx context.Context, orders []OrderName) (found []Found) {
	err := h.through(ctx, func() error { found = h.fakeStore.FindAll(ctx, orders); return found[0].Err })
	if err != nil {
		found = make([]Found, len(orders))
		for i := range found {
			found[i].Err = err
		}
	}
	return found
}

func (h *hostile) Find(ctx context.Context, sku, serial string) (r Record, ok bool, err error) {
	err = h.through(ctx, func() (err error) { r, ok, err = h.fakeStore.Find(ctx, sku, serial); return err })
	return r, ok, err
}

func (h *hostile) ReadStock(ctx context.Context, sku string) (s Stock, ok bool, err error) {
	err = h.through(ctx, func() (err error) { s, ok, err = h.fakeStore.ReadStock(ctx, sku); return err })
	return s, ok, err
}

// bother does now and then what operators, news and a bad network do, until ctx ends; then all is well.
func (h *hostile) bother(ctx context.Context, reservers []*Reserver, skus int) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(100+h.upTo(1500)) * time.Millisecond)
		sku := fmt.Sprint("m-", h.upTo(skus))
		switch h.upTo(7) {
		case 0:
			h.be(func(bad bool) bool { return !bad })
		case 1:
			h.be(func(bool) bool { return false })
		case 2:
			reservers[h.upTo(len(reservers))].onGap()
		case 3:
			state := []State{On, Paused, On, Ended}[h.upTo(4)]
			_, _ = h.fakeStore.SetState(context.Background(), sku, state)
		case 4:
			hint := h.stock(sku).StockVersion
			for _, d := range reservers {
				d.Learn(sku, hint)
			}
		case 5:
			_, _ = h.fakeStore.Add(context.Background(), sku, int64(h.upTo(3)), "")
		case 6:
			state := []State{On, Verifying, On}[h.upTo(3)]
			h.fakeStore.mu.Lock()
			h.skus[sku].stock.State = state
			h.fakeStore.mu.Unlock()
		}
	}
	h.be(func(bool) bool { return false })
	for i := range skus {
		_, _ = h.fakeStore.SetState(context.Background(), fmt.Sprint("m-", i), On)
	}
}

// tight are options of a reserver that has little room for some of what it keeps.
func (h *hostile) tight() Options {
	o := testOptions()
	o.Timeout, o.MaxWait, o.PerUser = 250*time.Millisecond, 500*time.Millisecond, 1
	if h.upTo(2) == 0 {
		o.MaxQueue = 1 + h.upTo(5)
	}
	if h.upTo(3) == 0 {
		o.MaxKnown = cacheWays
	}
	if h.upTo(2) == 0 {
		o.MaxBatch = 1 + h.upTo(4)
	}
	return o
}

// wish is what one user wants one unit of.
type wish struct {
	sku  int
	name string
}

// Whatever a bad network does to calls: every order is answered before long, none is told twice that it may be
// forwarded, a winner does not hear that all is sold out, and what is held afterwards is held for a client who has
// heard so.
func TestReserver_KeepsItsPromisesBehindABadNetwork(t *testing.T) {
	const buyers, steps = 40, 40
	for seed := range uint64(25) {
		at(t, func(t *testing.T) {
			h := &hostile{fakeStore: newFakeStore(), r: rand.New(rand.NewPCG(seed, 3))}
			skus, o := 1+h.upTo(6), h.tight()
			for i := range skus {
				h.put(fmt.Sprint("m-", i), int64(h.upTo(12)), 0)
			}
			var reservers []*Reserver
			for range 1 + h.upTo(3) {
				reservers = append(reservers, opened(t, o, h, nil))
			}
			ctx, stop := context.WithCancel(t.Context())
			var side, mu = sync.WaitGroup{}, sync.Mutex{}
			side.Go(func() { h.bother(ctx, reservers, skus) })
			won := map[wish]time.Time{}
			buy := func(i int) {
				of, d, key := wish{h.upTo(skus), fmt.Sprint("u", i)}, reservers[h.upTo(len(reservers))], ""
				if i%2 == 0 {
					key = fmt.Sprintf("%s-%d", of.name, of.sku)
				}
				mu.Lock()
				since, has := won[of]
				mu.Unlock()
				ask, began := attempt(of.name, key), time.Now()
				ask.SKU = fmt.Append(nil, "m-", of.sku)
				out := d.Reserve(d.o.Now(), ask)
				mu.Lock()
				defer mu.Unlock()
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("seed %d: %v waited %v for %v", seed, of, took, out)
				}
				switch long := has && began.Sub(since) > 2*time.Second; {
				case out.Code == Held && has:
					t.Errorf("seed %d: %v is held twice", seed, of)
				case out.Code == Held && i%6 == 1:
					go d.Settle(string(ask.SKU), out.Serial, Release)
				case out.Code == Held:
					won[of] = time.Now()
					if i%3 > 0 {
						go d.Settle(string(ask.SKU), out.Serial, Confirm)
					}
				case long && (out.Code == Released || out.Code == UnknownSKU ||
					out.Code == SoldOut && !out.Unverified):
					t.Errorf("seed %d: %v (key %q), won since %v, heard %v", seed, of, key, time.Since(since), out)
				}
			}
			testkit.Storm(buyers, buyers, func(i int) {
				for range steps {
					time.Sleep(time.Duration(h.upTo(3)*h.upTo(200)) * time.Millisecond)
					buy(i)
				}
			})
			stop()
			side.Wait()
			time.Sleep(2 * time.Minute) // less than a hold lasts
			restocked(t, h.fakeStore, reservers, skus, "m-", func(sku int, user string) {
				won[wish{sku, user}] = time.Now()
			})
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			synctest.Wait()
			h.fakeStore.mu.Lock()
			defer h.fakeStore.mu.Unlock()
			for i := range skus {
				for serial, rec := range h.skus[fmt.Sprint("m-", i)].records {
					if _, has := won[wish{i, rec.User}]; rec.Status == 'H' && !has {
						t.Errorf("seed %d: %s of %s is held, and no client heard so", seed, serial, rec.User)
					}
				}
			}
		})
	}
}

// restocked adds a unit for each reserver to each SKU, named prefix and a number, and reports a reserver that has
// none for a newcomer; held hears who got one.
func restocked(
	t *testing.T,
	s *fakeStore,
	reservers []*Reserver,
	skus int,
	prefix string,
	held func(sku int, user string),
) {
	t.Helper()
	for i := range skus {
		testkit.Must[Stock](t)(s.Add(t.Context(), fmt.Sprint(prefix, i), int64(len(reservers)), ""))
	}
	for n, d := range reservers {
		user := fmt.Sprint("late-", n)
		for i := range skus {
			time.Sleep(1100 * time.Millisecond)
			ask := attempt(user, "")
			ask.SKU = fmt.Append(nil, prefix, i)
			if out := d.Reserve(d.o.Now(), ask); out.Code != Held {
				t.Errorf("of new units of SKU %d at reserver %d: %v", i, n, out)
			}
			held(i, user)
		}
	}
}
