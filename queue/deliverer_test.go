package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// bench is a deliverer over a Redis in this process, and an upstream of the test's own.
type bench struct {
	*Deliverer
	store *ledger.Store
	mu    sync.Mutex
	sent  []string                                                                  // SKU and serial of each attempt
	reply func(attempt int, req *upstream.Request) (status int, o upstream.Outcome) // nil = 201
	says  func(attempt int, h *fasthttp.ResponseHeader)                             // nil = no more than the status
	knows ledger.OrderStatus
}

func (b *bench) Ask(context.Context, string, string) (ledger.OrderStatus, error) {
	if b.knows == ledger.OrderUnknown {
		return b.knows, errors.New("away")
	}
	return b.knows, nil
}

func (b *bench) send(req *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
	b.mu.Lock()
	h := &req.HTTP.Header
	b.sent = append(b.sent, string(h.Peek("Sluice-Sku"))+" "+string(h.Peek("Idempotency-Key"))+" "+
		string(h.Peek("Sluice-Attempt")))
	n := len(b.sent)
	b.mu.Unlock()
	status, outcome := 201, upstream.Answered
	if b.reply != nil {
		status, outcome = b.reply(n, req)
	}
	resp.SetStatusCode(status)
	if b.says != nil {
		b.says(n, &resp.Header)
	}
	return outcome
}

func (b *bench) attempts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.sent)
}

// open starts a deliverer; change may be nil.
func open(t *testing.T, b *bench, change func(*Options)) {
	b.store = storetest.Ledger(t)
	rules := proxy.OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"4xx"}}
	o := Options{Store: b.store, Send: b.send, Outcome: rules.Outcome, Ask: b.Ask, Fenced: true,
		MaxInFlight: 4, Attempts: 3, Timeout: time.Second,
		Grace: time.Second, Keep: time.Hour, Settled: func(string, string, ledger.Op, ledger.StockVersion) {},
		Settle: func(string, string, ledger.Op) {}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	b.Deliverer = New(o)
	t.Cleanup(func() { b.Close(context.Background()) })
}

// order has an order of sku wait.
func (b *bench) order(t *testing.T, sku, serial string) {
	t.Helper()
	if _, ok, _ := b.store.ReadStock(t.Context(), sku); !ok {
		if _, err := b.store.SetTotal(t.Context(), sku, 1000, 0); err != nil {
			t.Fatal(err)
		}
	}
	m := proxy.QueuedRequest{Method: "POST", Target: "/order", Fields: []proxy.KeptField{{Name: "Host"}}}
	codes, now := make([]ledger.Code, 1), time.Now()
	_, err := b.store.Reserve(t.Context(), sku, 0, now.UnixMilli(), now.Add(time.Hour).UnixMilli(), []ledger.Item{{
		Serial: serial, Quantity: 1, Request: ledger.NewRequest(now.Add(time.Minute).UnixMilli(), m.Text())}}, codes)
	if err != nil || codes[0] != ledger.Held {
		t.Fatal(codes, err)
	}
	b.Accepted(sku)
}

// sends waits for the first attempt, in virtual time.
func (b *bench) sends(t *testing.T) {
	t.Helper()
	for begun := time.Now(); b.attempts() == "[]"; {
		if time.Since(begun) > time.Minute {
			t.Fatal("nothing is sent")
		}
		time.Sleep(time.Millisecond) // in virtual time, until the loop's condition holds
	}
}

func (b *bench) state(t *testing.T, sku, serial string) State {
	t.Helper()
	s, _, err := b.Find(t.Context(), sku, serial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDeliverer_SendsAgainOnlyWhatIsNowhere(t *testing.T) {
	for what, c := range map[string]struct {
		knows   ledger.OrderStatus
		change  func(*Options)
		outcome upstream.Outcome // of the first attempt
		sent    string
		status  ledger.Status
		where   ledger.Where
	}{
		"not sent":           {ledger.OrderNotFound, nil, upstream.NotSent, "[1 a 1 1 a 1]", 'C', ""},
		"unknown, nowhere":   {ledger.OrderNotFound, nil, upstream.Broken, "[1 a 1 1 a 2]", 'C', ""},
		"unknown, it exists": {ledger.OrderExists, nil, upstream.Broken, "[1 a 1]", 'C', ""},
		"unknown, no answer": {ledger.OrderUnknown, nil, upstream.TimedOut, "[1 a 1]", 'H', ledger.Asking},
		"unknown, no fence": {ledger.OrderNotFound, func(o *Options) { o.Fenced = false }, upstream.TimedOut, "[1 a 1]",
			'H', ledger.ForAPerson},
		"unknown, cancelled": {ledger.OrderNotFound, func(o *Options) { o.Fenced, o.Cancels = false, true },
			upstream.Broken, "[1 a 1]", 'X', ""},
		"unknown, no one": {0, func(o *Options) { o.Ask = nil }, upstream.Broken, "[1 a 1]", 'H', ledger.ForAPerson},
		"unknown, by key": {0, func(o *Options) { o.Ask, o.ByKey = nil, true }, upstream.Broken, "[1 a 1 1 a 2]",
			'C', ""},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{knows: c.knows}
				b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
					if n == 1 {
						return 0, c.outcome
					}
					return 201, upstream.Answered
				}
				open(t, b, c.change)
				b.order(t, "1", "a")
				time.Sleep(30 * time.Second)
				got := b.state(t, "1", "a")
				if b.attempts() != c.sent || got.Status != c.status || got.Where != c.where {
					t.Errorf("sent %s, status %c, %q; want %s, %c, %q", b.attempts(), got.Status, got.Where, c.sent, c.status,
						c.where)
				}
			})
		})
	}
}

func TestDeliverer_WaitsUntilTheFenceHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{knows: ledger.OrderNotFound}
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return 0, upstream.Broken }
		open(t, b, nil)
		b.order(t, "1", "a")
		b.sends(t)
		time.Sleep(1900 * time.Millisecond) // a second of the attempt, and a second of grace
		if got := b.attempts(); got != "[1 a 1]" {
			t.Errorf("sent %s", got)
		}
		time.Sleep(time.Minute)
		if got := b.attempts(); got != "[1 a 1 1 a 2 1 a 3]" || b.state(t, "1", "a").Where != ledger.ForAPerson {
			t.Errorf("sent %s: want three attempts, and then a person", got)
		}
	})
}

func TestDeliverer_GivesEachSKUItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{knows: ledger.OrderNotFound}
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) {
			time.Sleep(100 * time.Millisecond)
			return 201, upstream.Answered
		}
		open(t, b, func(o *Options) { o.MaxInFlight = 2 })
		for i := range 40 {
			b.order(t, "large", fmt.Sprint("l", i))
		}
		time.Sleep(1050 * time.Millisecond) // attempts end at each 100 ms, and nothing is looked at in these moments
		b.order(t, "small", "s")
		time.Sleep(400 * time.Millisecond)
		if got := b.state(t, "small", "s"); got.Status != ledger.StatusSold {
			t.Errorf("it waits behind another SKU: %+v, sent %s", got, b.attempts())
		}
	})
}

// between is a store where an order is accepted after a question has been answered, and before the answer is taken in.
type between struct {
	Store
	during string // the question
	accept func()
}

func (s *between) Depths(ctx context.Context, skus []string) ([]ledger.Depth, error) {
	d, err := s.Store.Depths(ctx, skus)
	if s.during == "Depths" && d[0] == (ledger.Depth{}) {
		s.accept()
	}
	return d, err
}

func (s *between) HandOut(ctx context.Context, sku string, c ledger.HandOutCall) (ledger.HandedOut, error) {
	h, err := s.Store.HandOut(ctx, sku, c)
	if s.during == "HandOut" {
		s.accept()
	}
	return h, err
}

func TestDeliverer_SendsAnOrderAtOnceThatIsAcceptedDuringAQuestion(t *testing.T) {
	for _, during := range []string{"Depths", "HandOut"} {
		synctest.Test(t, func(t *testing.T) {
			b, accepted := &bench{}, make(chan struct{})
			open(t, b, func(o *Options) {
				o.Store = &between{o.Store, during, sync.OnceFunc(func() {
					b.order(t, "1", "b")
					close(accepted)
				})}
			})
			b.order(t, "1", "a")
			<-accepted
			time.Sleep(100 * time.Millisecond) // in virtual time; a deliverer searches each second
			if got := b.state(t, "1", "b"); got.Status != ledger.StatusSold {
				t.Errorf("accepted during %s: %+v, sent %s", during, got, b.attempts())
			}
		})
	}
}

func TestDeliverer_ExpiredOrderIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{}
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return 0, upstream.NotSent }
		open(t, b, nil)
		b.order(t, "1", "a")
		time.Sleep(2 * time.Minute)
		if got := b.state(t, "1", "a"); got.Status != ledger.StatusReleased || got.Answer.State != proxy.OrderExpired {
			t.Errorf("%+v", got)
		}
	})
}

func TestPace_HalvesOnceForOrdersThatWereUnderWayTogether(t *testing.T) {
	now := time.Now()
	p := newPace(32, now)
	for range 20 {
		p.unavailable(now, 2*time.Second)
	}
	if got := p.now(now); got != 16 {
		t.Errorf("limit %d", got)
	}
	if got := p.takePause(); got != 2*time.Second || p.takePause() != 0 {
		t.Errorf("pause %v", got)
	}
	if got := p.now(now.Add(3 * time.Second)); got != 19 {
		t.Errorf("limit %d after 3 s", got)
	}
	for i := range 20 {
		p.unreachable(now.Add(time.Duration(10+2*i) * time.Second))
	}
	if got := p.takePause(); got != lastPause || p.limit < 1 {
		t.Errorf("pause %v, limit %v", got, p.limit)
	}
}

func TestPace_TooManyRequestsOfSomeClientsSlowDownNoOther(t *testing.T) {
	now := time.Now()
	p := newPace(32, now)
	for range 100 {
		p.tooMany(now, time.Minute)
		p.tooMany(now, time.Minute)
		p.taken()
	}
	if p.takePause() != 0 || p.now(now) != 32 {
		t.Errorf("limit %v, though every third order is taken", p.limit)
	}
}

func TestPace_TooManyRequestsOfAllSlowDownMoreAndMore(t *testing.T) {
	now := time.Now()
	p := newPace(32, now)
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		for range mostRecent {
			if pause := p.takePause(); pause != 0 {
				t.Fatalf("%v before most answers were 429", pause)
			}
			p.tooMany(now, 10*time.Second)
		}
		if pause := p.takePause(); pause != want*time.Second {
			t.Errorf("pause %v, want %d s", pause, want)
		}
		now = now.Add(halveEvery)
	}
	if p.limit != 1 {
		t.Errorf("limit %v", p.limit)
	}
	p.taken()
	for range mostRecent {
		p.tooMany(now, 10*time.Second)
	}
	if pause := p.takePause(); pause != rushPause {
		t.Errorf("pause %v after an order was taken", pause)
	}
	for range mostRecent {
		p.tooMany(now, 0)
	}
	if pause := p.takePause(); pause != 0 {
		t.Errorf("pause %v, though the upstream names none", pause)
	}
}

func TestDeliverer_OpenOrderStaysHeld(t *testing.T) {
	for _, second := range []int{0, 401, 409, 429} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{}
			b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
				switch {
				case n == 1:
					return 0, upstream.Broken // the upstream has made it
				case second == 0:
					return 0, upstream.NotSent
				}
				return second, upstream.Answered
			}
			open(t, b, func(o *Options) { o.Ask, o.ByKey = nil, true })
			b.order(t, "1", "a")
			time.Sleep(4 * time.Second)
			if done, err := b.Cancel(t.Context(), "1", "a"); done != ledger.TooLate || err != nil {
				t.Errorf("then %d: cancel %v, %v", second, done, err)
			}
			got, begun := b.state(t, "1", "a"), time.Now()
			for got.Where != ledger.ForAPerson && time.Since(begun) < 5*time.Minute {
				time.Sleep(time.Second) // in virtual time, until a person is asked for
				got = b.state(t, "1", "a")
			}
			if got.Status != ledger.StatusHeld || got.Where != ledger.ForAPerson {
				t.Errorf("then %d: %+v, sent %s", second, got, b.attempts())
			}
		})
	}
}

func TestDeliverer_BusyUpstreamMakesNoOrderStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{knows: ledger.OrderNotFound}
		b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
			if n <= 5 {
				return 429, upstream.Answered
			}
			return 201, upstream.Answered
		}
		open(t, b, nil)
		b.order(t, "1", "a")
		time.Sleep(40 * time.Second)
		if got := b.state(t, "1", "a"); got.Status != ledger.StatusSold || b.attempts() !=
			"[1 a 1 1 a 1 1 a 1 1 a 1 1 a 1 1 a 1]" {
			t.Errorf("%+v, sent %s", got, b.attempts())
		}
	})
}

// "released" after the deadline of an attempt speaks of that attempt, as the status alone does: the shop rejects work
// that comes too late. A shop that has no stock would reject the next attempt, too.
func TestDeliverer_AttemptThatIsReleasedTooLateWaitsAgain(t *testing.T) {
	for word, want := range map[string]string{
		"": "C [1 a 1 1 a 2]", "released": "C [1 a 1 1 a 2]", "sold-out": "X [1 a 1]",
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{knows: ledger.OrderNotFound}
			b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
				if n > 1 {
					return 201, upstream.Answered
				}
				time.Sleep(1500 * time.Millisecond) // in virtual time: the deadline of the first attempt has passed
				return 409, upstream.Answered
			}
			b.says = func(n int, h *fasthttp.ResponseHeader) {
				if n == 1 && word != "" {
					h.Set(proxy.OrderHeader, word)
				}
			}
			open(t, b, nil)
			b.order(t, "1", "a")
			time.Sleep(10 * time.Second) // in virtual time: longer than all attempts
			if got := string(b.state(t, "1", "a").Status) + " " + b.attempts(); got != want {
				t.Errorf("Sluice-Order %q: %s, want %s", word, got, want)
			}
		})
	}
}

// Retry-After is any number of seconds, or a date (RFC 9110, section 10.2.3). What it puts off for longer than the
// order may wait expires.
func TestDeliverer_PutsAnOrderOffForRetryAfter(t *testing.T) {
	date := func(after time.Duration) string {
		return time.Now().Add(after).UTC().Format(http.TimeFormat) // when the test's clock begins
	}
	for name, c := range map[string]struct {
		says func() string
		sent int // within 20 s
		want ledger.Status
	}{
		"seconds":       {func() string { return "30" }, 1, 'C'},
		"a day":         {func() string { return "86400" }, 1, 'X'},
		"beyond 64 bit": {func() string { return "99999999999999999999999" }, 1, 'X'},
		"a date":        {func() string { return date(30 * time.Second) }, 1, 'C'},
		"a past date":   {func() string { return date(-time.Hour) }, 2, 'C'},
		"none":          {func() string { return "soon" }, 2, 'C'},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, text := &bench{}, c.says()
				b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
					if n == 1 {
						return 429, upstream.Answered
					}
					return 201, upstream.Answered
				}
				b.says = func(_ int, h *fasthttp.ResponseHeader) { h.Set("Retry-After", text) }
				open(t, b, nil)
				b.order(t, "1", "a")
				b.sends(t)
				time.Sleep(20 * time.Second) // in virtual time: attempts are counted within it
				if got := len(strings.Fields(b.attempts())) / 3; got != c.sent {
					t.Errorf("sent %d times within 20 s, want %d", got, c.sent)
				}
				time.Sleep(2 * time.Minute) // in virtual time: longer than any order waits
				if got := b.state(t, "1", "a").Status; got != c.want {
					t.Errorf("status %c, want %c", got, c.want)
				}
			})
		})
	}
}

// What the shop says of its stock is told, whatever becomes of the order.
func TestDeliverer_TellsThatTheShopIsSoldOut(t *testing.T) {
	for word, want := range map[string]string{"sold-out": "7", "released": ""} {
		synctest.Test(t, func(t *testing.T) {
			b, said := &bench{}, make(chan string, 1) // told of twice, it would wait for ever
			b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return 409, upstream.Answered }
			b.says = func(_ int, h *fasthttp.ResponseHeader) { h.Set(proxy.OrderHeader, word) }
			open(t, b, func(o *Options) { o.SoldOut = func(sku string) { said <- sku } })
			b.order(t, "7", "a")
			time.Sleep(time.Second) // in virtual time: longer than an attempt
			got := ""
			select {
			case got = <-said:
			default:
			}
			if got != want {
				t.Errorf("%s: told of %q, want %q", word, got, want)
			}
		})
	}
}

// The upstream cannot be asked, and nothing but the log says why.
func TestDeliverer_SaysSeldomThatTheUpstreamCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := &bench{knows: ledger.OrderUnknown}, &testkit.Log{}
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return 0, upstream.Broken }
		open(t, b, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
		for i := range 8 {
			b.order(t, "1", fmt.Sprint(i))
		}
		time.Sleep(9 * time.Second) // in virtual time: less than from one line to the next
		if got := log.Count("level=WARN"); got != 1 {
			t.Errorf("%d lines for 8 orders within 9 s:\n%s", got, log)
		}
	})
}

// An attempt that was answered is not in the upstream any more, though the answer does not tell what came of it.
func TestDeliverer_AnsweredAttemptFreesItsPlace(t *testing.T) {
	for status, sent := range map[int]string{500: "[1 a 1 1 b 1]", 504: "[1 a 1]"} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{}
			b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return status, upstream.Answered }
			open(t, b, func(o *Options) { o.MaxInFlight = 1 })
			b.order(t, "1", "a")
			b.order(t, "1", "b")
			time.Sleep(time.Second)
			if got := b.attempts(); got != sent {
				t.Errorf("%d: sent %s, want %s", status, got, sent)
			}
			if got := b.state(t, "1", "a"); status == 500 && got.Where != ledger.Asking {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An upstream that is full lets one order in at a time, and rejects the first for its client's sake: that one goes out
// again while new ones keep coming.
func TestDeliverer_PutOffOrderDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{knows: ledger.OrderNotFound}
		b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
			time.Sleep(100 * time.Millisecond)
			if n == 1 {
				return 429, upstream.Answered
			}
			return 201, upstream.Answered
		}
		open(t, b, func(o *Options) { o.MaxInFlight = 1 })
		b.order(t, "1", "first")
		for i := range 60 {
			time.Sleep(50 * time.Millisecond)
			b.order(t, "1", fmt.Sprint(i))
		}
		if got := b.state(t, "1", "first"); got.Status != ledger.StatusSold {
			t.Errorf("%+v, sent %s", got, b.attempts())
		}
	})
}

// More clients than one call of the store tells of may ask about one SKU at once.
func TestLook_ManyAtOnceAreAllAnswered(t *testing.T) {
	b := &bench{}
	open(t, b, func(o *Options) { o.MaxInFlight = 1; o.Pulls = true })
	const n = 3*ledger.MaxItems + 7
	for i := range n {
		b.order(t, "1", fmt.Sprint(i))
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, tooMany, err := b.Find(t.Context(), "1", fmt.Sprint(i)); tooMany || err != nil {
				t.Errorf("%d: too many %v, %v", i, tooMany, err)
			}
		})
	}
	all.Wait()
}

// emptied is a store that has lost everything, as a Redis without a file does at its restart.
type emptied struct {
	*ledger.Store
	lost atomic.Bool
}

func (e *emptied) HandOut(ctx context.Context, sku string, c ledger.HandOutCall) (ledger.HandedOut, error) {
	if e.lost.Load() {
		return ledger.HandedOut{}, ledger.LostLedger(sku)
	}
	return e.Store.HandOut(ctx, sku, c)
}

func (e *emptied) Names(ctx context.Context, after string) ([]string, error) {
	if e.lost.Load() {
		return nil, nil
	}
	return e.Store.Names(ctx, after)
}

func TestDeliverer_OrdersOfALostLedgerDoNotWait(t *testing.T) {
	b, store, sent := &bench{}, &emptied{}, make(chan struct{})
	b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { <-sent; return 201, upstream.Answered }
	open(t, b, func(o *Options) {
		o.MaxInFlight, store.Store = 1, o.Store.(*ledger.Store)
		o.Store = store
	})
	defer close(sent)
	b.order(t, "1", "a")
	b.order(t, "1", "b")
	waiting := func() int64 { return b.Status(time.Now()).Waiting }
	testkit.Eventually(t, "one waits behind the other", func() bool { return waiting() == 1 })
	store.lost.Store(true)
	testkit.Eventually(t, "none is left to wait", func() bool { return waiting() == 0 })
}
