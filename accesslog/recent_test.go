package accesslog

import (
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// numbered is the nth of many records.
func numbered(n int) *metrics.AccessRecord {
	name := []byte(strconv.Itoa(n))
	return &metrics.AccessRecord{Status: n, ID: name, SKU: name, User: name, Path: []byte("/" + strings.Repeat("x", 300))}
}

// numbers are those of the records in pages.
func numbers(t *testing.T, pages [][]byte) (all []int) {
	t.Helper()
	for _, page := range pages {
		for c := (coder{bytes: page, reads: true}); len(c.bytes) > 0; {
			var e metrics.AccessRecord
			c.record(&e)
			if want := numbered(e.Status); !reflect.DeepEqual(zeroed(e), zeroed(*want)) {
				t.Fatalf("record %d is %+v", e.Status, e)
			}
			all = append(all, e.Status)
		}
	}
	return all
}

// zeroed is e without the difference between nil and empty.
func zeroed(e metrics.AccessRecord) metrics.AccessRecord {
	for _, text := range []*[]byte{&e.ID, &e.Method, &e.Path, &e.SKU, &e.User} {
		*text = append([]byte{}, *text...)
	}
	return e
}

func TestCoder_ReadsWhatItWrote(t *testing.T) {
	e := testRecord(reject.Window)
	e.Serial, e.Limit, e.Target, e.Wait = "s-1", "20 in 10ms", "http://127.0.0.1:9000", 7
	e.Detail, e.Observed = reject.Detail{Cause: reject.UserMissing, Operand: "$cookie_uid"}, reject.SoldOut
	e.Sent, e.Outcome, e.Reserved, e.Order = true, upstream.Capped, true, metrics.OrderUnknown
	e.Gate, e.Deadline, e.BytesIn, e.BytesOut = route.Reserve, 1_700_000_900_123, 1<<40, -1
	e.Arrived, e.Decided, e.Answered, e.Done = 1<<60, 1<<60+1, 1<<60+2, 1<<60-3
	for _, want := range []metrics.AccessRecord{e, testRecord(reject.Admitted), {}} {
		w := coder{}
		written := want
		w.record(&written)
		got, r := e, coder{bytes: w.bytes, reads: true}
		if r.record(&got); len(r.bytes) > 0 || !reflect.DeepEqual(zeroed(got), zeroed(want)) {
			t.Errorf("%+v\nbecomes %+v, %d bytes are left", want, got, len(r.bytes))
		}
	}
}

func TestRecent_KeepsTheNewestInBoundedMemory(t *testing.T) {
	var r recent
	r.resize(3 * pageSize)
	const records = 3000
	made := map[*byte]bool{}
	for n := range records {
		r.add(numbered(n))
		r.next(nil)
		r.done()
		made[&r.pages[len(r.pages)-1][0]] = true
		if len(r.pages) > 3 || len(made) > 3 {
			t.Fatalf("%d pages are held, %d were made", len(r.pages), len(made))
		}
	}
	check := func(pages int) {
		t.Helper()
		all := numbers(t, r.kept())
		r.done()
		if len(r.pages) != pages || len(all) < (pages-1)*100 || len(all) > records/2 {
			t.Fatalf("%d records on %d pages, want %d pages", len(all), len(r.pages), pages)
		}
		for i, n := range all {
			if n != records-len(all)+i {
				t.Fatalf("record %d is number %d of %d", n, i, len(all))
			}
		}
	}
	check(3)
	r.resize(pageSize)
	check(1)
	r.resize(0)
	r.add(numbered(0))
	if len(r.kept()) != 0 {
		t.Error("no memory remembers")
	}
}

func TestRecent_WhatIsReadStaysAsItIs(t *testing.T) {
	var r recent
	r.resize(2 * pageSize)
	fill := func() {
		for n := range 1000 {
			r.add(numbered(n))
			r.next(nil)
			r.done()
		}
	}
	fill()
	read := r.kept()
	before := numbers(t, read)
	fill()
	if after := numbers(t, read); !slices.Equal(after, before) {
		t.Errorf("records %v have become %v", before, after)
	}
}

func TestRecent_CountsWhatTheWriterHasNotHad(t *testing.T) {
	var r recent
	var had []int
	n := 0
	for ; len(r.pages) < backlog/2; n++ {
		r.add(numbered(n))
	}
	had = numbers(t, r.next(nil))
	if len(had) != n || r.lost != 0 {
		t.Errorf("the writer has %d of %d records, %d are lost", len(had), n, r.lost)
	}
	for ; r.lost == 0; n++ {
		r.add(numbered(n))
	}
	if len(r.pages) > backlog {
		t.Errorf("%d pages wait", len(r.pages))
	}
	had = append(had, numbers(t, r.next(nil))...)
	if uint64(len(had))+r.lost != uint64(n) || had[len(had)-1] != n-1 {
		t.Errorf("of %d records the writer has %d, and %d are lost", n, len(had), r.lost)
	}
}

// Many write while one reads: what is taken is whole, each once, and in the order of its writer.
func TestRecent_LosesAndMixesNothing(t *testing.T) {
	const writers, each = 8, 2000
	var r recent
	r.resize(pageSize)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				r.add(numbered(w*each + i))
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	next, had := [writers]int{}, uint64(0)
	for reading := true; reading; {
		select {
		case <-ended:
			reading = false // this read is the last
		default:
		}
		for _, n := range numbers(t, r.next(nil)) {
			if n%each < next[n/each] {
				t.Errorf("number %d comes after %d", n%each, next[n/each]-1)
			}
			next[n/each] = n%each + 1
			had++
		}
		r.done()
	}
	if _, lost := r.counts(); had+lost != writers*each {
		t.Errorf("%d were read and %d lost of %d", had, lost, writers*each)
	}
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
		"log":     func() { l.Log(e) },
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
		for n := 0; b.Loop(); n++ {
			l.Log(e)
			if n%1000 == 0 {
				l.recent.next(nil)
				l.recent.done()
			}
		}
	})
	b.Run("line", func(b *testing.B) {
		b.ReportAllocs()
		var line []byte
		for b.Loop() {
			line = l.appendLine(line[:0], &e, l.users)
		}
		b.SetBytes(int64(len(line)))
	})
}
