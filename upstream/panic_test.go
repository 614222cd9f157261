package upstream

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// A panic in an exchange costs the request, and its connection, but not the room for it.
func TestPanicInAnExchangeLeavesNoConnectionBehind(t *testing.T) {
	shop := newRawShop(t, answerEach)
	o := options(shop.url())
	o.MaxConns = 8
	p := newPool(t, o)
	_, addr, inside := gateTo(t, p)
	s := shopperAt(t, addr)
	only := p.targets.Load().all[0]
	well := only.headers
	for range 20 {
		s.must(t, "/well") // and leaves its connection for the next request
		only.headers = nil
		s.ask("GET", "/panics")
		status, _, last, err := s.hear("GET")
		if status != 500 || err != nil {
			t.Fatal(status, err)
		}
		if last {
			s = shopperAt(t, addr)
		}
		only.headers = well
	}
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle {
		t.Errorf("%+v", st)
	}
	inside.empty(t)
}

// Nor the room for answers that have come whole.
func TestPanicBehindAnAnswerLeavesItsRoom(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		for {
			if _, _, err := v.request(); err != nil {
				return
			}
			v.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwell\r\n0\r\n\r\n")
		}
	})
	p := newPool(t, options(shop.url()))
	p.targets.Load().all[0].headers = nil
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing panicked")
			}
		}()
		out := orderFor("POST", "/")
		out.Stream = true
		p.Send(out, new(fasthttp.Response))
	}()
	if held := storeRoom - p.room.left.Load(); held != 0 {
		t.Errorf("%d bytes are held for nobody", held)
	}
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != 0 {
		t.Errorf("%+v", st)
	}
}
