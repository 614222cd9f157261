package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/upstream/spool"
)

// largePages is an upstream of pages of 2 MiB, and of streams that do not end.
func largePages(t *testing.T) (server *rawServer, page string) {
	page = strings.Repeat("0123456789abcdef", 2<<20/16)
	return newRawServer(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			switch targetOf(head) {
			case "/counted":
				v.reply(ok(page))
			case "/chunked":
				v.reply(chunkedHead + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(page), page))
			case "/cut":
				v.reply(chunkedHead + fmt.Sprintf("%x\r\n%s\r\n", len(page), page))
				return
			case "/events":
				v.reply(status200 + "Content-Type: text/event-stream\r\n\r\n:\n\n")
				v.waitClosed()
				return
			default:
				v.reply(ok(targetOf(head)))
			}
		}
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

// A client that reads slowly holds no connection: the rest of its response waits in memory, and past it in a file.
func TestRelay_SlowClientFreesTheConnection(t *testing.T) {
	server, page := largePages(t)
	for _, target := range []string{"/counted", "/chunked"} {
		dir := t.TempDir()
		o := options(server.url())
		o.Spool = spool.New(spool.Options{Memory: 64 << 10, File: 1 << 30, Dir: dir})
		p := newPool(t, o)
		resp := begin(t, p, target)
		testkit.Eventually(t, "the connection is free", func() bool {
			st := p.Targets()[0]
			return st.InFlight == 0 && st.Idle == 1
		})
		if memory, file := o.Spool.Used(); memory != 64<<10 || file == 0 {
			t.Errorf("%s: %d bytes in memory, %d in the file", target, memory, file)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s: the file has a name: %v, %v", target, names, err)
		}
		mustAnswer(t, p, "/other")
		rest, err := io.ReadAll(resp.BodyStream())
		if err != nil || string(rest) != page[3:] {
			t.Errorf("%s: %d bytes, %v", target, len(rest), err)
		}
		resp.CloseBodyStream()
		if memory, file := o.Spool.Used(); memory+file != 0 {
			t.Errorf("%s: %d bytes in memory, %d in the file after the end", target, memory, file)
		}
	}
}

// Without room the client holds its connection, and such connections are counted.
func TestRelay_WithoutRoomTheConnectionIsHeld(t *testing.T) {
	server, page := largePages(t)
	o := options(server.url())
	o.Spool, o.MaxConns = spool.New(spool.Options{Memory: 64 << 10}), 8 // six for pages, three of which may be held
	p := newPool(t, o)
	only := p.targets.Load().all[0]
	held := func() int {
		only.mu.Lock()
		defer only.mu.Unlock()
		return only.held
	}
	var slow []*fasthttp.Response
	for i := range 3 {
		slow = append(slow, begin(t, p, "/chunked"))
		testkit.Eventually(t, "it is held", func() bool { return held() == i+1 })
	}
	cut := begin(t, p, "/chunked")
	testkit.Eventually(t, "one more is ended", func() bool { return p.Targets()[0].InFlight == 3 })
	if n, err := io.Copy(io.Discard, cut.BodyStream()); !errors.Is(err, errManyStreams) || n >= int64(len(page)) {
		t.Errorf("one more: %d bytes, %v", n, err)
	}
	cut.CloseBodyStream()
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
	if n := held(); n != 0 || only.pages != 0 {
		t.Errorf("%d held, %d in use after the end", n, only.pages)
	}
}

// Streams that never end have a share of the connections; orders are limited elsewhere.
func TestRelay_EndlessStreamsAreCapped(t *testing.T) {
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

// A client that leaves ends what is read ahead for it.
func TestRelay_CloseEndsReadingAhead(t *testing.T) {
	page := bytes.Repeat([]byte("x"), 1<<20)
	server := newRawServer(t, func(v *visit) {
		v.request()
		v.reply(fmt.Sprintf(status200+"Content-Length: %d\r\n\r\n%s", 2*len(page), page)) // the rest never comes
		v.waitClosed()
	})
	o := options(server.url())
	o.Spool = spool.New(spool.Options{Memory: 64 << 10, File: 1 << 30, Dir: t.TempDir()})
	p := newPool(t, o)
	resp := begin(t, p, "/")
	testkit.Eventually(t, "it is read ahead", func() bool { _, file := o.Spool.Used(); return file > 512<<10 })
	resp.CloseBodyStream()
	testkit.Eventually(t, "all is given back", func() bool {
		memory, file := o.Spool.Used()
		st := p.Targets()[0]
		return memory+file == 0 && st.InFlight == 0 && st.Open == 0
	})
}

// A response that breaks off while it is read ahead reaches the client as far as it came, and does not look whole.
func TestRelay_ResponseThatBreaksOffIsNotWhole(t *testing.T) {
	server, page := largePages(t)
	o := options(server.url())
	o.Spool = spool.New(spool.Options{Memory: 1 << 20, File: 1 << 30, Dir: t.TempDir()})
	p := newPool(t, o)
	resp := begin(t, p, "/cut")
	testkit.Eventually(t, "it has ended", func() bool { return p.Targets()[0].InFlight == 0 })
	rest, err := io.ReadAll(resp.BodyStream())
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(rest) != page[3:] {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
	resp.CloseBodyStream()
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
	ready := newRequest("POST", "/up").withStream(strings.NewReader("xx"), 2)
	ready.BodyReady = true
	if outcome := p.Send(ready, new(fasthttp.Response)); outcome != Answered {
		t.Errorf("an upload that is here: %v", outcome)
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
