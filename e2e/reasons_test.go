package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rejecting is a limit, and what it takes to be rejected by it once.
type rejecting struct {
	name     string // "" = reason
	reason   string
	status   int
	limit    string // as the access log tells of it; "" = of none
	settings string
	prepare  func(t *testing.T, g *running)
	first    int    // requests that are in the shop meanwhile
	near     byte   // from 127.0.0.near and those that follow
	asks     string // "" = for the shop's front page
}

const (
	heldRequest = "GET /held?sku=1001 HTTP/1.1\r\nHost: shop\r\n\r\n"
	ofSKU       = "[[route]]\nname = \"all\"\nmatch = \"/\"\nsku = \"$arg_sku\"\ngate = "
	allPages    = "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n"
	oneAnHour   = "[[limits.rate]]\nname = \"one\"\nrate = \"1/h\"\nburst = 1\n"
	onePlace    = "limits.concurrency.max_in_flight = 1\n"
	noQueue     = "limits.concurrency.max_queue = 0\n"
	shortQueue  = "limits.concurrency.queue_timeout = \"10ms\"\n"
	ownPlace    = fleetRoute + "\nmax_in_flight = 1\n"
	longWindow  = "limits.window.size = \"1s\"\nlimits.window.max_delay = \"0s\"\n"
	asksForSKU  = "GET /?sku=1001 HTTP/1.1\r\nHost: shop\r\nAccept: application/json\r\n\r\n"
	postsBody   = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\n\r\nhi"
)

func rejections() []rejecting {
	long := func(n int) string { return strings.Repeat("x", n) }
	return []rejecting{
		{reason: "conn_open", status: 429, limit: "limits.connection: max_connections 2",
			settings: "limits.connection.max_connections = 2\nlimits.connection.max_connections_per_ip = 1", first: 2, near: 1},
		{reason: "ip_conns", status: 429, limit: "limits.connection: max_connections_per_ip 1",
			settings: "limits.connection.max_connections_per_ip = 1", first: 1, near: 9},
		{reason: "denied_ip", status: 403, limit: "limits.deny: 1 networks", settings: `limits.deny = ["127.0.0.9/32"]`},
		{name: "denied_ip on a page", reason: "denied_ip", status: 403, limit: "limits.deny: 1 networks",
			settings: `limits.deny = ["127.0.0.9/32"]` + "\n" + allPages},
		{reason: "conn_rate", status: 429, limit: "limits.connection: ",
			settings: "limits.connection.request_rate = \"1/h\"\nlimits.connection.request_burst = 1"},
		{name: "conn_rate on a page", reason: "conn_rate", status: 429, limit: "limits.connection: ",
			settings: "limits.connection.request_rate = \"1/h\"\nlimits.connection.request_burst = 1\n" + allPages},
		{reason: "rate", status: 429, limit: "limits.rate one: ", settings: oneAnHour},
		{name: "two rates", reason: "rate", status: 429, limit: "limits.rate one: ", settings: oneAnHour +
			"[[limits.rate]]\nname = \"wide\"\nrate = \"1000/s\"\nburst = 1000\n"},
		{name: "rate of a page", reason: "rate", status: 429, limit: "limits.rate one: ", settings: oneAnHour +
			"routes = [\"all\"]\n" + allPages},
		{reason: "in_flight", status: 429, limit: "limits.in_flight one: max 1",
			settings: "[[limits.in_flight]]\nname = \"one\"\nkey = \"$host\"\nmax = 1\n", first: 1, near: 1},
		{reason: "window", status: 429, limit: "limits.window: max 1, ", settings: longWindow + "limits.window.max = 1"},
		{name: "window, with a body", reason: "window", status: 429, limit: "limits.window: max 1, ", settings: longWindow +
			"limits.window.max = 1", asks: postsBody},
		{name: "window of a SKU", reason: "window", status: 429, limit: "max_per_sku 1 ", settings: longWindow +
			"limits.window.max_per_sku = 1\n" + ofSKU + `"limit"`, asks: asksForSKU},
		{reason: "concurrency", status: 429, limit: "limits.concurrency: max_in_flight 1, ", settings: onePlace + noQueue,
			first: 1, near: 1},
		{name: "concurrency of a route", reason: "concurrency", status: 429, limit: "route all: max_in_flight 1 of 256",
			settings: noQueue + ownPlace, first: 1, near: 1},
		{name: "concurrency for a unit", reason: "concurrency", status: 429, limit: "stock.max_in_flight_per_unit: 1",
			settings: "stock.source = \"memory\"\nstock.max_in_flight_per_unit = 1\n" + ofSKU + `"check"`, first: 1, near: 1,
			asks:    asksForSKU,
			prepare: func(t *testing.T, g *running) { ok(t, "stock", "--admin", "http://"+g.admin, "set", "1001", "1") }},
		{reason: "queue_timeout", status: 429, limit: "queue_timeout 10ms", settings: onePlace + shortQueue, first: 1,
			near: 1},
		{name: "queue_timeout of a route", reason: "queue_timeout", status: 429, limit: "route all: max_in_flight 1 of 256",
			settings: shortQueue + ownPlace, first: 1, near: 1},
		{reason: "too_large", status: 413, limit: "server.max_body_size: 1KiB", settings: "server.max_body_size = \"1KiB\"",
			asks: "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 1025\r\n\r\n" + long(1025)},
		{name: "too_large in chunks", reason: "too_large", status: 413, limit: "server.max_body_size: 1KiB",
			settings: "server.max_body_size = \"1KiB\"",
			asks: "POST / HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n401\r\n" + long(1025) +
				"\r\n0\r\n\r\n"},
		{reason: "too_slow", status: 408, limit: "server.read_timeout: 1s",
			settings: "server.read_timeout = \"1s\"",
			asks:     "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\n\r\nh"},
		{reason: "overloaded", status: 503, limit: "server.body_memory: 64KiB",
			settings: "server.body_memory = \"64KiB\"\nserver.max_body_size = \"32KiB\"",
			asks:     "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 32768\r\n\r\n", prepare: holdBodyMemory},
		{name: "a head that dawdles", reason: "malformed", status: 408, settings: "server.read_timeout = \"2s\"",
			asks: "GET / HTTP/1.1\r\nHost: s"},
		{name: "a head too large", reason: "malformed", status: 431, settings: "server.max_header_size = \"1KiB\"",
			asks: "GET / HTTP/1.1\r\nHost: shop\r\nX: " + long(1100) + "\r\n\r\n"},
		{name: "a target too long", reason: "malformed", status: 414, asks: "GET /" + long(8<<10) +
			" HTTP/1.1\r\nHost: shop\r\n\r\n"},
	}
}

// Every limit by itself: what it rejects carries its reason in the answer, in header and body, in one metric and in one
// line of the access log that names the limit; it counts once, never reaches the shop, and is no other reason's. The
// log of the gate says nothing of single requests.
func TestLimits_EachRejectsForItsOwnReasonAndCountsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range rejections() {
		if c.name == "" {
			c.name = c.reason
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.try(t)
		})
	}
}

func (c rejecting) try(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{}, 2)
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			inside <- struct{}{}
			<-release
		}
	})
	defer close(release)
	settings := []string{shop.setting(), unhurried}
	for key, usual := range map[string]string{"stock.source": `"off"`, "limits.window.max_per_sku": "0", "[[route]]": ""} {
		switch {
		case strings.Contains(c.settings, key):
		case usual == "":
			c.settings += "\n" + fleetRoute
		default:
			settings = append(settings, key+" = "+usual)
		}
	}
	g, lines := logged(t, append(settings, "access_log.rejected_per_second = 1000", c.settings)...)
	if c.prepare != nil {
		c.prepare(t, g)
	}
	for i := range c.first {
		saying(t, from(t, g.front, c.near+byte(i)), heldRequest)
		<-inside
	}
	admitted := c.first + c.provoke(t, g)
	g.counted(c.reason, 1)
	if n := shop.arrivals.Load(); n != int64(admitted) {
		t.Errorf("the shop saw %d requests, want the %d that were admitted", n, admitted)
	}
	soon(t, "the access log tells of it", func() bool { return len(lines.rejections()) > 0 })
	if told := lines.rejections(); len(told) != 1 ||
		told[0].Reason != c.reason || told[0].Status != c.status || told[0].Client != "127.0.0.9" ||
		!strings.Contains(told[0].Limit, c.limit) || (c.limit == "") != (told[0].Limit == "") {
		t.Errorf("the access log tells %+v; want one line of %s, by %q", told, c.reason, c.limit)
	}
	for _, l := range g.log.lines() {
		if strings.Contains(l.Msg, "reject") {
			t.Errorf("the log says %q", l.Msg)
		}
	}
}

// provoke asks until the first rejection, since a window or a bucket may have room at first. It returns how often it
// was admitted.
func (c rejecting) provoke(t *testing.T, g *running) (admitted int) {
	t.Helper()
	c9 := from(t, g.front, 9)
	in := bufio.NewReader(c9)
	asks := c.asks
	if asks == "" {
		asks = "GET / HTTP/1.1\r\nHost: shop\r\nAccept: application/json\r\n\r\n"
	}
	for start := time.Now(); time.Since(start) < long; admitted++ {
		saying(t, c9, asks)
		a := answered(t, in)
		if a.status == http.StatusOK {
			continue
		}
		a.must(t, c.status, c.reason)
		wants(t, a.body, `"reason":"`+c.reason+`"`)
		if name, _, found := strings.Cut(c.limit, ": "); found && c.status == 429 && c.reason != "conn_open" &&
			c.reason != "ip_conns" { // those two answers are written before any HTTP is read
			wants(t, a.body, `"limit":"`+name+`"`)
		}
		return admitted
	}
	t.Fatal("nothing was rejected")
	return 0
}

// rejections are the lines of what was rejected.
func (j *journal) rejections() (all []entry) {
	for _, e := range j.entries() {
		if !e.Summary && e.Reason != "admitted" {
			all = append(all, e)
		}
	}
	return all
}

// counted wants so many rejections for that reason, in one metric alone, and none for another.
func (g *running) counted(reason string, want int) {
	g.t.Helper()
	const requests, connections = "sluice_rejected_requests_total", "sluice_rejected_connections_total"
	of := `reason="` + reason + `"`
	if want == 0 {
		g.t.Error("nothing was rejected")
	}
	soon(g.t, fmt.Sprintf("%d rejections for %s are counted", want, reason),
		func() bool { return g.metric(requests, of)+g.metric(connections, of) == float64(want) })
	if n := g.metric(requests) + g.metric(connections); n != float64(want) {
		g.t.Errorf("%v rejections for all reasons, want %d", n, want)
	}
}

// from dials from an address of this machine of the test's choice, 127.0.0.last.
func from(t *testing.T, address string, last byte) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, last)}, Timeout: long}
	c, err := d.Dial("tcp", address)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(2 * long))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func saying(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// answered reads one whole answer.
func answered(t *testing.T, in *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), string(b), resp.Header, resp.Close}
}

// holdBodyMemory begins an order whose body, of 32 KiB, does not come.
func holdBodyMemory(t *testing.T, g *running) {
	saying(t, dial(t, g.front), "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 32768\r\n\r\nx")
	soon(t, "the memory for the body is reserved", func() bool { return g.metric("sluice_body_memory_bytes") == 32<<10 })
}
