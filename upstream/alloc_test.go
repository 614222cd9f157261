package upstream

import (
	"testing"

	"github.com/valyala/fasthttp"
)

func TestTransport_HotStepsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newPool(t, options("http://"+minimalServer(t), "http://"+minimalServer(t)))
	x := p.targets.Load().all[0]
	c, err := x.ready(openPlace(x), newOrder("GET", "/"), true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer x.drop(c)
	wire := &script{step: 1 << 16}
	e := exchange{conn: newConn(&socket{}, wire)}
	req, resp := smallOrder(), new(fasthttp.Response)
	for name, step := range map[string]func(){
		"probe":    func() { c.fresh() },
		"assemble": func() { c.assemble(req, x.authority) },
		"head": func() {
			wire.said = headOfSmallResponse
			if final, err := e.readHead(); !final || err != nil || e.parseHeader(&resp.Header) != nil {
				t.Fatal("rejected")
			}
		},
		"choice": func() { p.targets.Load().choose(0, 7, 0) },
		"count":  func() { x.counters.count(Broken, resp, 1) },
	} {
		step()
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestTransport_SmallExchangeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, policy := range policies {
		for name, req := range map[string]*Request{"order": smallOrder(), "page": smallPage()} {
			o := options("http://" + minimalServer(t))
			o.Policy = policy
			p := newPool(t, o)
			resp := new(fasthttp.Response)
			send := func() {
				if o := p.Send(req, resp); o != Answered {
					t.Fatal(o)
				}
			}
			send()
			if n := testing.AllocsPerRun(200, send); n != 0 {
				t.Errorf("%s, %s: %v allocations", policy, name, n)
			}
		}
	}
}

// An idle connection holds 8 KiB at most, whatever its last exchange needed.
func TestTransport_IdleConnectionHoldsLittleMemory(t *testing.T) {
	c := newConn(&socket{}, &script{})
	for _, size := range []int{100, readBufferSize, requestBufferKept + 1, smallRequest} {
		c.out = make([]byte, size)
		c.in.buf = nil
		if err := c.in.wait(1); err == nil {
			t.Fatal("a script without bytes has some")
		}
		c.reset()
		if held := cap(c.out) + c.in.buf.Size(); held > 8<<10 {
			t.Errorf("%d bytes after a request of %d", held, size)
		}
	}
}
