package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// mixupFigures is what was seen by all clients.
type mixupFigures struct {
	conns, resets, requests, upstream, local, malformed, unread, cut, faults atomic.Int64
}

func (f *mixupFigures) String() string {
	return fmt.Sprintf("%d connections, %d of them reset; %d requests, %d answered by the upstream, %d by the proxy, "+
		"%d of these as malformed; %d cut by the upstream, %d taken back by a reset or behind the last response; "+
		"%d answered with 502 or 503 without need", f.conns.Load(), f.resets.Load(), f.requests.Load(),
		f.upstream.Load(), f.local.Load(), f.malformed.Load(), f.cut.Load(), f.unread.Load(), f.faults.Load())
}

// mixupRequest is one request and what may answer it.
type mixupRequest struct {
	kind      string
	id        string
	method    string
	raw       string
	shape     *mixupShape // of the upstream's response; nil = the proxy answers
	size      int         // of the upstream's response
	status    int         // of the proxy's own answer
	malformed bool        // the proxy may not know the id
	old       bool        // HTTP/1.0: the end of a body may be the end of the connection
	closes    bool        // it asks for the end of the connection: no request may follow
	half      bool        // the client ends its side behind the last request: it may count as gone while it waits
}

// mixupKinds are the kinds of requests. Each fills in a request whose id is known.
var mixupKinds = []struct {
	name   string
	weight int
	fill   func(q *mixupRequest, r *rand.Rand)
}{
	{"pass GET", 20, func(q *mixupRequest, r *rand.Rand) { q.ask(r, "GET", "/page", "", "") }},
	{"pass HEAD", 6, func(q *mixupRequest, r *rand.Rand) { q.ask(r, "HEAD", "/page", "", "") }},
	{"pass POST", 10, func(q *mixupRequest, r *rand.Rand) { q.upload(r, "/page", r.IntN(3000)) }},
	{"pass POST that is streamed", 1, func(q *mixupRequest, r *rand.Rand) {
		q.upload(r, "/page", maxBuffered+r.IntN(60_000))
	}},
	{"chunked upload", 6, func(q *mixupRequest, r *rand.Rand) { q.chunks(r, "/page", r.IntN(3000)) }},
	{"chunked upload that is streamed", 1, func(q *mixupRequest, r *rand.Rand) {
		q.chunks(r, "/page", maxBuffered+r.IntN(60_000))
	}},
	{"limit", 10, func(q *mixupRequest, r *rand.Rand) { q.ask(r, "GET", "/search/tea", "", "") }},
	{"check", 12, func(q *mixupRequest, r *rand.Rand) { q.upload(r, "/check/1001", r.IntN(500)) }},
	{"check in chunks", 3, func(q *mixupRequest, r *rand.Rand) { q.chunks(r, "/check/1001", r.IntN(500)) }},
	{"check sold out", 12, func(q *mixupRequest, r *rand.Rand) {
		q.upload(r, "/check/sold-out", r.IntN(500))
		q.shape, q.status = nil, 409
	}},
	{"check too large", 1, func(q *mixupRequest, r *rand.Rand) {
		q.upload(r, "/check/1001", mixupMaxBody+1+r.IntN(1000))
		q.shape, q.status = nil, 413
	}},
	{"reserve", 12, func(q *mixupRequest, r *rand.Rand) { q.upload(r, "/reserve/1001", r.IntN(500)) }},
	{"reserve sold out", 6, func(q *mixupRequest, r *rand.Rand) {
		q.chunks(r, "/reserve/sold-out", r.IntN(500))
		q.shape, q.status = nil, 409
	}},
	{"HTTP/1.0", 4, func(q *mixupRequest, r *rand.Rand) {
		connection := []string{"Connection: keep-alive\r\n", "Connection: Keep-Alive\r\n", ""}[r.IntN(3)]
		q.ask(r, "GET", "/page", connection, "")
		q.raw, q.old, q.closes = strings.Replace(q.raw, " HTTP/1.1\r\n", " HTTP/1.0\r\n", 1), true, connection == ""
	}},
	{"close", 2, func(q *mixupRequest, r *rand.Rand) {
		q.chunks(r, "/page", r.IntN(500))
		q.raw, q.closes = strings.Replace(q.raw, "Host:", "Connection: close\r\nHost:", 1), true
	}},
	{"unknown method", 2, func(q *mixupRequest, r *rand.Rand) { q.ask(r, "PURGE", "//page%2F;x", "", "") }},
}

// ask is a request that the upstream answers in a form of its choice.
func (q *mixupRequest) ask(r *rand.Rand, method, path, fields, body string) {
	q.method, q.shape = method, &mixupShapes[0]
	if r.IntN(2) == 0 {
		q.shape = &mixupShapes[r.IntN(len(mixupShapes))]
	}
	if q.shape.name == "early" && len(body) == 0 {
		q.shape = &mixupShapes[0]
	}
	q.size = r.IntN(2000)
	if r.IntN(40) == 0 {
		q.size = r.IntN(150_000) // some of these are streamed
	}
	pad := ""
	if r.IntN(8) == 0 {
		pad = "X-Pad: " + strings.Repeat("p", r.IntN(6000)) + "\r\n"
	}
	q.raw = fmt.Sprintf("%s %s?id=%s HTTP/1.1\r\nHost: shop\r\nX-Request-Id: %[3]s\r\nX-Id: %[3]s\r\n"+
		"Idempotency-Key: %[3]s\r\nCookie: uid=u-%[3]s\r\nX-Shape: %[4]s\r\nX-Size: %[5]d\r\n%[6]s%[7]s\r\n%[8]s",
		method, path, q.id, q.shape.name, q.size, pad, fields, body)
}

// expects says sometimes that the client waits for 100 Continue, although it does not.
func expects(r *rand.Rand) string {
	if r.IntN(10) == 0 {
		return "Expect: 100-continue\r\n"
	}
	return ""
}

func (q *mixupRequest) upload(r *rand.Rand, path string, size int) {
	fields := fmt.Sprintf("%sContent-Length: %d\r\nX-Body: %[2]d\r\n", expects(r), size)
	q.ask(r, "POST", path, fields, mixupBody(q.id, size))
}

func (q *mixupRequest) chunks(r *rand.Rand, path string, size int) {
	a := &mixupAnswer{r: r}
	body := strings.ReplaceAll(a.chunks(mixupBody(q.id, size)), ";x=y\r\n", "\r\n") // requests may have no extensions
	fields := fmt.Sprintf("%sTransfer-Encoding: chunked\r\nX-Body: %d\r\n", expects(r), size)
	q.ask(r, "POST", path, fields, body+"0\r\n\r\n")
}

// spoil makes the request one that is no HTTP/1.1, or that ends too early. Either is the last of its connection.
func (q *mixupRequest) spoil(r *rand.Rand, ends bool) {
	q.kind, q.shape, q.status, q.malformed = "malformed", nil, 400, true
	switch n := r.IntN(6); {
	case n == 0:
		q.ask(r, "GET", "/page", "Host: other\r\n", "")
	case n == 1:
		q.ask(r, "POST", "/page", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")
	case n == 2:
		q.ask(r, "GET", "/page", "A : b\r\n", "")
	case n == 3:
		q.ask(r, "GET", "/page", "A: b\nC: d\r\n", "")
	case n == 4:
		q.ask(r, "POST", "/page", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\nzz\r\n")
		q.malformed = false
	case ends:
		q.ask(r, "POST", "/check/1001", "Content-Length: 9\r\nX-Body: 9\r\n", mixupBody(q.id, 5))
		q.malformed = false
	default:
		q.ask(r, "GET", "/page", "A: b\r\n c\r\n", "")
	}
	q.shape = nil
}

// mixupVisit is one connection.
type mixupVisit struct {
	m        *mixup
	r        *rand.Rand
	mode     string
	requests []*mixupRequest
	next     chan struct{} // asks for the next request to be sent; nil = all are sent at once
}

// The modes of a connection.
const (
	oneByOne   = "one by one"
	pipelined  = "pipelined"
	halfClosed = "half-closed"
	byteByByte = "byte by byte"
	resetAt    = "reset"
)

var mixupModes = []string{oneByOne, pipelined, pipelined, halfClosed, byteByByte, resetAt}

const maxMixupRequests = 10 // of a connection

// newMixupVisit plans the connection n.
func newMixupVisit(m *mixup, n uint64) *mixupVisit {
	r := rand.New(rand.NewPCG(m.seed, n))
	v := &mixupVisit{m: m, r: r, mode: mixupModes[r.IntN(len(mixupModes))]}
	planned := 1 + r.IntN(maxMixupRequests)
	for i, length := 0, 0; i < planned && length < 150_000; i++ {
		q := &mixupRequest{id: mixupID(n*maxMixupRequests + uint64(i)), half: v.mode == halfClosed}
		v.requests = append(v.requests, q)
		if i > 0 && r.IntN(25) == 0 {
			q.spoil(r, v.mode == halfClosed)
			break
		}
		q.fill(r)
		length += len(q.raw)
		if q.closes || q.status == 413 || q.shape != nil && q.shape.name == "early" {
			break // what follows is no request, or might be more than a server reads that ends the connection
		}
	}
	if v.mode == oneByOne {
		v.next = make(chan struct{}, maxMixupRequests)
		v.next <- struct{}{}
	}
	return v
}

func (q *mixupRequest) fill(r *rand.Rand) {
	all := 0
	for i := range mixupKinds {
		all += mixupKinds[i].weight
	}
	n := r.IntN(all)
	for i := range mixupKinds {
		if n -= mixupKinds[i].weight; n < 0 {
			q.kind = mixupKinds[i].name
			mixupKinds[i].fill(q, r)
			return
		}
	}
}

// send writes all requests, in the way of its mode.
func (v *mixupVisit) send(c *net.TCPConn, r *rand.Rand) error {
	if v.next != nil {
		for _, q := range v.requests {
			if _, ok := <-v.next; !ok {
				return nil
			}
			if _, err := io.WriteString(c, q.raw); err != nil {
				return err
			}
		}
		return nil
	}
	var all strings.Builder
	for _, q := range v.requests {
		all.WriteString(q.raw)
	}
	raw := all.String()
	if v.mode == resetAt {
		raw = raw[:r.IntN(len(raw)+1)]
	}
	for sent := 0; sent < len(raw); {
		n := 1 + r.IntN(len(raw)-sent)
		if v.mode == byteByByte && (sent < 400 || len(raw)-sent < 100) {
			n = 1
		}
		if _, err := io.WriteString(c, raw[sent:sent+n]); err != nil {
			return err
		}
		if sent += n; r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(500)) * time.Microsecond) // the model is slow at random
		}
	}
	switch v.mode {
	case halfClosed:
		return c.CloseWrite()
	case resetAt:
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond) // it resets at any moment
		_ = c.SetLinger(0)
		return c.Close()
	}
	return nil
}

// visit does what is planned. An error is a fault of the server.
func (v *mixupVisit) visit(addr string) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	c := nc.(*net.TCPConn)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	sent, r := make(chan error, 1), rand.New(rand.NewPCG(v.r.Uint64(), 0))
	go func() { sent <- v.send(c, r) }()
	answered, ended, err := v.receive(bufio.NewReader(c))
	f := &v.m.figures
	f.conns.Add(1)
	f.requests.Add(int64(len(v.requests)))
	f.unread.Add(int64(len(v.requests) - answered))
	if v.mode == resetAt {
		f.resets.Add(1)
		<-sent
		return err
	}
	if v.next != nil {
		close(v.next)
	}
	if err != nil {
		c.Close()
		<-sent
		return err
	}
	if !ended {
		if err := <-sent; err != nil {
			return fmt.Errorf("send: %w", err)
		}
		_ = c.CloseWrite()
	}
	if rest, err := io.ReadAll(c); len(rest) > 0 || !ended && err != nil {
		return fmt.Errorf("behind the last response: %.300q, %w", rest, err)
	}
	return nil
}
