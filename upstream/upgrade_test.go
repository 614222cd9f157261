package upstream

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A tunnel carries every byte both ways, the first of which came with the answer, and its connection
// is never used again.
func TestUpgrade_OpensATunnel(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		head, _, err := v.request()
		if err != nil {
			return
		}
		if targetOf(head) != "/socket" {
			v.reply(ok(targetOf(head)))
			return
		}
		v.reply("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n" +
			"Connection: Upgrade, X-Named\r\nX-Named: 1\r\nSec-WebSocket-Accept: a=\r\n\r\nhello")
		io.Copy(v.Conn, v.r)
	})
	p := newPool(t, options(server.url()))
	resp := new(fasthttp.Response)
	c, outcome := p.Upgrade(newOrder("GET", "/socket"), resp)
	if outcome != Answered || resp.StatusCode() != 101 || c == nil {
		t.Fatalf("outcome %d, status %d, connection %v", outcome, resp.StatusCode(), c)
	}
	for name, want := range map[string]string{
		"Upgrade": "websocket", "Connection": "Upgrade",
		"Sec-WebSocket-Accept": "a=", "X-Named": "",
	} {
		if got := string(resp.Header.Peek(name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	io.WriteString(c, " world")
	got := make([]byte, len("hello world"))
	if _, err := io.ReadFull(c, got[:2]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got[2:]); err != nil || string(got) != "hello world" {
		t.Errorf("%q, %v", got, err)
	}
	if st := p.Targets()[0]; st.InFlight != 1 || st.Open != 1 {
		t.Errorf("while it is open: %+v", st)
	}
	c.Close()
	c.Close()
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != 0 {
		t.Errorf("after closing: %+v", st)
	}
	mustAnswer(t, p, "/victim")
}

// An upstream that does not change the protocol gives an ordinary response.
func TestUpgrade_RejectedOneIsAnOrdinaryResponse(t *testing.T) {
	server := newRawServer(t, echo)
	p := newPool(t, options(server.url()))
	resp := new(fasthttp.Response)
	c, outcome := p.Upgrade(newOrder("GET", "/socket"), resp)
	if c != nil || outcome != Answered || string(resp.Body()) != "/socket" {
		t.Errorf("connection %v, outcome %d, body %q", c, outcome, resp.Body())
	}
}

// Two goroutines copy through a tunnel, and each sets deadlines (run with -race).
func TestUpgrade_BothDirectionsMaySetDeadlines(t *testing.T) {
	server := newRawServer(t, func(v *visit) {
		if _, _, err := v.request(); err == nil {
			v.reply("HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			io.Copy(io.Discard, v.r)
		}
	})
	p := newPool(t, options(server.url()))
	c, outcome := p.Upgrade(newOrder("GET", "/socket"), new(fasthttp.Response))
	if outcome != Answered {
		t.Fatal(outcome)
	}
	defer c.Close()
	var both sync.WaitGroup
	both.Go(func() { c.SetReadDeadline(time.Now().Add(time.Second)) })
	both.Go(func() { c.SetWriteDeadline(time.Now().Add(time.Second)) })
	both.Wait()
}
