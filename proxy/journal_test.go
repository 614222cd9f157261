package proxy_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"sluice/accesslog"
	"sluice/proxy"
)

// roads are ways of one order through a gate, with nothing, with a log that samples, and with one that tells everything.
var roads = []struct {
	name    string
	options func() proxy.Options
}{{"admitted", proxy.Admitting}, {"sold_out", proxy.SoldOutNow}}

var journals = []struct {
	name  string
	every int // 0 = no journal
}{{"off", 0}, {"sampled", 1000}, {"whole", 1}}

// turning makes a gate whose log is written to nowhere.
func turning(t testing.TB, o proxy.Options, every int) *proxy.Proxy {
	t.Helper()
	if every > 0 {
		start := time.Now()
		o.Now = func() int64 { return int64(time.Since(start)) }
		l, err := accesslog.New(accesslog.Options{
			Settings: accesslog.Settings{Output: "stdout", RefusedFirst: 20, RefusedEvery: every, Remember: 1 << 20},
			Stdout:   io.Discard, Now: o.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Journal = l
		p, err := proxy.New(o)
		if err != nil {
			t.Fatal(err)
		}
		l.Start(func() accesslog.Totals { return accesslog.Totals{Totals: p.Totals()} })
		t.Cleanup(l.Close)
		return p
	}
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestJournalDoesNotMakeDecisionsAllocate(t *testing.T) {
	if proxy.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, road := range roads {
		for _, journal := range journals {
			turn := proxy.Loop(turning(t, road.options(), journal.every))
			for range 100 {
				turn()
			}
			// The writer allocates a few times a second for its summary; a request never does.
			if n := testing.AllocsPerRun(2000, turn); n != 0 {
				t.Errorf("%s, %s: %v allocations a request", road.name, journal.name, n)
			}
		}
	}
}

func BenchmarkJournal(b *testing.B) {
	for _, road := range roads {
		for _, journal := range journals {
			b.Run(road.name+"/"+journal.name, func(b *testing.B) {
				p := turning(b, road.options(), journal.every)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					turn := proxy.Loop(p)
					for pb.Next() {
						turn()
					}
				})
			})
		}
	}
}
