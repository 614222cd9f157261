package cache

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/proxy/server"
	"sluice/upstream"
)

// crowd has many ask at once, and counts what they were told.
func crowd(d *testCache, n int, path string) (answered, failed int64) {
	var wg sync.WaitGroup
	var ok, bad atomic.Int64
	for range n {
		wg.Go(func() {
			if _, failed := d.get(path); failed {
				bad.Add(1)
			} else {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	return ok.Load(), bad.Load()
}

// slow is a shop that takes half a second.
func slow(outcome upstream.Outcome, header, body string) func(string, *fasthttp.Response) upstream.Outcome {
	return func(_ string, resp *fasthttp.Response) upstream.Outcome {
		time.Sleep(500 * time.Millisecond) // of the bubble
		fill(resp, 200, header, body)
		return outcome
	}
}

// hangs is a shop that takes an hour.
func hangs(string, *fasthttp.Response) upstream.Outcome {
	time.Sleep(time.Hour) // of the bubble
	return upstream.TimedOut
}

func TestCrowd_AsksTheShopOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.shop = slow(upstream.Answered, "", "x")
		if ok, _ := crowd(d, 1000, "/p"); ok != 1000 || len(d.asked) != 1 {
			t.Errorf("%d answers of %d requests to the shop, want 1000 of 1", ok, len(d.asked))
		}
	})
}

func TestCrowd_WhoWaitsForAFailureHearsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.shop = slow(upstream.Broken, "", "")
		if _, failed := crowd(d, 100, "/p"); failed != 100 || len(d.asked) != 1 {
			t.Errorf("%d failures of %d requests to the shop, want 100 of 1", failed, len(d.asked))
		}
	})
}

func TestCrowd_WhoWaitsForWhatIsAPersonsGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.shop = slow(upstream.Answered, "Set-Cookie: sid=1", "x")
		if ok, _ := crowd(d, 100, "/p"); ok != 100 || len(d.asked) != 100 {
			t.Errorf("%d answers of %d requests to the shop, want 100 of 100", ok, len(d.asked))
		}
		before := time.Now()
		crowd(d, 100, "/p")
		if len(d.asked) != 200 || time.Since(before) != 500*time.Millisecond {
			t.Errorf("%d requests to the shop in %v: it was forgotten that this cannot be kept", len(d.asked),
				time.Since(before))
		}
	})
}

func TestCrowd_WhileOneFetchesAnewTheOthersAreAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.says(200, "", "old")
		d.get("/p")
		d.pass(5 * time.Second)
		d.shop = slow(upstream.Answered, "", "new")
		var first sync.WaitGroup
		first.Go(func() {
			if resp, _ := d.get("/p"); string(resp.Body()) != "new" {
				t.Errorf("who fetches gets %q", resp.Body())
			}
		})
		synctest.Wait()
		before := time.Now()
		if resp, _ := d.get("/p"); string(resp.Body()) != "old" || !time.Now().Equal(before) {
			t.Errorf("%q after %v", resp.Body(), time.Since(before))
		}
		first.Wait()
		d.want(t, "new", 2, "/p")
	})
}

func TestCrowd_ShopThatHangsHoldsNoRequestForLongerThanItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.says(200, "", "old")
		d.get("/p")
		d.pass(30 * time.Second) // beyond stale-while-revalidate
		d.shop = hangs
		go d.get("/p")
		synctest.Wait()
		before := time.Now()
		if resp, _ := d.get("/p"); string(resp.Body()) != "old" || time.Since(before) > time.Second {
			t.Errorf("%q after %v, want the old answer after the wait of a second", resp.Body(), time.Since(before))
		}
		time.Sleep(time.Hour) // of the bubble
		synctest.Wait()
	})
}

func TestCrowd_NoRequestIsSentToAShopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.shop = hangs
		go d.get("/p")
		synctest.Wait()
		if _, failed := d.get("/p"); !failed || len(d.asked) != 1 {
			t.Errorf("who has waited: failed %v, and the shop was asked %d times", failed, len(d.asked))
		}
		time.Sleep(time.Hour) // of the bubble
		synctest.Wait()
	})
}

// A shop that answers 5xx at once, or rejects connections, would else be asked as fast as a crowd can.
func TestCrowd_ShopThatFailsIsAskedOnceAMoment(t *testing.T) {
	d := open(t)
	d.says(200, "", "good")
	d.want(t, "good", 1, "/")
	d.pass(2 * freshFor)
	d.says(503, "", "bad")
	for range 100 {
		d.want(t, "good", 2, "/")
	}
	d.pass(freshFor)
	d.want(t, "good", 3, "/")
	d.want(t, "good", 3, "/")
	d.pass(freshFor)
	d.says(200, "", "better")
	d.want(t, "better", 4, "/")
}

func TestCrowd_FetchThatIsLeftLetsAnotherGo(t *testing.T) {
	d := open(t)
	d.says(200, "", "x")
	page := &proxy.Page{Key: []byte("/p"), Fresh: freshFor, Wait: time.Second, Request: heard(), Client: new(server.Conn)}
	if found := d.Lookup(page, new(fasthttp.Response)); found != proxy.CacheMiss {
		t.Fatalf("%v, want Fetch", found)
	}
	d.Abandon(page)
	d.want(t, "x", 1, "/p")
}

func TestCrowd_PanicWhileAnAnswerIsKeptLetsAnotherGo(t *testing.T) {
	d := open(t)
	page := &proxy.Page{Key: []byte("/p"), Fresh: freshFor, Wait: time.Second, Request: heard(), Client: new(server.Conn)}
	d.Lookup(page, new(fasthttp.Response))
	func() {
		defer func() { _ = recover() }()
		d.Store(page, upstream.Answered, nil)
		t.Error("no panic: this shows nothing")
	}()
	d.Abandon(page)
	d.Abandon(page)
	d.says(200, "", "x")
	d.want(t, "x", 1, "/p")
}

func TestCrowd_HitAllocatesNothing(t *testing.T) {
	d := open(t)
	d.says(200, "Content-Type: text/html\nEtag: \"v1\"", "x")
	d.get("/p")
	page := &proxy.Page{Key: []byte("/p"), Fresh: freshFor, Request: heard(), Client: new(server.Conn)}
	resp := new(fasthttp.Response)
	if n := testing.AllocsPerRun(1000, func() { d.Lookup(page, resp) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
