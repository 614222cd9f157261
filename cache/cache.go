// Package cache keeps answers of the shop for a moment and gives them to everybody who asks for the same: a shared HTTP
// cache (RFC 9111) for the pages that a crowd loads again and again before a sale. It promises that one request at a
// time asks the shop for a page, that nothing is given to others which its answer forbids to give them, and that its
// memory is bounded. It keeps no answer to a person (Authorization, Set-Cookie, private), no part of one (206), and
// nothing on disk.
package cache

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/upstream"
)

// Options of a Cache.
type Options struct {
	Size int64 // bytes of all answers, their keys and headers included; 1 or above
	// beyond its freshness an answer is given while one request fetches it anew (RFC 5861)
	StaleWhileRevalidate time.Duration
	StaleIfError         time.Duration    // and when the shop gives none, or one of 5xx
	Now                  func() time.Time // nil = time.Now
}

// Cache implements proxy.Cache. It is safe for concurrent use.
type Cache struct {
	kept    *otter.Cache[uint64, *entry]
	flights flights
	seed    maphash.Seed
	now     func() time.Time
	stale   atomic.Pointer[staleness]
	marks   atomic.Uint64
	counts  counts
}

// staleness is how long what is no longer fresh may be given, where the answer does not say so itself.
type staleness struct{ whileRevalidate, ifError time.Duration }

// entry is what is kept under one key: an answer; or by which fields of the request its answers vary; or that there is
// nothing to be kept.
type entry struct {
	key    string
	answer *answer
	vary   []string // names in lower case
	mark   uint64   // of vary: those before it are another's
	alone  time.Time
}

// aloneFor is how long it is remembered that a page cannot be kept, so that no request waits for another's.
const aloneFor = 10 * time.Second

// New returns an empty cache.
func New(o Options) (*Cache, error) {
	if o.Size < 1 {
		return nil, errors.New("cache: size: want 1 byte or more")
	}
	c := &Cache{seed: maphash.MakeSeed(), now: o.Now}
	if c.now == nil {
		c.now = time.Now
	}
	c.flights.of = make(map[string]*flight)
	var err error
	c.kept, err = otter.New(&otter.Options[uint64, *entry]{
		MaximumWeight: uint64(o.Size),
		Weigher:       func(_ uint64, e *entry) uint32 { return e.weight() },
		Executor:      func(f func()) { f() }, // no goroutines
		Logger:        &otter.NoopLogger{},
	})
	c.Adjust(o)
	return c, err
}

// Adjust changes size and staleness; what is kept stays.
func (c *Cache) Adjust(o Options) {
	c.stale.Store(&staleness{o.StaleWhileRevalidate, o.StaleIfError})
	c.kept.SetMaximum(uint64(max(o.Size, 1)))
}

// fetch is what a Fetch is about.
type fetch struct {
	key    string // as the flight is known
	flight *flight
	stale  *answer   // nil = nothing is kept
	sent   time.Time // when the shop was asked, about
}

// Lookup implements proxy.Cache.
func (c *Cache) Lookup(page *proxy.Page, resp *fasthttp.Response) proxy.CacheStatus {
	return c.lookUp(page, resp, true)
}

// lookUp is Find; first is that it has not waited yet for another request's fetch.
func (c *Cache) lookUp(page *proxy.Page, resp *fasthttp.Response, first bool) proxy.CacheStatus {
	now := c.now()
	key, e := c.lookUpEntry(page)
	switch {
	case e == nil:
	case e.answer == nil:
		if now.Before(e.alone) {
			c.counts.add(passed)
			return proxy.CacheBypass
		}
	case e.answer.freshAt(now, page.Fresh):
		c.counts.add(hit)
		e.answer.serve(page, resp, now, "Sluice; hit")
		return proxy.CacheHit
	}
	if page.Head {
		c.counts.add(passed)
		return proxy.CacheBypass // its answer could not be kept
	}
	var old *answer
	if e != nil {
		old = e.answer
	}
	if old != nil && old.spares(now, page.Fresh) && old.usableAt(now, page.Fresh, old.ifError(c.stale.Load())) {
		c.counts.add(stale)
		old.serve(page, resp, now, "Sluice; hit; detail=error")
		return proxy.CacheHit
	}
	f, leads := c.flights.join(key)
	if leads {
		if found := c.again(page, resp, now); found {
			c.flights.end(string(key), f, nil, upstream.Answered)
			return proxy.CacheHit
		}
		page.Token = &fetch{string(key), f, old, now}
		page.Conditions = old.appendConditions(page.Conditions[:0])
		return proxy.CacheMiss
	}
	if old != nil && old.usableAt(now, page.Fresh, old.whileRevalidate(c.stale.Load())) {
		c.counts.add(stale)
		old.serve(page, resp, now, "Sluice; hit; detail=updating")
		return proxy.CacheHit
	}
	if found, ok := c.await(page, resp, f, old, first); ok {
		return found
	}
	page.Wait = max(0, page.Wait-c.now().Sub(now))
	return c.lookUp(page, resp, false)
}

// again looks once more, by the request that came to lead just after another has fetched.
func (c *Cache) again(page *proxy.Page, resp *fasthttp.Response, now time.Time) bool {
	if _, e := c.lookUpEntry(page); e != nil && e.answer != nil && e.answer.freshAt(now, page.Fresh) {
		c.counts.add(hit)
		e.answer.serve(page, resp, now, "Sluice; hit")
		return true
	}
	return false
}

// await waits for another request's fetch. ok is false when that has shown, for the first time, that the page varies,
// and that it was of another variant: then one request is to fetch this one, not all who have waited.
func (c *Cache) await(page *proxy.Page, resp *fasthttp.Response, f *flight, old *answer,
	first bool) (found proxy.CacheStatus, ok bool) {
	page.Client.StepAside()
	late := time.NewTimer(page.Wait)
	defer late.Stop()
	select {
	case <-f.done:
	case <-late.C:
	}
	now := c.now()
	got, outcome, done := f.result()
	switch {
	case got != nil && got.selects(page) && got.freshAt(now, page.Fresh):
		c.counts.add(collapsed)
		got.serve(page, resp, now, "Sluice; fwd=miss; collapsed")
		return proxy.CacheHit, true
	case got != nil && first && !got.selects(page):
		return proxy.CacheBypass, false
	case old != nil && (!done || outcome != upstream.Answered || got == nil) &&
		old.usableAt(now, page.Fresh, old.ifError(c.stale.Load())):
		c.counts.add(stale)
		old.serve(page, resp, now, "Sluice; hit; detail=error")
		return proxy.CacheHit, true
	case !done:
		outcome = upstream.TimedOut // as a request to the upstream itself; one that hangs gets no more of them
		fallthrough
	case outcome != upstream.Answered:
		c.counts.add(failed)
		page.Outcome = outcome
		return proxy.CacheError, true
	}
	c.counts.add(passed)
	return proxy.CacheBypass, true
}

// Store implements proxy.Cache.
func (c *Cache) Store(page *proxy.Page, outcome upstream.Outcome, resp *fasthttp.Response) bool {
	run := page.Token.(*fetch)
	now := c.now()
	old := run.stale
	broken := outcome != upstream.Answered || resp.StatusCode() >= 500
	if broken && old != nil && old.usableAt(now, page.Fresh, old.ifError(c.stale.Load())) {
		old.failed.Store(now.UnixNano())
		c.end(page, run, nil, upstream.Broken)
		c.counts.add(stale)
		old.serve(page, resp, now, "Sluice; hit; detail=error")
		return true
	}
	if outcome != upstream.Answered {
		c.end(page, run, nil, outcome)
		c.counts.add(failed)
		return false
	}
	kept, said := c.newAnswer(page, run, resp, now)
	if kept == nil {
		if !c.peculiar(page, resp, old, now) {
			c.storeEntry(page.Key, &entry{alone: now.Add(aloneFor)})
		}
		c.end(page, run, nil, upstream.Answered)
		c.counts.add(missed)
		return false
	}
	c.store(page, kept)
	c.end(page, run, kept, upstream.Answered)
	kept.serve(page, resp, now, said)
	return true
}

// peculiar reports an answer that is likely to be this one request's and not the page's: of an error; or of a page of
// which there was another answer a moment ago. One odd request must not send the crowd to the shop.
func (c *Cache) peculiar(page *proxy.Page, resp *fasthttp.Response, old *answer, now time.Time) bool {
	return resp.StatusCode() >= 400 || old != nil && old.usableAt(now, page.Fresh, old.whileRevalidate(c.stale.Load()))
}

// newAnswer makes an answer to keep of what the shop said: nil when it must not be kept.
func (c *Cache) newAnswer(page *proxy.Page, run *fetch, resp *fasthttp.Response, now time.Time) (a *answer,
	said string) {
	if resp.StatusCode() == fasthttp.StatusNotModified {
		if run.stale == nil {
			return nil, ""
		}
		a, keep := run.stale.freshened(&resp.Header, run.sent, now)
		if !keep {
			a.serve(page, resp, now, "Sluice; fwd=stale; fwd-status=304")
			return nil, ""
		}
		c.counts.add(revalidated)
		return a, "Sluice; fwd=stale; fwd-status=304; stored"
	}
	body, whole := bodyOf(resp)
	if !whole {
		return nil, ""
	}
	if a = newAnswer(page, resp, body, run.sent, now); a == nil {
		return nil, ""
	}
	c.counts.add(missed)
	if run.stale != nil {
		return a, "Sluice; fwd=stale; stored"
	}
	return a, "Sluice; fwd=miss; stored"
}

// bodyOf is the body, if all of it is in memory.
func bodyOf(resp *fasthttp.Response) (body []byte, whole bool) {
	if !resp.IsBodyStream() {
		return resp.Body(), true
	}
	if s, ok := resp.BodyStream().(interface{ Whole() []byte }); ok {
		return s.Whole(), true
	}
	return nil, false
}

// Abandon implements proxy.Cache. After a Store that came to its end it does nothing.
func (c *Cache) Abandon(page *proxy.Page) {
	if run, ok := page.Token.(*fetch); ok {
		c.end(page, run, nil, upstream.Answered)
	}
}

// end tells all who wait what came, once: a fetch without an end would have all who want the page wait for it.
func (c *Cache) end(page *proxy.Page, run *fetch, got *answer, outcome upstream.Outcome) {
	page.Token = nil
	c.flights.end(run.key, run.flight, got, outcome)
}

// Forget implements proxy.Cache. Answers that vary are found no more either: by the mark of what they vary by.
func (c *Cache) Forget(page *proxy.Page) {
	c.kept.Invalidate(maphash.Bytes(c.seed, page.Key))
}
