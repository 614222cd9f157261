package settler

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/config"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

const webhookKey = "a key of more than sixteen bytes"

func TestWebhook_GetsEveryChangeInOrder(t *testing.T) {
	eachDatabase(t, func(s *site) {
		s.set("a", 50)
		s.buy("a", 0, 20)
		s.need(s.settler(settle.WebhookTarget).Drain(s.Context(), "a"))
		if got := s.receiver.got("a"); !slices.Equal(got, want("a", 20)) {
			s.Errorf("got %q", got)
		}
		last := s.receiver.accepted[len(s.receiver.accepted)-1]
		if end := s.position(settle.WebhookTarget, "a"); last.Position != end.String() || end.Ver != 41 || last.Total != 50 ||
			last.Sold != 20 || last.State != "on" || last.Changes[0].User != `\x75ff` || last.Changes[0].Time == 0 {
			s.Errorf("the last request is %+v, the cursor %s", last, end)
		}
		for _, m := range s.receiver.accepted {
			if len(m.Changes) > 3 {
				s.Errorf("%d changes in a request of at most 3", len(m.Changes))
			}
		}
	})
}

// Settlers are stopped anywhere, also between a response and the move of the cursor.
func TestWebhook_RestartsLoseNothing(t *testing.T) {
	eachDatabase(t, func(s *site) {
		const orders = 120
		skus := []string{"a", "b"}
		var selling sync.WaitGroup
		for _, sku := range skus {
			s.set(sku, orders)
			selling.Go(func() { s.buy(sku, 0, orders) })
		}
		stops, restarts := []func(){s.run(settle.WebhookTarget), s.run(settle.WebhookTarget)}, 0
		stop := s.run(settle.OrdersTarget)
		s.soon("everything was sent", func() bool {
			if restarts < 100 { // then they may end, on a machine so busy that none came far
				stops[restarts%2]()
				stops[restarts%2] = s.run(settle.WebhookTarget)
				restarts++
				time.Sleep(time.Duration(restarts*7%40) * time.Millisecond) // it works before the next one is stopped
			}
			return s.position(settle.WebhookTarget, "a").Ver == 2*orders+1 &&
				s.position(settle.WebhookTarget, "b").Ver == 2*orders+1
		})
		selling.Wait()
		stop()
		for _, sku := range skus {
			if got := once(s.receiver.got(sku)); !slices.Equal(got, want(sku, orders)) {
				s.Errorf("%s: %d changes after %d restarts: %q", sku, len(got), restarts, got)
			}
		}
		s.Logf("%d restarts, %d and %d changes sent", restarts, len(s.receiver.got("a")), len(s.receiver.got("b")))
	})
}

// What was sent and not noted, as after kill -9, is sent again when the lease has ended.
func TestWebhook_LeaseOfADeadSettlerEnds(t *testing.T) {
	eachDatabase(t, func(s *site) {
		s.set("a", 5)
		s.buy("a", 0, 1)
		b := settle.Batch{SKU: "a"}
		hooks := s.store.For(settle.WebhookTarget)
		const ttl = 700 * time.Millisecond
		lease, err := hooks.Lease(s.Context(), b, 0, ttl)
		s.need(err)
		begin := time.Now()
		if longer, err := hooks.Lease(s.Context(), b, lease, ttl); err != nil || longer <= lease {
			s.Errorf("the lease %d was prolonged to %d, %v", lease, longer, err)
		}
		s.need(s.settler(settle.WebhookTarget).Drain(s.Context(), "a"))
		if took := time.Since(begin); took < ttl-100*time.Millisecond { // the clocks of databases are coarse
			s.Errorf("another settler has sent after %v", took)
		}
		if err := hooks.Advance(s.Context(), b, lease); err == nil {
			s.Error("the dead settler moves the cursor")
		}
		if got := s.receiver.got("a"); !slices.Equal(got, want("a", 1)) {
			s.Errorf("got %q", got)
		}
	})
}

func TestWebhook_TrimmingWaitsForIt(t *testing.T) {
	eachDatabase(t, func(s *site) {
		s.receiver.respond(func(message) (int, string) { return 500, "" })
		s.set("a", 50)
		s.buy("a", 0, 10)
		orders := s.settler(settle.OrdersTarget)
		s.need(orders.Drain(s.Context(), "a"))
		all := s.entries("a")
		if s.position(settle.OrdersTarget, "a").Ver != 21 || len(all) != 21 {
			s.Fatalf("orders at %s, %d entries are left: want all 21", s.position(settle.OrdersTarget, "a"), len(all))
		}
		if err := s.settler(settle.WebhookTarget).Drain(s.Context(), "a"); err == nil {
			s.Error("a 500 is no error")
		}
		// Another consumer of the stream has everything.
		_, err := s.ledger.Acknowledge(s.Context(), "a", all[20].Position.String())
		s.need(err)
		if n := len(s.entries("a")); n != 21 {
			s.Errorf("%d entries are left: want 21", n)
		}
		s.receiver.respond(nil)
		s.need(s.settler(settle.WebhookTarget).Drain(s.Context(), "a"))
		if got := s.receiver.got("a"); !slices.Equal(got, want("a", 10)) {
			s.Errorf("got %q", got)
		}
		if n := len(s.entries("a")); n != 1 {
			s.Errorf("%d entries are left: want the one at both cursors", n)
		}
		s.buy("a", 10, 3) // now the webhook is ahead
		s.need(s.settler(settle.WebhookTarget).Drain(s.Context(), "a"))
		if left := s.entries("a"); left[0].Position != s.position(settle.OrdersTarget, "a") || len(left) != 7 {
			s.Errorf("%d entries are left: want those from the orders' cursor on", len(left))
		}
		s.need(s.settler(settle.OrdersTarget).Drain(s.Context(), "a"))
		if n := len(s.entries("a")); n != 1 {
			s.Errorf("%d entries are left: want 1", n)
		}
	})
}

// A target that is configured later begins at the oldest entry; orders that are settled without it are trimmed.
func TestWebhook_ConfiguredLaterBeginsAtTheOldestEntry(t *testing.T) {
	s := newSite(t, sqlite(t))
	with := s.store
	without, err := sqlstore.Open(sqlstore.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "other.db")})
	s.need(err)
	defer without.Close()
	_, err = without.Migrate(t.Context())
	s.need(err)
	s.store = without
	s.set("a", 50)
	s.buy("a", 0, 5)
	s.need(s.settler(settle.OrdersTarget).Drain(t.Context(), "a"))
	if n := len(s.entries("a")); n != 1 {
		t.Fatalf("%d entries are left: want 1, there is no webhook", n)
	}
	s.buy("a", 5, 2)
	s.store = with
	var text strings.Builder
	worker, err := settle.New(s.stream, newWebhook(s.store, webhookOptions{
		URL: s.receiver.URL, Key: []byte(webhookKey), Batch: 100, Timeout: s.timeout,
	}), settle.Options{Target: settle.WebhookTarget, Batch: 100, Log: slog.New(slog.NewTextHandler(&text, nil))})
	s.need(err)
	s.need(worker.Drain(t.Context(), "a"))
	if got := s.receiver.got("a"); !slices.Equal(got, want("a", 7)[9:]) {
		t.Errorf("got %q", got)
	}
	ledgers, err := s.stream.Ledgers(t.Context(), []string{"a"})
	s.need(err)
	c, _, err := s.store.For(settle.WebhookTarget).Cursor(t.Context(), "a")
	if err != nil || c.Born != ledgers[0].Born || c.Position != ledgers[0].Position {
		t.Errorf("the cursor is %+v, the ledger %+v", c, ledgers[0])
	}
	if !strings.Contains(text.String(), "the webhook begins at the oldest change") {
		t.Errorf("the log does not say it: %s", &text)
	}
}

// The receiver is down, and then stands still: orders are settled meanwhile, and nothing is lost.
func TestWebhook_DeadReceiverHoldsUpNothingElse(t *testing.T) {
	eachDatabase(t, func(s *site) {
		var begun, ended atomic.Int32
		slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body) // only then it is noticed that the settler gives up
			begun.Add(1)
			<-q.Context().Done()
			ended.Add(1)
		}))
		s.Cleanup(slow.Close) // after stop
		url := s.receiver.URL
		s.receiver.URL, s.timeout = slow.URL, time.Minute
		s.set("a", 50)
		stop := s.run(settle.WebhookTarget)
		s.buy("a", 0, 3)
		s.soon("the request hangs", func() bool { return begun.Load() == 1 })
		s.need(s.settler(settle.OrdersTarget).Drain(s.Context(), "a"))
		if ended.Load() != 0 || s.position(settle.OrdersTarget, "a").Ver != 7 {
			s.Errorf("after %d requests the orders are at %s", ended.Load(), s.position(settle.OrdersTarget, "a"))
		}
		stop()
		s.receiver.URL = url
		s.need(s.settler(settle.WebhookTarget).Drain(s.Context(), "a"))
		if got := s.receiver.got("a"); !slices.Equal(got, want("a", 3)) {
			s.Errorf("got %q", got)
		}
	})
}

// 429 holds up every SKU until Retry-After has passed.
func TestWebhook_ObeysRetryAfter(t *testing.T) {
	s := newSite(t, sqlite(t))
	s.set("a", 9)
	s.set("b", 9)
	s.buy("a", 0, 1)
	s.buy("b", 0, 1)
	asked := 0
	s.receiver.respond(func(message) (int, string) {
		if asked++; asked > 1 {
			return 200, ""
		}
		return 429, "1"
	})
	stop := s.run(settle.WebhookTarget)
	s.soon("both are sent", func() bool { return len(s.receiver.got("a")) == 2 && len(s.receiver.got("b")) == 2 })
	stop()
	times := s.receiver.times()
	// The other SKU may have been on its way already.
	if wait := times[len(times)-1].Sub(times[0]); wait < 900*time.Millisecond {
		t.Errorf("the last request came %v after the 429", wait)
	}
}

// A change that the receiver rejects is sent again and again, and holds up no other SKU. Redirects are not followed.
func TestWebhook_RejectedChangeIsKept(t *testing.T) {
	for _, status := range []int{http.StatusUnprocessableEntity, http.StatusFound} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s := newSite(t, sqlite(t))
			s.minWait = 50 * time.Millisecond
			s.set("bad", 9)
			s.set("good", 9)
			s.buy("bad", 0, 1)
			s.buy("good", 0, 1)
			rejected := 0
			s.receiver.respond(func(m message) (int, string) {
				if m.SKU != "bad" || rejected == 3 {
					return 201, ""
				}
				rejected++
				return status, ""
			})
			stop := s.run(settle.WebhookTarget)
			s.soon("the other SKU is sent", func() bool { return len(s.receiver.got("good")) == 2 })
			if got := s.receiver.got("bad"); len(got) != 0 {
				t.Errorf("got %q", got)
			}
			s.soon("the rejected one is sent", func() bool { return len(s.receiver.got("bad")) == 2 })
			stop()
			times := s.receiver.times()
			if took := times[len(times)-1].Sub(times[0]); took < 350*time.Millisecond { // 50 + 100 + 200 ms
				t.Errorf("three faults took %v", took)
			}
		})
	}
}

// An entry that cannot be read is sent as it is, and what follows is sent too.
func TestWebhook_SendsWhatCannotBeRead(t *testing.T) {
	s := newSite(t, sqlite(t))
	s.set("a", 9)
	s.buy("a", 0, 1)
	all := s.entries("a")
	next := all[len(all)-1].Position
	next.Ver++
	s.server.Client.Do(t.Context(), "XADD", "sluice:shop:{a}:q", next.String(), "op", "confirm", "total", "9", "held",
		"0",
		"sold", "1", "state", "on", "at", "1", "r:bad", "Q|what\xff")
	next.Ver++
	s.server.Client.Do(t.Context(), "XADD", "sluice:shop:{a}:q", next.String(), "op", "confirm", "total", "9", "held",
		"0",
		"sold", "2", "state", "on", "at", "1", "r:next", "C|1|0|u")
	s.need(s.settler(settle.WebhookTarget).Drain(t.Context(), "a"))
	n := len(s.receiver.accepted)
	if m := s.receiver.accepted[n-2]; !strings.Contains(m.Unreadable, `"r:bad" "Q|what\xff"`) || len(m.Changes) != 0 {
		t.Errorf("the request is %+v", m)
	}
	if m := s.receiver.accepted[n-1]; m.Position != next.String() || m.Changes[0].Serial != "next" {
		t.Errorf("the next request is %+v", m)
	}
}

// A SKU is moved while its orders are sent whole: what the new home sends then is newer than the rest of them.
func TestWebhook_HomeThatWasLeftSendsNoMore(t *testing.T) {
	s := newSite(t, sqlite(t))
	s.set("a", 500)
	s.buy("a", 0, 2*requestChanges)
	records, err := s.stream.Records(t.Context(), "a")
	s.need(err)
	before, err := s.stream.Ledgers(t.Context(), []string{"a"})
	s.need(err)
	b := settle.Batch{SKU: "a", Whole: true, Records: slices.Collect(maps.Values(records)),
		To: settle.Cursor{Position: before[0].Position, Numbers: before[0].Numbers, Born: before[0].Born}}
	here := &Settlement{Stream: s.stream, Store: s.store, Ledgers: NewLedgers(s.ledger, "main", time.Minute),
		home: settle.Home{Name: "main", All: []string{"main", "east"}, Of: func(string) string { return "main" }}}
	c := &config.Config{}
	c.Settle.Webhook = config.SettleWebhook{URL: s.receiver.URL, Key: webhookKey}
	_, target, err := here.webhook(c, slog.New(slog.DiscardHandler))
	s.need(err)
	moved := func(home string) {
		if err := s.server.Client.HSet(t.Context(), s.stream.Name.SKUKey("a", "s"), "home", home).Err(); err != nil {
			t.Error(err)
		}
	}
	s.receiver.respond(func(message) (int, string) {
		moved("1 east")
		return 200, ""
	})
	if _, err := target.Settle(t.Context(), b); !errors.Is(err, settle.ErrElsewhere) || len(s.receiver.accepted) != 1 {
		t.Errorf("%d requests are sent, %v: want the one during which the SKU was moved", len(s.receiver.accepted), err)
	}
	s.receiver.respond(nil)
	moved("2 main")
	if _, err := target.Settle(t.Context(), b); err != nil || len(s.receiver.accepted) != 3 {
		t.Errorf("back again: %d requests are sent, %v: want 2 more", len(s.receiver.accepted), err)
	}
}

// Where changes are missing all orders are sent, as they are now.
func TestWebhook_LostChangesAreMadeGoodByTheWholeLedger(t *testing.T) {
	s := newSite(t, sqlite(t))
	s.set("a", 50)
	s.buy("a", 0, 2)
	s.need(s.settler(settle.WebhookTarget).Drain(t.Context(), "a"))
	s.buy("a", 2, 5)
	s.server.Client.Do(t.Context(), "XTRIM", "sluice:shop:{a}:q", "MAXLEN", 2)
	before := len(s.receiver.accepted)
	s.need(s.settler(settle.WebhookTarget).Drain(t.Context(), "a"))
	orders := 0
	for _, m := range s.receiver.accepted[before:] {
		if orders += len(m.Changes); !m.Whole || len(m.Changes) > 3 {
			t.Errorf("the request is %+v", m)
		}
		for _, c := range m.Changes {
			if c.Status != "sold" || c.Version != 15 {
				t.Errorf("the order is %+v", c)
			}
		}
	}
	if orders != 7 {
		t.Errorf("%d orders are sent: want all 7", orders)
	}
}
