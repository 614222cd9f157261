package stockgate

import (
	"bytes"
	"testing"
	"time"

	"sluice/internal/octets"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

func TestTable_InventedSKUsNeitherGrowMemoryNorEvictRealOnes(t *testing.T) {
	m := NewMemory()
	o := options()
	o.MaxSKUs = 1000
	now := int64(0)
	o.Now = func() int64 { return now }
	g := stepped(t, o, m)
	for i := range 100 {
		sku := name(i)
		testkit.Check(t, m.Set(t.Context(), string(sku), 5))
		e := addEntry(g.table, now, sku)
		g.poller.publishReading(now, e, reading(5))
	}
	invent := 0
	for range 1000 { // 50,000 inventions in a second
		now += int64(time.Millisecond)
		for range 50 {
			invent++
			if e := g.entryOf(now, []byte{byte(invent), byte(invent >> 8), byte(invent >> 16), 'x'}); e != nil {
				g.look1(e)
			}
		}
		for i := range 100 {
			g.Closed(now, name(i))
		}
		g.poller.readFirst(t.Context(), now)
		g.poller.work(t.Context(), now)
		if n := g.table.Len(); n > 1000 {
			t.Fatalf("the table grew to %d", n)
		}
	}
	for i := range 100 {
		if got := g.Enter(now, name(i), nil); got != reject.Admitted {
			t.Fatalf("enter real SKU %d: %v", i, got)
		}
	}
	if g.table.Crowded() && g.table.Len() == 1000 {
		t.Fatal("inventions took all the room")
	}
}

// look1 asks for a first look without waiting for it.
func (g *Gate) look1(e *entry) {
	e.pending.CompareAndSwap(nil, &firstRead{done: make(chan struct{})})
	if !g.poller.queueFirstRead(e) {
		e.completeFirstRead(unread)
	}
}

func TestTable_ForgottenSKUsMakeRoom(t *testing.T) {
	o := options()
	o.MaxSKUs = 4
	g := stepped(t, o, NewMemory())
	for i := range 4 {
		e := addEntry(g.table, 0, name(i))
		g.poller.publishReading(0, e, reading(1))
	}
	if got := g.Enter(0, []byte("new"), nil); got != reject.StockError {
		t.Fatalf("enter while the table is full: %v", got)
	}
	now := int64(3 * time.Second)
	g.Closed(now, name(0))
	now = idleAfter + 1
	for range octets.TableParts {
		g.poller.sweep(now)
	}
	if g.table.Find(name(0)) == nil || g.table.Len() != 1 {
		t.Fatalf("%d SKUs stayed, want the one that was asked for", g.table.Len())
	}
}

func TestTable_UnknownSKUIsForgottenAfterSoldOutMemoryThoughItIsAskedFor(t *testing.T) {
	const memory = int64(time.Second)
	for now, want := range map[int64]int{memory: 1, memory + 1: 0} {
		g, e := learnt(t, options(), 0, []byte("1001"), layout.Reading{OnSale: true})
		e.markAsked(now, 0)
		for range octets.TableParts {
			g.poller.sweep(now)
		}
		if n := g.table.Len(); n != want {
			t.Errorf("%v later %d SKUs are remembered, want %d", time.Duration(now), n, want)
		}
	}
}

func TestTable_SKUInFlightIsNotForgotten(t *testing.T) {
	o := options()
	o.PerUnit = 1
	g, e := learnt(t, o, 0, []byte("1001"), reading(1))
	g.Enter(0, []byte("1001"), nil)
	for range octets.TableParts {
		g.poller.sweep(idleAfter + 1)
	}
	if g.table.Find([]byte("1001")) != e {
		t.Fatal("forgotten while a request was in flight")
	}
}

func TestTable_SKUInFlightIsLookedAtAfreshAfterAPause(t *testing.T) {
	sku := []byte("1001")
	o := options()
	o.PerUnit = 1
	o.SoldOutMemory = time.Hour
	g, e := learnt(t, o, 0, sku, reading(1))
	g.Enter(0, sku, nil)
	g.poller.publishReading(1, e, reading(0))
	g.poller.pollOnce(t.Context(), idleAfter+1)
	if len(g.poller.active) != 0 {
		t.Fatal("a SKU that no request asks for is read")
	}
	if got := g.Closed(idleAfter+2, sku); got != reject.Admitted {
		t.Fatalf("closed by a reading that is no longer renewed: %v", got)
	}
}

func TestTable_OverlongSKUIsUnknownAndNotRemembered(t *testing.T) {
	g := stepped(t, options(), NewMemory())
	if got := g.Enter(0, bytes.Repeat([]byte("x"), longestSKU+1), nil); got != reject.UnknownSKU {
		t.Fatalf("enter: %v", got)
	}
	if n := g.table.Len(); n != 0 {
		t.Fatalf("%d SKUs are remembered", n)
	}
}

func TestTable_RememberedSKUIsACopy(t *testing.T) {
	g := stepped(t, options(), NewMemory())
	sku := []byte("1001")
	addEntry(g.table, 0, sku)
	copy(sku, "9999")
	if g.table.Find([]byte("1001")) == nil {
		t.Fatal("the table holds the request's memory")
	}
}
