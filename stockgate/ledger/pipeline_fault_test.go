package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// nuisance does to a Redis, until ctx ends, what may happen to one that forgets nothing.
func nuisance(ctx context.Context, server *redistest.Server, n *rand.Rand) {
	c, bg := server.Client, context.Background()
	for ctx.Err() == nil {
		switch n.IntN(4) {
		case 0:
			_ = c.ClientKillByFilter(bg, "type", "normal", "skipme", "yes").Err()
		case 1:
			_ = c.Do(bg, "client", "pause", 150, "all").Err()
		case 2:
			_ = c.ScriptFlush(bg).Err()
		case 3:
			server.Pause()
			time.Sleep(time.Duration(n.IntN(800)) * time.Millisecond) // the server hangs for so long
			server.Resume()
		}
		time.Sleep(time.Duration(50+n.IntN(100)) * time.Millisecond) // buyers come between two faults
	}
}

// throng is buyers of many SKUs, of which each has few units, and what they hear.
type throng struct {
	t         *testing.T
	reservers []*Reserver

	mu    sync.Mutex
	heard map[string]map[string]Op // by SKU and serial: what was done to an order that was told to be held
}

// buy asks for one unit until somebody knows what comes of it, and settles it.
func (c *throng) buy(sku string, key string, n *rand.Rand) {
	for range 20 {
		time.Sleep(time.Duration(n.IntN(50)) * time.Millisecond) // buyers come at different moments
		d := c.reservers[n.IntN(len(c.reservers))]
		out := d.Reserve(
			d.o.Now(),
			Order{SKU: []byte(sku), User: []byte("user of " + key), Key: []byte(key), Quantity: 1},
		)
		switch out.Code {
		case Held:
			op := []Op{Confirm, Confirm, Release}[n.IntN(3)]
			c.hear(sku, key, op)
			c.reservers[n.IntN(len(c.reservers))].Settle(sku, key, op)
			return
		case Unsure, Overloaded:
			continue
		}
		return
	}
}

// hear notes that an order may be forwarded: once.
func (c *throng) hear(sku, key string, op Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, before := c.heard[sku][key]; before {
		c.t.Errorf("%s of %s was forwarded twice", key, sku)
	}
	if c.heard[sku] == nil {
		c.heard[sku] = make(map[string]Op)
	}
	c.heard[sku][key] = op
}

// balances reports whether a ledger agrees with what its buyers heard, and nothing is held any more.
func (c *throng) balances(r *Store, sku string) error {
	s, _, err := r.ReadStock(context.Background(), sku)
	if err != nil || s.Held > 0 || s.Why != "" {
		return fmt.Errorf("%+v: %w", s, err)
	}
	sold := int64(0)
	for serial, op := range c.heard[sku] {
		to := StatusSold
		if op == Release {
			to = StatusReleased
		} else {
			sold++
		}
		if rec, _, err := r.Find(context.Background(), sku, serial); err != nil || rec.Status != to {
			return fmt.Errorf("%s of %s: %c, want %c: %w", serial, sku, rec.Status, to, err)
		}
	}
	if s.Sold != sold || s.Sold > s.Total {
		return fmt.Errorf("%s: %d are sold of %d, buyers heard %d", sku, s.Sold, s.Total, sold)
	}
	return nil
}

// Whatever happens to connections, scripts and the server: what buyers of many SKUs hear, and what reservers and
// ledgers say to each other in round trips that they share, is what calls could have come to that came one after the
// other.
func TestPipelineFault_SalesOfManySKUsAreRightWhateverHappensToRedis(t *testing.T) {
	const mostUnheard = 6
	rounds, sold, buyers := 1, 50, 150
	if nightly() {
		rounds, sold, buyers = 3, 150, 450
	}
	server := redistest.Start(t)
	direct := connect(t, server, texts())
	ways, stores := lossyStores(t, server, texts(), 7)
	h, c := newHistory(), &throng{t: t, heard: make(map[string]map[string]Op)}
	for _, s := range stores {
		o := testOptions()
		o.Timeout, o.MaxWait = 3*time.Second, 6*time.Second // a call that takes longer explains nothing
		c.reservers = append(c.reservers, opened(t, o, recorder{s, h}, nil))
	}
	for round := range rounds {
		named := func(i int) string { return fmt.Sprint("sku ", round, " ", i%sold) }
		for i := range sold {
			testkit.Must[Stock](t)(recorder{direct, h}.SetTotal(t.Context(), named(i), 2, 2))
		}
		ctx, calm := context.WithCancel(t.Context())
		var trouble sync.WaitGroup
		trouble.Go(func() { nuisance(ctx, server, rand.New(rand.NewPCG(7, uint64(round)))) })
		testkit.Storm(
			buyers,
			64,
			func(i int) { c.buy(named(i), fmt.Sprint("key-", i), rand.New(rand.NewPCG(uint64(round), uint64(i)))) },
		)
		calm()
		trouble.Wait()
		for i := range sold {
			var err error
			testkit.Eventually(
				t,
				"the books balance",
				func() bool { err = c.balances(direct, named(i)); return err == nil || t.Failed() },
			)
			testkit.Check(t, err)
		}
	}
	for _, d := range c.reservers {
		d.Close(context.Background())
	}
	explained := 0
	for _, ops := range bySKU(h.ops) {
		unheard := 0
		for _, op := range ops {
			if op.Output.(seen).unknown {
				unheard++
			}
		}
		if unheard > mostUnheard { // what may have happened at any time is too much for the checker; the books balance
			continue
		}
		if explained++; illegal(t, sequential(honest), &history{ops: ops}) {
			t.Errorf("it cannot be explained: %s", drawn(t, &history{ops: ops}))
		}
	}
	if t.Logf("%d histories are explained", explained); explained == 0 && nightly() {
		t.Error("hardly anything was heard: the test says nothing")
	}
	for _, way := range ways {
		requests, replies := way.lost()
		if t.Logf("%d requests and %d replies were lost", requests, replies); replies == 0 && nightly() {
			t.Error("no reply was lost: the test says nothing")
		}
	}
}
