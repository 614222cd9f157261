package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
)

// The ledger is opened beside everything else: what goes wrong there must not leave anybody waiting for it.
func TestOrdersOpen_GateThatCannotBeWiredDoesNotWaitForItsLedger(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	c := storetest.Reserving(mute.Addr().String())
	c.Stock.Redis.Topology = "single"
	c.Upstream.Targets = []string{"gopher://127.0.0.1:1"}
	if _, err := New(c, Options{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "gopher") {
		t.Errorf("err = %v", err)
	}
}

func TestOrdersOpen_GateOnARedisThatMayEvictIsNotWired(t *testing.T) {
	c := storetest.Reserving(redistest.Start(t, "--maxmemory-policy", "allkeys-lru").Addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:1"}
	if _, err := New(c, Options{}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "noeviction") {
		t.Errorf("err = %v", err)
	}
}

// An operator who gives the second sale of a SKU a stock is told that it changes nothing.
func TestOrdersOpen_SaleWhoseSKUHasALedgerTellsThatItsStockIsNotAdded(t *testing.T) {
	addr := redistest.Start(t).Addr
	begin := func(log *lockedBuffer, stock ...int) *Gateway {
		c := storetest.Reserving(addr)
		c.Upstream.Targets = []string{"http://127.0.0.1:1"}
		for _, units := range stock {
			c.Sales = append(c.Sales, config.Sale{Name: "second", SKUs: []string{"1001"}, Starts: time.Now().Add(time.Hour),
				Ends: time.Now().Add(2 * time.Hour), BeforeStart: "reject", Stock: map[string]int{"1001": units}})
		}
		g, err := New(c, Options{}, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
	if _, err := begin(&lockedBuffer{}).Orders().Store.SetTotal(context.Background(), "1001", 3, 0); err != nil {
		t.Fatal(err)
	}
	const line = "has a ledger, with another total"
	same, other := &lockedBuffer{}, &lockedBuffer{}
	g := begin(same, 3)
	testkit.Eventually(t, "its hours are told", func() bool {
		s, ok, err := g.Orders().Store.ReadStock(context.Background(), "1001")
		return ok && err == nil && s.Opens != 0
	})
	if strings.Contains(same.String(), line) {
		t.Errorf("the same total: %s", same)
	}
	reloaded := *g.running.Load()
	reloaded.Sales = slices.Clone(reloaded.Sales)
	reloaded.Sales[0].Stock = map[string]int{"1001": 20}
	if err := g.Apply(&reloaded); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the log of the reload says so", func() bool {
		return strings.Contains(same.String(), "stock=20 total=3 sold=0")
	})
	limited := reloaded
	limited.Stock.Reserve.MaxPerUser = 7
	if err := g.Apply(&limited); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the log says that the limit is for new ledgers", func() bool {
		return strings.Contains(same.String(), `max_per_user=7 limit=0 next="sluice stock set 1001 3 --limit 7"`)
	})
	begin(other, 5)
	testkit.Eventually(t, "the log says so", func() bool { return strings.Contains(other.String(), line) })
	if text := other.String(); !strings.Contains(text, "stock=5 total=3 sold=0") {
		t.Error(text)
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
