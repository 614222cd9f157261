package upstream

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A process that was stopped for longer than an order's units are held does not send it: they may be another's by then.
func TestTransport_OrderWhoseUnitsAreHeldNoMoreIsNotSent(t *testing.T) {
	p := newPool(t, options(newRawServer(t, echo).url()))
	for _, held := range []time.Duration{time.Minute, -time.Second, 0} { // a pooled connection, too
		req, want := newOrder("POST", "/order"), Answered
		if req.Until = time.Now().Add(held).UnixMilli(); held <= 0 {
			want = Busy
		}
		if got := p.Send(req, new(fasthttp.Response)); got != want {
			t.Errorf("held for another %v: %v, want %v", held, got, want)
		}
	}
	if got := p.Send(newOrder("POST", "/order"), new(fasthttp.Response)); got != Answered {
		t.Errorf("without an end: %v", got)
	}
}
