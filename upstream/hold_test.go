package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// largePages is an upstream of pages of 2 MiB, and of streams that do not end.
func largePages(t *testing.T) (server *rawServer, page string) {
	page = strings.Repeat("0123456789abcdef", 2<<20/16)
	return newRawServer(t, func(v *visit) {
		v.each(func(head string) {
			switch targetOf(head) {
			case "/counted":
				v.reply(ok(page))
			case "/chunked":
				v.reply(chunkedHead + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(page), page))
			case "/events":
				v.reply(status200 + "Content-Type: text/event-stream\r\n\r\n:\n\n")
				v.waitClosed()
			default:
				v.reply(ok(targetOf(head)))
			}
		})
	}), page
}

// begin sends a page, and reads the first bytes of its response.
func begin(t *testing.T, p *Pool, target string) *fasthttp.Response {
	t.Helper()
	resp := new(fasthttp.Response)
	if outcome := p.Send(newPage(target), resp); outcome != Answered || !resp.IsBodyStream() {
		t.Fatalf("%s: %v", target, outcome)
	}
	if _, err := io.ReadFull(resp.BodyStream(), make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return resp
}

// held is how many connections of the only target are counted as held.
func held(p *Pool) int {
	only := p.targets.Load().all[0]
	only.mu.Lock()
	defer only.mu.Unlock()
	return only.held
}

// A response over maxAhead bytes holds its connection until its client has read it, and has a share of them.
func TestStream_LargePagesHoldAShareOfTheConnections(t *testing.T) {
	server, page := largePages(t)
	o := options(server.url())
	o.MaxConns = 8 // six for pages, three of which may be held
	p := newPool(t, o)
	var slow []*fasthttp.Response
	for i, target := range []string{"/chunked", "/counted", "/chunked"} {
		slow = append(slow, begin(t, p, target))
		if n := held(p); n != i+1 {
			t.Errorf("%s: %d held, want %d", target, n, i+1)
		}
	}
	if outcome := p.Send(newPage("/counted"), new(fasthttp.Response)); outcome != Capped {
		t.Errorf("one more: %v", outcome)
	}
	for range 10 {
		if outcome := p.Send(newPage("/page"), new(fasthttp.Response)); outcome != Answered {
			t.Errorf("a page beside them: %v", outcome)
		}
	}
	for i, resp := range slow {
		rest, err := io.ReadAll(resp.BodyStream())
		if err != nil || string(rest) != page[3:] {
			t.Errorf("%d: %d bytes, %v", i, len(rest), err)
		}
		resp.CloseBodyStream()
	}
	if n := held(p); n != 0 || p.targets.Load().all[0].pages != 0 || left(p) != defaultMemory {
		t.Errorf("%d held, %d bytes of memory left after the end", n, left(p))
	}
}

// One more stream waits for another one to end.
func TestStream_WaitsUntilAnotherOneEnds(t *testing.T) {
	server, page := largePages(t)
	o := queued(10, 8, server.url()) // three may be held
	p := newPool(t, o)
	var slow []*fasthttp.Response
	for range 3 {
		slow = append(slow, begin(t, p, "/chunked"))
	}
	late, ends := new(fasthttp.Response), make(chan Outcome)
	go func() { ends <- p.Send(newPage("/counted"), late) }()
	testkit.Eventually(t, "it waits", func() bool { return waiting(p) == 1 })
	if outcome := p.Send(newPage("/counted"), new(fasthttp.Response)); outcome != Capped {
		t.Errorf("one more than may wait: %v", outcome)
	}
	if outcome := p.Send(newPage("/page"), new(fasthttp.Response)); outcome != Answered {
		t.Errorf("a page beside them: %v", outcome)
	}
	slow[0].CloseBodyStream()
	if outcome := <-ends; outcome != Answered {
		t.Fatalf("outcome %v", outcome)
	}
	if body, err := io.ReadAll(late.BodyStream()); err != nil || string(body) != page {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	for _, resp := range append(slow, late) {
		resp.CloseBodyStream()
	}
	if n := held(p); n != 0 || waiting(p) != 0 {
		t.Errorf("%d held, %d wait after the end", n, waiting(p))
	}
}

// Streams that never end have a share of the connections; orders are limited elsewhere.
func TestStream_EndlessOnesAreCapped(t *testing.T) {
	server, _ := largePages(t)
	o := options(server.url())
	o.MaxConns = 8
	p := newPool(t, o)
	var open []*fasthttp.Response
	for range 3 {
		open = append(open, begin(t, p, "/events"))
	}
	for range 5 {
		if outcome := p.Send(newPage("/events"), new(fasthttp.Response)); outcome != Capped {
			t.Errorf("one more stream: %v", outcome)
		}
		if outcome := p.Send(newPage("/page"), new(fasthttp.Response)); outcome != Answered {
			t.Errorf("a page: %v", outcome)
		}
	}
	order := newOrder("POST", "/events")
	order.Whole = false
	resp := new(fasthttp.Response)
	if outcome := p.Send(order, resp); outcome != Answered {
		t.Errorf("an order: %v", outcome)
	}
	for _, resp := range append(open, resp) {
		resp.CloseBodyStream()
	}
	begin(t, p, "/events").CloseBodyStream()
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle {
		t.Errorf("%+v", st)
	}
}

// Uploads that wait for their clients have a share of the connections, too. Pages never lose theirs.
func TestSend_SlowUploadsAreCapped(t *testing.T) {
	server, _ := largePages(t)
	o := options(server.url())
	o.MaxConns = 8 // three of which may be held
	p := newPool(t, o)
	var slow []*io.PipeWriter
	ended := make(chan Outcome)
	upload := func() *io.PipeWriter {
		body, client := io.Pipe()
		go func() {
			ended <- p.Send(newRequest("POST", "/up").withStream(body, 2), new(fasthttp.Response))
		}()
		return client
	}
	for range 3 {
		client := upload()
		slow = append(slow, client)
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	client := upload()
	if outcome := <-ended; outcome != Busy {
		t.Errorf("one more upload: %v", outcome)
	}
	client.Close()
	for range 10 {
		if outcome := p.Send(newPage("/page"), new(fasthttp.Response)); outcome != Answered {
			t.Errorf("a page beside them: %v", outcome)
		}
	}
	for _, client := range slow {
		if _, err := client.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
		client.Close()
		if outcome := <-ended; outcome != Answered {
			t.Errorf("a slow upload: %v", outcome)
		}
	}
}
