package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// Each event is handed on when it comes: the upstream writes the second only after the first was read. A header that
// comes alone is not kept waiting for the first event, and what came with it can be read at once.
func TestTransport_StreamIsHandedOnAsItComes(t *testing.T) {
	const large = maxAhead + 1
	events := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	for name, c := range map[string]struct{ head, first, second string }{
		"events in chunks":   {events + "Transfer-Encoding: chunked\r\n\r\n", "3\r\none\r\n", "3\r\ntwo\r\n0\r\n\r\n"},
		"events until close": {events + "\r\n", "one", "two"},
		"chunked":            {chunkedHead, "3\r\none\r\n", "3\r\ntwo\r\n0\r\n\r\n"},
		"cut in a size":      {chunkedHead, "3\r\none\r\n0", "3\r\ntwo\r\n0\r\n\r\n"},
		"until close":        {status200 + "\r\n", "one", "two"},
		"counted": {fmt.Sprintf(status200+"Content-Length: %d\r\n\r\n", large),
			"one", "two" + strings.Repeat(".", large-6)},
	} {
		for via, listen := range upstreamKinds {
			for _, together := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/together=%v", via, name, together), func(t *testing.T) {
					t.Parallel()
					readInPieces(t, listen, c.head, c.first, c.second, together)
				})
			}
		}
	}
}

// readInPieces reads a stream, of which the upstream writes first and second only when it is told to; first may come
// together with the head.
func readInPieces(t *testing.T, listen listener, head, first, second string, together bool) {
	read := make(chan struct{})
	_, o := listen(t, func(v *visit) {
		v.request()
		if together {
			v.reply(head + first)
		} else {
			v.reply(head)
			<-read
			v.reply(first)
		}
		<-read
		v.reply(second)
	})
	resp := new(fasthttp.Response)
	if o := newPool(t, o).Send(newPage("/events"), resp); o != Answered {
		t.Fatal(o)
	}
	defer resp.CloseBodyStream()
	if resp.ImmediateHeaderFlush == together {
		t.Errorf("the header leaves at once: %v", resp.ImmediateHeaderFlush)
	}
	for i, want := range []string{"one", "two"} {
		if !together || i > 0 {
			read <- struct{}{}
		}
		got := make([]byte, 3)
		if _, err := io.ReadFull(resp.BodyStream(), got); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
}

// A stream that breaks off ends in an error, never as if it were complete.
func TestTransport_CutStreamEndsInAnError(t *testing.T) {
	for name, response := range map[string]string{
		"in a chunk":       status200 + "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n5\r\ntw",
		"between chunks":   status200 + "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
		"within a counted": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\none", maxAhead+1),
	} {
		p := answering(t, response, true)
		resp := new(fasthttp.Response)
		if o := p.Send(newPage("/"), resp); o != Answered || !resp.IsBodyStream() {
			t.Fatal(o)
		}
		if body, err := io.ReadAll(resp.BodyStream()); err == nil || !strings.HasPrefix(string(body), "one") {
			t.Errorf("%s: %q, %v", name, body, err)
		}
		resp.CloseBodyStream()
		checkConns(t, p, 0, 0)
	}
}
