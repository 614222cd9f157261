package proxy

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// checkLog keeps the reasons that each row has returned, by the row's name.
type checkLog struct {
	mu       sync.Mutex
	returned map[string]map[reject.Reason]bool
}

// attach makes p's checks write into the log.
func (l *checkLog) attach(p *Proxy) {
	for i := range p.routes {
		l.wrap(p.routes[i].checks)
	}
	l.wrap(p.rejecting)
}

func (l *checkLog) wrap(rows []check) {
	for i := range rows {
		name, run := rows[i].name, rows[i].run
		rows[i].run = func(p *Proxy, r *Request) rejection {
			no := run(p, r)
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.returned[name] == nil {
				l.returned[name] = map[reject.Reason]bool{}
			}
			l.returned[name][no.Reason] = true
			return no
		}
	}
}

func (l *checkLog) has(name string, reason reject.Reason) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.returned[name][reason]
}

// fakeCache answers every page with one status.
type fakeCache struct {
	status  CacheStatus
	outcome upstream.Outcome
}

func (c fakeCache) Lookup(page *Page, _ *fasthttp.Response) CacheStatus {
	page.Outcome = c.outcome
	return c.status
}
func (fakeCache) Store(*Page, upstream.Outcome, *fasthttp.Response) bool { return false }
func (fakeCache) Abandon(*Page)                                          {}
func (fakeCache) Forget(*Page)                                           {}

// decidingStock admits from memory and decides in Enter.
type decidingStock struct {
	*stockMap
	reason reject.Reason
}

func (s decidingStock) Enter(int64, []byte, []byte) reject.Reason { return s.reason }

// fullQueue is a concurrency limit whose queue is full.
type fullQueue struct{ slotFunc }

func (fullQueue) Peek() bool { return true }

const (
	whole  = "Content-Length: 2\r\n\r\nhi" // of order; the others are at fault
	broken = "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
	late   = "Content-Length: 3\r\n\r\nhi"
	large  = "Content-Length: 99999\r\n\r\nhi"
)

// checkCase drives one check to one of its reasons.
type checkCase struct {
	check  *check
	reason reject.Reason
	set    func(*Options) // on options with an order route and a search route
	raw    string         // "" = order
}

// allCheckCases drive each check to each reason that its row lists.
func allCheckCases() (all []checkCase) {
	add := func(c *check, reason reject.Reason, raw string, set func(*Options)) {
		all = append(all, checkCase{c, reason, set, raw})
	}
	add(&denyList, reject.DeniedIP, "", func(o *Options) { o.Deny = prefixes(clientAddress + "/32") })
	add(&unmatched, reject.NoRoute, search, func(o *Options) { o.Routes = o.Routes[:1] })
	add(&unmatched, reject.Ambiguous, orderWith("/api", "/API"), nil)
	add(&connRate, reject.ConnRate, "", func(o *Options) {
		o.ConnRate = func() ConnRateLimiter { return exhaustedRate{} }
	})
	addIdentityCases(add)
	for _, c := range []*check{&schedule, &scheduleAgain} {
		calls := 0
		if c == &scheduleAgain {
			calls = 1
		}
		for _, reason := range []reject.Reason{reject.NotStarted, reject.Ended, reject.Paused} {
			add(c, reason, "", func(o *Options) { o.Schedule = &closing{new([]string), calls, reason} })
		}
		add(c, reject.SoldOut, "", func(o *Options) { o.Feedback = &lateFeedback{after: calls} })
	}
	for _, reason := range []reject.Reason{reject.SoldOut, reject.Paused, reject.UnknownSKU} { // see Stock.Closed
		add(&soldOut, reason, "", closedFor(reason))
	}
	addTokenAndRateCases(add)
	addWaitingCases(add)
	for _, reason := range []reject.Reason{reject.SoldOut, reject.Duplicate, reject.Concurrency, reject.UnknownSKU,
		reject.StockError, reject.Paused} { // see Stock.Enter
		add(&stock, reason, "", func(o *Options) { o.Stock = decidingStock{o.Stock.(*stockMap), reason} })
	}
	addReservationCases(add)
	return all
}

type addCase func(c *check, reason reject.Reason, raw string, set func(*Options))

// addIdentityCases adds those of the SKU, the user and the body that is read for them.
func addIdentityCases(add addCase) {
	const json = "Content-Type: application/json\r\n"
	inJSON := func(o *Options) { o.Routes[0].SKU = "$json_sku" }
	add(&identity, reject.BadRequest, orderWith("uid=7", ""), nil)
	add(&identity, reject.Ambiguous, orderWith("uid=7", "uid=7; uid=8"), nil)
	add(&identity, reject.Unidentified, "", func(o *Options) {
		o.Routes[0].User, o.Auth.CookieKey = "$signed_uid", strings.Repeat("k", 32)
	})
	add(&identity, reject.TooLarge, orderWith(whole, json+large), inJSON)
	add(&identity, reject.TooSlow, orderWith(whole, json+late), inJSON)
	add(&identity, reject.Malformed, orderWith(whole, json+broken), inJSON)
	const slow = "Content-Length: 1000\r\n\r\nhi"
	full := func(o *Options) { o.BodyMemory = 999 }
	add(&identity, reject.Overloaded, orderWith(whole, json+slow), func(o *Options) { inJSON(o); full(o) })
	add(&identity, reject.Concurrency, orderWith(whole, json+large), func(o *Options) {
		inJSON(o)
		o.MaxBody, o.Concurrency = 1<<20, fullQueue{}
	})
	add(&body, reject.Overloaded, orderWith(whole, slow), full)
	add(&body, reject.TooLarge, orderWith(whole, large), nil)
	add(&body, reject.TooSlow, orderWith(whole, late), nil)
	add(&body, reject.Malformed, orderWith(whole, broken), nil)
}

// withOrderToken makes the order route demand a token.
func withOrderToken(o *Options) {
	o.Routes = slices.Clone(o.Routes)
	o.Routes[0].OrderToken = true
	o.Auth = Auth{OrderTokenKey: strings.Repeat("k", 32), Slot: time.Minute}
}

func addTokenAndRateCases(add addCase) {
	add(&orderToken, reject.Token, "", withOrderToken)
	add(&orderToken, reject.Ambiguous, orderWith("Cookie", "Sluice-Token: a\r\nSluice-Token: b\r\nCookie"), withOrderToken)
	rate := func(key string) func(*Options) {
		return func(o *Options) {
			m := exhaustedHostRate()
			m.Key = key
			o.Rates, o.Now = []KeyedRate{m}, func() int64 { return int64(time.Hour) }
		}
	}
	add(&keyedRates, reject.Rate, "", rate("$host"))
	add(&keyedRates, reject.Ambiguous, orderWith("/order", "/order?q=1&q=2"), rate("$arg_q"))
	add(&keyedRates, reject.BadRequest, orderWith("/order", "/order?q=%ff"), rate("$arg_q"))
}

// addWaitingCases adds those of the checks that wait for another request, a window or a slot.
func addWaitingCases(add addCase) {
	for outcome, reason := range map[upstream.Outcome]reject.Reason{
		upstream.NotSent: reject.NoUpstream, upstream.Broken: reject.UpstreamError,
		upstream.TimedOut: reject.UpstreamTimeout, upstream.Busy: reject.UpstreamBusy,
	} {
		add(&pageCache, reason, search, func(o *Options) {
			o.Routes[1].Cache, o.Cache = time.Second, fakeCache{CacheError, outcome}
		})
	}
	add(&windowFull, reject.Window, "", func(o *Options) { o.Windows = fullWindow{} })
	add(&queueFull, reject.Concurrency, "", func(o *Options) { o.Concurrency = fullQueue{} })
	add(&window, reject.Window, "", func(o *Options) {
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return 0, false })
	})
	for _, reason := range []reject.Reason{reject.Concurrency, reject.QueueTimeout, reject.ClientGone} {
		add(&slot, reason, "", func(o *Options) { o.Concurrency = slotFunc(always(reason)) }) // see Acquire
	}
}

// addReservationCases adds those of the ledger: the reasons that Orders has, from memory and from its store.
func addReservationCases(add addCase) {
	for _, reason := range earlierOrder.reasons {
		add(&earlierOrder, reason, buying, func(o *Options) { ordersDecide(o, reason, true) })
		add(&earlierOrderInStore, reason, buying, func(o *Options) {
			ordersDecide(o, reason, false)
			o.Orders.(*fakeOrders).lookUp = true
		})
	}
	add(&connection, reject.UpstreamBusy, buying, func(o *Options) {
		ordersDecide(o, reject.Admitted, false)
		o.Upstream = crowded{}
	})
	for _, reason := range reserve.reasons {
		add(&reserve, reason, buying, func(o *Options) { ordersDecide(o, reason, false) })
	}
}

func ordersDecide(o *Options, reason reject.Reason, decided bool) {
	with, ledger := reserving(o.Upstream)
	*o = with
	ledger.answer.Reason, ledger.decided = reason, decided
}

// lateFeedback says that every SKU is sold out, after so many calls.
type lateFeedback struct{ after int }

func (f *lateFeedback) SoldOut(int64, []byte) bool { f.after--; return f.after < 0 }
func (*lateFeedback) Record(int64, []byte, bool)   {}

// Explain, the metrics and the docs tell users for which reasons a check may reject. So the table must list them all,
// and none that cannot occur.
func TestChecks_TablesListEveryReasonOnce(t *testing.T) {
	returned := &checkLog{returned: map[string]map[reject.Reason]bool{}}
	for _, c := range allCheckCases() {
		o := checkedOptions()
		if c.set != nil {
			c.set(&o)
		}
		if c.raw == "" {
			c.raw = order
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		returned.attach(p)
		var resp *http.Response
		if c.reason == reject.TooSlow {
			resp, _ = talk(t, serve(t, p, ServerOptions{ReadTimeout: 50 * time.Millisecond}), c.raw)
		} else {
			resp, _ = handleOneWith(t, p, c.raw)
		}
		if got := reasonOrStatus(resp); got != c.reason.String() || !returned.has(c.check.name, c.reason) {
			t.Errorf("%s: %s, want %v by this check", c.check.name, got, c.reason)
		}
	}
	driveClientGone(t, returned)
	anywhere := map[reject.Reason]bool{}
	for _, row := range allRows() {
		listed := map[reject.Reason]bool{reject.Admitted: true}
		for _, reason := range row.reasons {
			if listed[reason] {
				t.Errorf("%s lists %v twice", row.name, reason)
			}
			listed[reason], anywhere[reason] = true, true
			if !returned.has(row.name, reason) && !(reason == reject.ClientGone && runtime.GOOS != "linux") {
				t.Errorf("%s lists %v, which it never returns", row.name, reason)
			}
		}
		for reason := range returned.returned[row.name] {
			if !listed[reason] {
				t.Errorf("%s returns %v, which it does not list", row.name, reason)
			}
		}
	}
	// These come before the checks, or in their place.
	outside := []reject.Reason{reject.Admitted, reject.ConnOpen, reject.IPConns, reject.Internal}
	for reason := range reject.NumReasons {
		if anywhere[reason] == slices.Contains(outside, reason) {
			t.Errorf("%v is in a table: %v", reason, anywhere[reason])
		}
	}
}

// checkedOptions are options with their own routes, so that a case may change them.
func checkedOptions() Options {
	o := options(&recorder{})
	o.Routes = slices.Clone(o.Routes)
	return o
}

// allRows are the rows of all tables, each once.
func allRows() (rows []check) {
	rows = append(rows, unmatched)
	for _, table := range tables {
		for _, row := range table {
			if !slices.ContainsFunc(rows, func(c check) bool { return c.name == row.name }) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// driveClientGone has clients leave while they wait for their window, and for a connection to the upstream.
func driveClientGone(t *testing.T, returned *checkLog) {
	t.Helper()
	for _, c := range []struct {
		row *check
		raw string
		set func(o *Options, left chan struct{})
	}{
		{&window, order, func(o *Options, left chan struct{}) {
			o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) {
				<-left
				return time.Millisecond, true
			})
		}},
		{&connection, buying, func(o *Options, left chan struct{}) {
			ordersDecide(o, reject.Admitted, false)
			o.Upstream = crowded{left}
		}},
	} {
		o, left := checkedOptions(), make(chan struct{})
		c.set(&o, left)
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		returned.attach(p)
		client, err := net.Dial("tcp", serve(t, p, ServerOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(client, c.raw); err != nil {
			t.Fatal(err)
		}
		client.Close()
		close(left)
		if runtime.GOOS == "linux" { // elsewhere Gone may not know
			eventually(t, "the check sees that its client left", func() bool {
				return returned.has(c.row.name, reject.ClientGone)
			})
		}
	}
}

// crowded is an upstream all of whose connections are in use. It says so once left is closed; nil = at once.
type crowded struct{ left chan struct{} }

func (c crowded) Acquire(*upstream.Request) bool {
	if c.left != nil {
		<-c.left
	}
	return false
}
func (crowded) Release(*upstream.Request) {}
func (crowded) Send(*upstream.Request, *fasthttp.Response) upstream.Outcome {
	return upstream.Busy
}
func (crowded) Upgrade(*upstream.Request, *fasthttp.Response) (net.Conn, upstream.Outcome) {
	return nil, upstream.Busy
}

// The order of the checks is a promise: a check that is cheap, or final, comes before one that is neither.
func TestChecks_AreInTheOrderThatTheDocsTell(t *testing.T) {
	for gate, want := range map[route.Gate]string{
		route.Limit: "deny list, request rate of the connection, identity, schedule, order token, keyed rates, page cache, " +
			"window, before waiting, concurrency, before waiting, body, window, concurrency, schedule, after waiting",
		route.Reserve: "deny list, request rate of the connection, identity, earlier order, schedule, order token, " +
			"keyed rates, page cache, earlier order, looked up, window, before waiting, concurrency, before waiting, " +
			"body, window, concurrency, connection to the upstream, schedule, after waiting, reservation",
	} {
		var names []string
		for _, row := range tables[gate] {
			names = append(names, row.name)
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("gate %v: %s\nwant %s", gate, got, want)
		}
	}
}

// A check that may block comes behind every check that may not, so that one step aside is enough: the event loop is
// not kept waiting by a rejection.
func TestChecks_OnlyThoseBehindTheBodyMayBlock(t *testing.T) {
	for gate, rows := range tables {
		blocks := false
		for _, row := range rows {
			if row.name == pageCache.name {
				continue // of routes with a cache alone
			}
			if row.due != nil {
				continue // steps aside for the requests that are due alone, and they are answered by it or admitted later
			}
			cheap := row.name == scheduleAgain.name
			if blocks && !row.mayBlock && !cheap {
				t.Errorf("gate %v: %s comes behind a check that may block", route.Gate(gate), row.name)
			}
			blocks = blocks || row.mayBlock
		}
	}
}

func TestChecks_ShowLimitsThatAreOnlyObserved(t *testing.T) {
	for _, observed := range []bool{false, true} {
		o := checkedOptions()
		m := exhaustedHostRate()
		m.Observe = observed
		o.Rates = []KeyedRate{m}
		o.Bounds = map[reject.Reason]string{reject.Window: "max 5"}
		if observed {
			o.ObserveOnly = []reject.Reason{reject.ConnRate, reject.Window, reject.Concurrency, reject.QueueTimeout}
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		limits := []string{connRate.name, keyedRates.name, windowFull.name, window.name, queueFull.name, slot.name}
		for _, row := range p.Checks("search") {
			if want := observed && slices.Contains(limits, row.Name); row.Observed != want {
				t.Errorf("%s: only observed %v, want %v", row.Name, row.Observed, want)
			}
			if (row.Value == "max 5") != (row.Name == window.name || row.Name == windowFull.name) {
				t.Errorf("%s: value %q", row.Name, row.Value)
			}
		}
		if len(p.Checks("search")) == 0 || p.Checks("other") != nil {
			t.Error("checks are of the wrong route")
		}
	}
}
