package accesslog

import (
	"io"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

func TestLog_DropsAndCountsWhileEverySlotIsFull(t *testing.T) {
	l := logTo(t, io.Discard, nil)
	room := cap(l.slots.free)
	for range room + 5 {
		l.Log(testRecord(reject.SoldOut))
	}
	if n := l.dropped[full].Load(); n != 5 || len(l.slots.filled) != room {
		t.Errorf("%d were dropped and %d kept, want 5 and %d", n, len(l.slots.filled), room)
	}
	newWriter(l, Totals{}).drain()
	l.Log(testRecord(reject.SoldOut))
	if n := l.dropped[full].Load(); n != 5 {
		t.Error("it takes nothing after its slots were emptied")
	}
}

// Many write while one reads: what is taken is whole, each once, and in the order of its writer.
func TestSlots_LoseAndMixNothing(t *testing.T) {
	const writers, each = 8, 5000
	slots := newSlots(256)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				name := []byte(strconv.Itoa(w))
				e := metrics.AccessRecord{Status: i, BytesIn: int64(w), SKU: name, Path: name, User: name}
				for !slots.push(&e) {
					runtime.Gosched()
				}
			}
		})
	}
	next := [writers]int{}
	for range writers * each {
		s := <-slots.filled
		e := &s.record
		name := strconv.Itoa(int(e.BytesIn))
		if e.Status != next[e.BytesIn] || string(e.SKU) != name || string(e.Path) != name || string(e.User) != name {
			t.Errorf("%+v, want number %d", e, next[e.BytesIn])
		}
		next[e.BytesIn]++
		slots.free <- s
	}
	all.Wait()
}

func TestLog_DoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l := logTo(t, io.Discard, nil)
	w := newWriter(l, Totals{})
	e, nth := testRecord(reject.SoldOut), uint64(0)
	for name, step := range map[string]func(){
		"sampled": func() { nth++; l.Sampled(int64(nth)*1e6, reject.SoldOut, nth) },
		"log":     func() { l.Log(e); l.slots.free <- <-l.slots.filled },
		"write":   func() { l.Log(e); w.drain(); w.flush() },
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
	e := testRecord(reject.SoldOut)
	b.Run("not_sampled", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Sampled(1e9, reject.SoldOut, 7)
			}
		})
	})
	b.Run("log", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			l.Log(e)
			l.slots.free <- <-l.slots.filled
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
