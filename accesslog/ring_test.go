package accesslog

import (
	"io"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"sluice/proxy"
)

func TestAFullRingDropsAndCounts(t *testing.T) {
	l := logTo(t, io.Discard, nil)
	for range ringSlots + 5 {
		l.Tell(entry(proxy.SoldOut))
	}
	if n := l.dropped[full].Load(); n != 5 {
		t.Errorf("%d were dropped, want 5", n)
	}
	taken := 0
	for l.rings[0].take(func(*proxy.Entry) { taken++ }) {
	}
	if taken != ringSlots {
		t.Errorf("%d were kept, want %d", taken, ringSlots)
	}
	l.Tell(entry(proxy.SoldOut))
	if n := l.dropped[full].Load(); n != 5 {
		t.Error("an empty ring takes nothing")
	}
}

// Many write while one reads: what is taken is whole, each once, and in the order of its writer.
func TestRingLosesAndMixesNothing(t *testing.T) {
	const writers, each = 8, 5000
	r := ring{slots: make([]slot, ringSlots)}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				name := []byte(strconv.Itoa(w))
				e := proxy.Entry{Status: i, Shard: w, SKU: name, Path: name, User: name}
				for !r.put(&e) {
					runtime.Gosched()
				}
			}
		})
	}
	next := [writers]int{}
	for taken := 0; taken < writers*each; {
		if !r.take(func(e *proxy.Entry) {
			name := strconv.Itoa(e.Shard)
			if e.Status != next[e.Shard] || string(e.SKU) != name || string(e.Path) != name || string(e.User) != name {
				t.Errorf("%+v, want number %d", e, next[e.Shard])
			}
			next[e.Shard]++
			taken++
		}) {
			runtime.Gosched()
		}
	}
	all.Wait()
}

func TestTellingDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l := logTo(t, io.Discard, nil)
	w := newWriter(l, Totals{})
	e, nth := entry(proxy.SoldOut), uint64(0)
	for name, step := range map[string]func(){
		"wants": func() { nth++; l.Wants(int64(nth)*1e6, proxy.SoldOut, nth) },
		"tell":  func() { l.Tell(e); l.rings[0].take(func(*proxy.Entry) {}) },
		"full":  func() { l.Tell(e) },
		"write": func() { l.Tell(e); w.drain(); w.flush() },
	} {
		for range 10 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkLog(b *testing.B) {
	l := logTo(b, io.Discard, nil)
	e := entry(proxy.SoldOut)
	b.Run("wants_not", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Wants(1e9, proxy.SoldOut, 7)
			}
		})
	})
	b.Run("tell", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			l.Tell(e)
			l.rings[0].take(func(*proxy.Entry) {})
		}
	})
	b.Run("line", func(b *testing.B) {
		b.ReportAllocs()
		var line []byte
		for range b.N {
			line = l.appendLine(line[:0], &e, 0)
		}
		b.SetBytes(int64(len(line)))
	})
}
