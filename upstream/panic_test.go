package upstream

import "testing"

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
