package proxy

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/upstream"
)

// Cache keeps responses of the upstream for a moment, for every client that asks for the same: a shared cache by
// RFC 9111.
type Cache interface {
	// Lookup answers page out of memory into resp, or says who is to go to the upstream. It may wait, for as long as
	// page.Wait, for another request that is there for the same.
	Lookup(page *Page, resp *fasthttp.Response) CacheStatus

	// Store takes what the upstream said to a page that was CacheMiss. It reports whether resp holds an answer now; if
	// not, there is none. What the upstream said may have become what was kept before (RFC 5861), or 304.
	Store(page *Page, outcome upstream.Outcome, resp *fasthttp.Response) bool

	// Abandon ends a CacheMiss for which the upstream was not asked.
	Abandon(page *Page)

	// Forget drops what is kept of a page (RFC 9111, section 4.4).
	Forget(page *Page)
}

// Page is a request whose response may be kept.
type Page struct {
	Key     []byte        // scheme, host, path and query
	Head    bool          // the response has no body
	Fresh   time.Duration // how long a response serves without asking again, at most
	Wait    time.Duration // for another request's fetch, at most
	Request *server.Request
	Client  server.Client // its StepAside comes before a wait

	Conditions []byte // written by Lookup: header lines by which the upstream may answer 304 to a miss
	Outcome    upstream.Outcome
	Token      any // the Cache's own, from Lookup to Store or Abandon
}

// CacheStatus is what becomes of a page.
type CacheStatus uint8

// The states.
const (
	CacheBypass CacheStatus = iota // go to the upstream; nothing is kept
	CacheMiss                      // go to the upstream for all; Store or Abandon is owed
	CacheHit                       // it is answered
	CacheError                     // the request that went to the upstream for all got no response: page.Outcome
)

// pageState is what the page cache knows of a request.
type pageState struct {
	Page
	fetches bool // Lookup said CacheMiss: Store or Abandon is owed
	served  bool // from memory
}

// checkCache answers from memory, or says what forward has to do.
func (p *Proxy) checkCache(r *Request) rejection {
	if r.hasBody() || bypassesCache(r.head) {
		return rejection{}
	}
	p.namePage(r)
	switch p.Cache.Lookup(&r.page.Page, &r.ctx.Response) {
	case CacheMiss:
		r.page.fetches = true
	case CacheHit:
		r.page.served = true
	case CacheError:
		return rejection{Reason: reasonOf(r.page.Outcome)}
	}
	r.checked = p.Now()
	return rejection{}
}

// namePage names the page that a request is about, whatever it does to it.
func (p *Proxy) namePage(r *Request) {
	head := r.head
	at := pageSite{Scheme: r.scheme(), Host: r.requestedHost(), Route: r.source.Host, Trusted: r.client.trusted,
		ClientHeader: p.ClientHeader}
	r.page.Key = appendPageKey(r.page.Key[:0], head, at)
	r.page.Head = string(head.Method) == "HEAD"
	r.page.Fresh, r.page.Wait = r.route.Route.Cache, max(p.CacheWait, r.route.Timeout)
	r.page.Request, r.page.Client = head, r.conn
}

// storePage hands the upstream's response to the cache, and reports whether there is a response for the client.
func (p *Proxy) storePage(r *Request) bool {
	r.ctx.Response.Header.Del(OrderHeader)
	served := p.Cache.Store(&r.page.Page, r.attempt.outcome, &r.ctx.Response)
	r.page.fetches = false // not before: a Store that panics leaves the page to leavePage
	if served {
		r.ctx.Response.Header.Del(p.RequestIDHeader) // of the request that it was fetched for
		p.finishResponse(r)
	}
	return served
}

// leavePage ends a fetch that did not come to the upstream.
func (p *Proxy) leavePage(r *Request) {
	if r.page.fetches {
		r.page.fetches = false
		p.Cache.Abandon(&r.page.Page)
	}
}

// forgetPage drops the page that an unsafe request has changed.
func (p *Proxy) forgetPage(r *Request) {
	safe := route.SafeMethod(r.head.Method) || string(r.head.Method) == "OPTIONS" // RFC 9110, section 9.2.1
	if p.Cache == nil || safe || r.ctx.Response.StatusCode() >= 400 {
		return
	}
	p.namePage(r)
	p.Cache.Forget(&r.page.Page)
}
