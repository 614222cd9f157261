package upstream

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

func TestHotStepsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newPool(t, options("http://"+minimalShop(t), "http://"+minimalShop(t)))
	x := p.targets.Load().all[0]
	c, err := x.take(true, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer x.drop(c)
	first, _, _ := strings.Cut(smallAnswer, "\r\n\r\n")
	raw := []byte(first + "\r\n\r\n")
	var h head
	resp := new(fasthttp.Response)
	for name, step := range map[string]func(){
		"probe":  func() { c.fresh() },
		"head":   func() { h.parse(raw, c.kept); c.kept = h.kept },
		"fill":   func() { p.headers.fill(&resp.Header, c.kept) },
		"choice": func() { p.targets.Load().choose(0, 7, 0) },
		"count":  func() { x.counters.count(proxy.Broken, resp, 1) },
	} {
		step()
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestSmallExchangeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, policy := range policies {
		o := options("http://" + minimalShop(t))
		o.Policy = policy
		p := newPool(t, o)
		resp := new(fasthttp.Response)
		send := func() {
			if o := p.Send(&order, resp); o != proxy.Answered {
				t.Fatal(o)
			}
		}
		send()
		if n := testing.AllocsPerRun(200, send); n != 0 {
			t.Errorf("%s: %v allocations", policy, n)
		}
	}
}
