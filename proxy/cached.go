package proxy

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/http1"
)

// Pages keeps answers of the shop for a moment, for everybody who asks for the same: a shared cache by RFC 9111.
type Pages interface {
	// Find answers page out of memory into resp, or says who is to go to the shop. It may wait, for as long as
	// page.Wait, for somebody else who is there for the same.
	Find(page *Page, resp *fasthttp.Response) Found

	// Keep takes what the shop said to a page that was Fetch. It reports whether resp holds an answer now; if not, there
	// is none. What the shop said may have become what was kept before (RFC 5861), or 304.
	Keep(page *Page, outcome Outcome, resp *fasthttp.Response) bool

	// Leave ends a Fetch for which the shop was not asked.
	Leave(page *Page)

	// Forget drops what is kept of a page (RFC 9111, section 4.4).
	Forget(page *Page)
}

// Page is a request whose answer may be kept.
type Page struct {
	Key     []byte        // scheme, host, path and query
	Head    bool          // the answer has no body
	Fresh   time.Duration // how long an answer is given without asking again, at most
	Wait    time.Duration // for somebody else's fetch, at most
	Request *http1.Request

	Conditions []byte // written by Find: header lines by which the shop may answer 304 to a Fetch
	Outcome    Outcome
	Errand     any // Pages' own, from Find to Keep or Leave
}

// Found is what becomes of a page.
type Found uint8

const (
	Alone  Found = iota // go to the shop; nothing is kept
	Fetch               // go to the shop for all; Keep or Leave is owed
	Served              // it is answered
	Failed              // who went to the shop for all got no answer: page.Outcome
)

// paged finds the request's page, when it may be answered from memory. Whoever says who they are, or asks for a part, is
// answered by the shop alone; so is a request by which some frameworks let a header choose another page.
func (p *Proxy) paged(r *request) bool {
	r.page.Head = len(r.method) == 4
	if r.route.Cache <= 0 || p.pages == nil || r.bypassesPages() {
		return false
	}
	p.pageOf(r)
	return true
}

// pageOf names the page that a request is about, whatever it does to it.
func (p *Proxy) pageOf(r *request) {
	k := append(appendScheme(r.page.Key[:0], r), '\n')
	k = append(append(k, askedHost(r)...), '\n')
	k = append(append(k, r.host...), '\n')
	k = append(k, r.path...)
	if r.query != nil { // "/x?" is another page than "/x"
		k = append(append(k, '?'), r.query...)
	}
	if r.conn.trusted {
		k = p.appendWayHere(k, r)
	}
	r.page.Key = k
	r.page.Fresh, r.page.Wait = r.route.Cache, p.pageWait
	r.page.Request = r.asked
}

// appendWayHere appends what else trusted proxies say of the page's address, often in words that they took from the client:
// some frameworks build links by it. Who the client is, is left out: that chooses no page.
func (p *Proxy) appendWayHere(dst []byte, r *request) []byte {
	for name, value := range r.asked.Fields {
		switch {
		case !fromProxy(name) || equalFold(name, p.clientHeader) || !endToEnd(name):
		case equalFold(name, "Forwarded"):
			dst = appendPlace(dst, value)
		case lower(name[0]) == 'x' && equalFold(name[:min(len(name), len("X-Forwarded-"))], "X-Forwarded-"):
			dst = append(append(append(append(dst, '\n'), name...), ':'), value...)
		}
	}
	return dst
}

// appendPlace appends the parameters of Forwarded (RFC 7239) that are not about who asks. One that holds another "=" is to
// some readers another.
func appendPlace(dst, list []byte) []byte {
	isSeparator := func(c rune) bool { return c == ',' || c == ';' }
	for _, one := range bytes.FieldsFunc(list, isSeparator) {
		one = trimSpace(one)
		who := len(one) > 4 && (equalFold(one[:4], "for=") || equalFold(one[:3], "by=")) && bytes.Count(one, []byte("=")) == 1
		if !who {
			dst = append(append(dst, '\n'), one...)
		}
	}
	return dst
}

func (r *request) bypassesPages() bool {
	if string(r.method) != "GET" && string(r.method) != "HEAD" {
		return true
	}
	if r.asked.Upgrade || r.hasBody() {
		return true
	}
	for name, value := range r.asked.Fields {
		for _, n := range aloneFields {
			if equalFoldDash(name, n) {
				return true
			}
		}
		if equalFold(name, "Cache-Control") && hasToken(value, []byte("no-store")) {
			return true
		}
		if equalFold(name, "Connection") && !equalFold(value, "keep-alive") && !equalFold(value, "close") {
			return true // it takes fields away that the page may vary by
		}
	}
	return false
}

// aloneFields are those with which a request is no page's: of a person, of a part, of another page.
var aloneFields = [...]string{
	"Authorization", "Proxy-Authorization", "Range", "If-Range", "If-Match", "If-Unmodified-Since",
	"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Original-URI",
	"X-Host", "X-Original-Host", "X-HTTP-Host-Override", "X-Scheme", "X-Url-Scheme", "Front-End-Https",
}

// fromPages answers from memory, or says what forward has to do.
func (p *Proxy) fromPages(r *request) Reason {
	if !p.paged(r) {
		return Admitted
	}
	resp := r.resp
	quiet(resp)
	r.conn.StepAside() // somebody else's fetch may be waited for
	switch p.pages.Find(&r.page, resp) {
	case Fetch:
		r.fetches = true
	case Served:
		r.served = true
		p.fromMemory(r)
	case Failed:
		return refusalOf(r.page.Outcome)
	}
	return Admitted
}

// fromMemory makes an answer that was kept ready for this client.
func (p *Proxy) fromMemory(r *request) {
	resp := r.resp
	if p.idHeader != "" {
		resp.Header.SetBytesV(p.idHeader, r.id)
	}
	p.finish(r, resp)
}

// kept hands the shop's answer to the pages, and reports whether there is an answer for the client.
func (p *Proxy) kept(r *request) bool {
	r.resp.Header.Del(shopOrder)
	served := p.pages.Keep(&r.page, r.outcome, r.resp)
	r.fetches = false // not before: a Keep that panics leaves the page to leavePage
	if !served {
		return false
	}
	p.fromMemory(r)
	return true
}

// leavePage ends a fetch that did not come to the shop.
func (p *Proxy) leavePage(r *request) {
	if r.fetches {
		r.fetches = false
		p.pages.Leave(&r.page)
	}
}

// forgetPage drops the page that an unsafe request has changed.
func (p *Proxy) forgetPage(r *request) {
	if p.pages == nil || changesNothing(r.method) || r.outcome != Answered || r.resp.StatusCode() >= 400 {
		return
	}
	p.pageOf(r)
	p.pages.Forget(&r.page)
}

// conditional reports a field by which the shop could leave the answer out. The one who fetches for all needs it whole.
func conditional(name []byte) bool {
	return equalFold(name, "If-None-Match") || equalFold(name, "If-Modified-Since")
}

// changesNothing reports a method that changes nothing (RFC 9110, section 9.2.1).
func changesNothing(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}
