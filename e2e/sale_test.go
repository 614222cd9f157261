package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// saleOf is a [[sale]] of SKU 1001 that begins so much later and lasts an hour; more are further keys of it.
func saleOf(begins time.Time, more ...string) string {
	const form = "2006-01-02T15:04:05.000Z07:00"
	return fmt.Sprintf("[[sale]]\nname = \"rush\"\nskus = [\"1001\"]\nstarts = %s\nends = %s\n%s\n",
		begins.Format(form), begins.Add(time.Hour).Format(form), strings.Join(more, "\n"))
}

// onShow is an answer of /.sluice/stock.
type onShow struct {
	SKU, Phase, Left, Token string
	Time                    int64 `json:"server_time_ms"`
	Opens                   int64 `json:"opens_at_ms"`
	OpensIn                 int64 `json:"opens_in_ms"`
	Closes                  int64 `json:"closes_at_ms"`
	Free                    *int64
	Stock                   []onShow
}

// shows asks what is left.
func (g *running) shows(what string, lines ...string) (s onShow, a answer) {
	g.t.Helper()
	a = g.ask("GET", "/.sluice/stock"+what, lines...)
	if a.status == 200 {
		if err := json.Unmarshal([]byte(a.body), &s); err != nil {
			g.t.Fatalf("%s: %v", a.body, err)
		}
	}
	return s, a
}

func TestSchedule_SaleOpensByItselfWithTheStockWrittenOnce(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	begins := time.Now().Add(time.Hour).Truncate(time.Millisecond) // until all of what comes before the start was seen
	sale := saleOf(begins, "stock = { 1001 = 3 }")
	gates := []*running{reserves(t, r, 0, shop.setting(), "stock.detail = \"exact\"", sale),
		reserves(t, r, 0, shop.setting(), "stock.detail = \"exact\"", sale)}
	early := &buyer{user: "7"}
	defer early.leave()
	for _, g := range gates {
		soon(t, "the stock is written", func() bool {
			s, _ := g.shows("/1001")
			return s.Closes != 0 &&
				s.Phase == "waiting"
		})
		s, a := g.shows("/1001")
		if at := s.Time + s.OpensIn; s.Opens != begins.UnixMilli() || at != s.Opens ||
			a.header.Get("Cache-Control") != "public, max-age=1" {
			t.Errorf("before the start: %+v %v", s, a.header)
		}
		if status, reason := early.buy(g.front); status != 403 || reason != "not_started" {
			t.Errorf("an early order: %d %s", status, reason)
		}
	}
	if shop.booked() != 0 || ledgerOf(t, r, "1001") != (account{3, 0, 0}) {
		t.Errorf("before the start: %d orders, ledger %+v", shop.booked(), ledgerOf(t, r, "1001"))
	}
	begins = time.Now().Add(2 * time.Second)
	for _, g := range gates {
		g.rewrite(g.change(sale, saleOf(begins, "stock = { 1001 = 3 }")), true)
	}
	for _, g := range gates {
		soon(t, "the sale begins", func() bool { s, _ := g.shows("/1001"); return s.Phase == "open" })
	}
	if status, reason := early.buy(gates[1].front); status != 200 {
		t.Errorf("who was early has no right any more: %d %s", status, reason)
	}
	late := &buyer{user: "8"}
	defer late.leave()
	late.buy(gates[0].front)
	soon(t, "what is left is shown everywhere", func() bool {
		for _, g := range gates {
			if s, _ := g.shows("/1001"); s.Free == nil || *s.Free != 1 || s.Left != "few" || s.Phase != "open" {
				return false
			}
		}
		return true
	})
	third := gates[0].again(t)
	soon(t, "who comes later shows the same", func() bool {
		s, _ := third.shows("/1001")
		return s.Free != nil &&
			*s.Free == 1
	})
	if a := ledgerOf(t, r, "1001"); a.total != 3 {
		t.Errorf("ledger %+v after an instance came later", a)
	}
}

func TestSchedule_LedgerMissingAfterTheStartIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	g := reserves(t, r, 0, shop.setting(), saleOf(time.Now().Add(-time.Minute), "stock = { 1001 = 3 }"))
	soon(t, "an operator is told",
		func() bool { return strings.Contains(g.log.String(), "stock is written before the start alone") })
	g.order("1001").must(t, 404, "unknown_sku")
	if n := r.Client.Exists(t.Context(), "sluice:shop:{1001}:s").Val(); n != 0 {
		t.Error("a ledger was made")
	}
}

// ordering has two clients of each gate order without end, each order by another user, until it is told to stop. Client
// c asks gate c/2, one thing at a time.
func ordering(t *testing.T, gates []*running, heard func(c int, status int, reason string)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var serial atomic.Int64
	for c := range 2 * len(gates) {
		all.Go(func() {
			b := &buyer{}
			defer b.leave()
			for ctx.Err() == nil {
				b.user = fmt.Sprint("u", serial.Add(1))
				status, reason := b.buy(gates[c/2].front)
				heard(c, status, reason)
				time.Sleep(time.Millisecond) // else few clients take the whole machine
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

func TestOverride_PauseUnderLoadStopsEveryInstanceAndResumeGoesOn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ gate, pause, resume string }{
		{"check", "sale pause rush", "sale resume rush"},
		{"reserve", "stock pause 1001", "stock resume 1001"},
	} {
		t.Run(tt.gate+" "+tt.pause, func(t *testing.T) {
			r := redistest.Start(t)
			shop := open(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
			r.Client.Set(t.Context(), key, 1_000_000, 0)
			settings := []string{redisAt(r), boundless, shop.setting(), saleOf(time.Now().Add(-time.Minute)),
				strings.Replace(reserveRoutes, `gate = "reserve"`, `gate = "`+tt.gate+`"`, 1)}
			var gates []*running
			for range 3 {
				gates = append(gates, gate(t, settings...))
			}
			if tt.gate == "reserve" {
				ok(t, "stock", "set", "--config", gates[0].file, "1001", "1000000")
			}
			var now [6]atomic.Value
			var heard [6]atomic.Int64 // answers
			stop := ordering(t, gates, func(c, status int, reason string) {
				now[c].Store(fmt.Sprint(status, " ", reason))
				heard[c].Add(1)
			})
			defer stop()
			all := func(want string) func() bool {
				return func() bool {
					for c := range now {
						if now[c].Load() != want {
							return false
						}
					}
					return true
				}
			}
			operate := func(what string) {
				args := strings.Fields(what)
				ok(t, append(args[:2:2], "--config", gates[0].file, args[2])...)
			}
			soon(t, "orders go on everywhere", all("200 "))
			operate(tt.pause)
			soon(t, "all instances pause", all("503 paused")) // each client's: no order is under way
			arrived := shop.arrivals.Load()
			for c := range heard {
				was := heard[c].Load()
				soon(t, "a client has asked again", func() bool { return heard[c].Load() >= was+50 })
			}
			if n := shop.arrivals.Load() - arrived; n != 0 {
				t.Errorf("%d orders reached the shop after all had paused", n)
			}
			if s, _ := gates[2].shows("/1001"); s.Phase != "paused" {
				t.Errorf("a page is told %+v", s)
			}
			operate(tt.resume)
			soon(t, "orders go on everywhere", all("200 "))
		})
	}
}

func TestStockStatus_IsAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	shop := open(t, sells(r.Client))
	r.Client.Set(t.Context(), key, 50, 0)
	g := gate(t, shop.setting(), redisAt(r), unlimited, `stock.poll_interval = "1s"`, `stock.sold_out_ttl = "1h"`)
	s, a := g.shows("?sku=1001&sku=invented")
	if len(s.Stock) != 2 || s.Stock[0].Phase != "open" || s.Stock[0].Left != "many" || s.Stock[0].Free != nil ||
		s.Stock[1].Phase != "unknown" {
		t.Errorf("%+v", s)
	}
	if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Vary") != "Origin" {
		t.Errorf("%v", a.header)
	}
	_, one := g.shows("/1001")
	if _, again := g.shows("/1001", "If-None-Match: "+one.header.Get("ETag")); again.status != 304 ||
		again.header.Get("Sluice-Time") == "" {
		t.Errorf("asked again: %d %v", again.status, again.header)
	}
	r.Client.Set(t.Context(), key, 5, 0)
	soon(t, "few are left",
		func() bool {
			s, _ := g.shows("/1001", "If-None-Match: "+one.header.Get("ETag"))
			return s.Left == "few"
		})
	const questions = 3000
	reads := func() int64 { return r.Calls("get") + r.Calls("mget") } // of stock; the gate itself makes one a second
	before := reads()
	for range questions {
		g.shows("/1001")
	}
	if n := reads() - before; n > questions/4 || before == 0 {
		t.Errorf("the stock was read %d times, and %d during %d questions", before, n, questions)
	}
	for _, bad := range []string{"/", "/a%20b", "", "?sku=", "?x=1", "?" + strings.Repeat("sku=1&", 21)} {
		if _, a := g.shows(bad); a.status != 400 {
			t.Errorf("%s: %d", bad, a.status)
		}
	}
	if shop.arrivals.Load() != 0 {
		t.Error("the shop was asked")
	}
}
