package proxy

import (
	"bytes"
	"net/http"

	"github.com/valyala/fasthttp"

	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
)

// internalPath is where the proxy answers itself, before any route.
const internalPath = "/.sluice/"

// endpoint is one of the proxy's own addresses. It writes a complete response, or returns why it cannot.
type endpoint struct {
	serves func(p *Proxy, path []byte) bool
	answer func(p *Proxy, r *Request) rejection
}

var endpoints = [...]endpoint{
	{serves: func(_ *Proxy, path []byte) bool { return string(path) == scriptPath },
		answer: (*Proxy).answerScript},
	{serves: func(p *Proxy, path []byte) bool { return p.Orders != nil && bytes.HasPrefix(path, []byte(orderPath)) },
		answer: (*Proxy).answerOrderState},
	{serves: func(p *Proxy, path []byte) bool { return p.Availability != nil && isStockPath(path) },
		answer: (*Proxy).answerStock},
	{serves: (*Proxy).isRoomPath, answer: (*Proxy).answerRoom},
}

// serveInternal answers a request for one of the proxy's own addresses, within the deny list and the request rate of
// the connection; it reports false when r is none.
func (p *Proxy) serveInternal(r *Request) bool {
	head := r.head
	if !bytes.HasPrefix(head.Target, []byte(internalPath)) {
		return false
	}
	preflight := isPreflight(r)
	if !preflight && !route.SafeMethod(head.Method) && !p.changesSomething(head) {
		return false
	}
	for i := range endpoints {
		if e := &endpoints[i]; e.serves(p, head.Path) {
			if preflight {
				e = &endpoint{answer: (*Proxy).answerPreflight}
			}
			r.route, r.internal = &p.unmatched, true
			p.answerInternal(r, e)
			return true
		}
	}
	return false
}

// changesSomething reports a request by which an order that waits is cancelled, or a person enters a waiting room.
func (p *Proxy) changesSomething(head *server.Request) bool {
	switch string(head.Method) {
	case "DELETE":
		return p.Queue != nil && bytes.HasPrefix(head.Path, []byte(orderPath))
	case "POST":
		return p.isRoomPath(head.Path)
	}
	return false
}

func (p *Proxy) answerInternal(r *Request, e *endpoint) {
	r.checks = p.internalChecks
	if !r.conn.Resumed() && !p.passesChecks(r) {
		p.reject(r)
		return
	}
	if r.rejection = e.answer(p, r); r.rejection.Reason != reject.Admitted {
		p.reject(r)
	}
}

// answerPreflight tells a browser what a page of another origin may ask the proxy itself (Fetch, section 3.2.2).
// Without an Access-Control-Allow-Origin the browser asks nothing.
func (p *Proxy) answerPreflight(r *Request) rejection {
	out := &r.ctx.Response
	server.Begin(out, http.StatusNoContent)
	out.Header.Add("Vary", "Origin")
	p.responder.AllowOrigin(r.conn.Prepared(), r.head.Peek("Origin"))
	if p.Queue != nil {
		out.Header.Add("Access-Control-Allow-Methods", "GET, HEAD, DELETE")
		out.Header.Add("Access-Control-Allow-Headers", "If-None-Match, Prefer")
	} else {
		out.Header.Add("Access-Control-Allow-Methods", "GET, HEAD")
		out.Header.Add("Access-Control-Allow-Headers", "If-None-Match")
	}
	r.discardBody()
	return rejection{}
}

// localResponse begins an answer of the proxy's own.
func (r *Request) localResponse(status int, contentType string) *fasthttp.Response {
	out := &r.ctx.Response
	server.Begin(out, status)
	if status != 304 {
		out.Header.Add("Content-Type", contentType)
	}
	if len(r.id) > 0 {
		out.Header.AddBytesV(r.proxy.RequestIDHeader, r.id)
	}
	r.discardBody()
	return out
}

// taggedResponse begins an answer that has an ETag; 304 where the client has the same. mark is what of the tag is
// looked for.
func (r *Request) taggedResponse(tag, mark, contentType string) *fasthttp.Response {
	status := 200
	if has := r.head.Peek("If-None-Match"); string(has) == "*" || bytes.Contains(has, []byte(mark)) {
		status = 304
	}
	out := r.localResponse(status, contentType)
	out.Header.Add("ETag", tag)
	return out
}

// scriptPath is where pages of the shop load the script from.
const scriptPath = "/.sluice/client.js"

// transientReasons are those after which the script sends the order again.
func transientReasons() (names []string) {
	for _, reason := range reject.Reasons() {
		if reason.Transient() && reason != reject.ClientGone {
			names = append(names, reason.String())
		}
	}
	return names
}

// answerScript serves the script: from a cache for five minutes, and by its ETag after that, so that a new version of
// the gateway is in force soon.
func (p *Proxy) answerScript(r *Request) rejection {
	text, tag, encoding := p.script.Plain, p.script.ETag, ""
	if acceptsGzip(r.head.Peek("Accept-Encoding")) {
		text, tag, encoding = p.script.Gzip(), p.script.GzipETag, "gzip"
	}
	out := r.taggedResponse(tag, tag, "text/javascript; charset=utf-8") // RFC 9239
	out.Header.Add("Cache-Control", "public, max-age=300")
	out.Header.Add("Vary", "Accept-Encoding")
	if out.StatusCode() == 200 {
		if encoding != "" {
			out.Header.Add("Content-Encoding", encoding)
		}
		out.AppendBody(text)
	}
	return rejection{}
}
