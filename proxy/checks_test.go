package proxy

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
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
		name, decide := rows[i].name, rows[i].decide
		rows[i].decide = func(p *Proxy, r *Request) rejection {
			no := decide(p, r)
			l.add(name, no.Reason)
			return no
		}
	}
}

func (l *checkLog) add(name string, reason reject.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.returned[name] == nil {
		l.returned[name] = map[reject.Reason]bool{}
	}
	l.returned[name][reason] = true
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

// awaitedStock decides in AwaitReading.
type awaitedStock struct {
	*stockMap
	reason reject.Reason
}

func (s awaitedStock) AwaitReading(int64, []byte, interface{ StepAside() }) (reject.Reason, bool) {
	return s.reason, false
}

// fullQueue is a concurrency limit whose queue is full.
type fullQueue struct{ slotFunc }

func (fullQueue) Peek(bool) bool { return true }

const (
	whole  = "Content-Length: 2\r\n\r\nhi" // of order; the others are at fault
	broken = "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
	late   = "Content-Length: 3\r\n\r\nhi"
	large  = "Content-Length: 99999\r\n\r\nhi"
)

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
		c.raw = strings.Replace(c.raw, "INSTANCE", string(p.pseudonym), 1)
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
		{&keyedRates, order, func(o *Options, left chan struct{}) {
			m := keyedRate("paced", "$host", 1)
			m.Limiter = pacedRate{func(int64) time.Duration {
				<-left
				return time.Millisecond
			}}
			o.Rates = []Rate{m}
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
			testkit.Eventually(t, "the check sees that its client left", func() bool {
				return returned.has(c.row.name, reject.ClientGone)
			})
		}
	}
}

// pacedRate admits every request after a delay.
type pacedRate struct{ delay func(now int64) time.Duration }

func (p pacedRate) Acquire(now int64, _ []byte) (time.Duration, bool) { return p.delay(now), true }
func (pacedRate) Peek(int64, []byte) (int, time.Duration, time.Duration) {
	return 0, 0, time.Hour // none is left of the burst, and one can be had
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
		route.Limit: "deny list, request rate of the connection, identity, conditions, schedule, order token, " +
			"waiting room, keyed rates, page cache, body, in flight, window, concurrency, schedule",
		route.Reserve: "deny list, request rate of the connection, identity, conditions, ledger's memory, schedule, " +
			"order token, waiting room, keyed rates, page cache, earlier order, looked up, body, in flight, window, " +
			"concurrency, connection to the upstream, schedule, reservation",
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

// Before the body is read, each row behind it says whether it is full. The route then has one row for each limit.
func TestChecks_AskWhetherLimitsAreFullBeforeTheBody(t *testing.T) {
	o := checkedOptions()
	m, _ := together("two", 2)
	o.InFlight = []InFlight{m}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.routes {
		var peeks []string
		for _, row := range p.routes[i].checks {
			if row.name == body.name {
				if want := []string{inFlight.name, window.name, slot.name}; !slices.Equal(peeks, want) {
					t.Errorf("route %s: %q are asked before the body, want %q", p.routes[i].Name, peeks, want)
				}
			}
			if row.peeks {
				peeks = append(peeks, row.name)
			}
		}
		if peeks == nil && p.routes[i].limited() {
			t.Errorf("route %s asks nothing before the body", p.routes[i].Name)
		}
	}
}

func TestChecks_ShowLimitsThatAreOnlyObserved(t *testing.T) {
	for _, observed := range []bool{false, true} {
		o := checkedOptions()
		m := exhaustedHostRate()
		m.Observe = observed
		o.Rates = []Rate{m}
		o.Bounds = map[reject.Reason]string{reject.Window: "max 5"}
		if observed {
			o.ObserveOnly = []reject.Reason{reject.ConnRate, reject.Window, reject.Concurrency, reject.QueueTimeout}
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		limits := []string{connRate.name, keyedRates.name, window.name, slot.name}
		found := p.Explain("GET /search/ HTTP/1.1\r\nHost: shop\r\n\r\n", netip.MustParseAddr("192.0.2.1"), 8<<10, false)
		for _, row := range found.Checks {
			if want := observed && slices.Contains(limits, row.Name); row.Observed != want {
				t.Errorf("%s: only observed %v, want %v", row.Name, row.Observed, want)
			}
			if (row.Value == "max 5") != (row.Name == window.name) {
				t.Errorf("%s: value %q", row.Name, row.Value)
			}
		}
		if found.Route != "search" || len(found.Checks) == 0 {
			t.Errorf("%d checks of the route %q", len(found.Checks), found.Route)
		}
	}
}

// An order that waits passes every check of its gate but for those of what the upstream has at once.
func TestChecks_OfAnOrderThatWaitsAreThoseOfItsGate(t *testing.T) {
	o := checkedOptions()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var rows []check // as if each applied
	for _, row := range tables[route.Reserve] {
		row.applies = nil
		rows = append(rows, row)
	}
	names := func(queue bool) (all []string) {
		rt := &boundRoute{Route: Route{Queue: queue}}
		for _, row := range p.rowsThatApply(rows, rt) {
			all = append(all, row.name)
		}
		return all
	}
	capacity := []string{pageCache.name, inFlight.name, window.name, slot.name, connection.name}
	want := slices.DeleteFunc(names(false), func(name string) bool { return slices.Contains(capacity, name) })
	got := names(true)
	if !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("%q, want %q", got, want)
	}
}
