package proxy

import (
	"encoding/binary"
	"io"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// forward hands the request to the shop, once, and the shop's answer to the client.
func (p *Proxy) forward(r *request) Reason {
	p.build(r)
	resp := &r.ctx.Response
	quiet(resp)
	outcome := p.shop.Send(&r.out, resp)
	r.shard.took[r.route.index][outcome].observe(time.Duration(p.clock() - r.now))
	switch outcome {
	case NotSent:
		return NoUpstream
	case TimedOut:
		return UpstreamTimeout
	case Broken:
		return UpstreamError
	}
	p.finish(r, resp)
	return Admitted
}

// finish makes the shop's answer ready for the client. An answer that is a stream takes along what is to be given back.
func (p *Proxy) finish(r *request, resp *fasthttp.Response) {
	if p.idHeader != "" && len(resp.Header.Peek(p.idHeader)) == 0 {
		resp.Header.SetBytesV(p.idHeader, r.id)
	}
	if !r.bodyConsumed() {
		r.conn.unread = true
		resp.SetConnectionClose()
	}
	if resp.IsBodyStream() && (r.admitted || r.placed) {
		p.leaveLater(r, resp.BodyStream())
	}
}

// leaveLater keeps the place in the shop until a streamed answer has ended. The SKU lies in the request, which is
// gone by then: a copy.
func (p *Proxy) leaveLater(r *request, answer io.Reader) {
	ends, ok := answer.(interface{ OnClose(func()) })
	if !ok {
		return
	}
	held := &request{admitted: r.admitted, placed: r.placed, sku: append([]byte(nil), r.sku...)}
	r.admitted, r.placed = false, false
	ends.OnClose(func() { p.leave(held) })
}

// build makes the request that the shop shall see, out of what was judged.
func (p *Proxy) build(r *request) {
	r.line = append(append(r.line[:0], r.method...), ' ')
	r.line = append(r.line, r.path...)
	if r.query != nil { // "/x?" keeps its question mark
		r.line = append(append(r.line, '?'), r.query...)
	}
	r.line = append(r.line, " HTTP/1.1\r\n"...)
	r.out = Outgoing{
		Line:   r.line,
		Head:   string(r.method) == "HEAD",
		Order:  r.route.gated(),
		Stream: true,
		Key:    clientKey(r),
	}
	if p.passHost {
		r.out.Host = r.ctx.Request.Header.Host()
	}
	r.fieldBuffer = p.appendFields(r.fieldBuffer[:0], r)
	p.attachBody(r)
	r.out.Fields = r.fieldBuffer
}

// appendFields appends what may travel on, in the order in which it came, then what the gate says itself.
func (p *Proxy) appendFields(dst []byte, r *request) []byte {
	named := r.namedByConnection()
	f := r.fields()
	for name, value, ok := f.next(); ok; name, value, ok = f.next() {
		if !endToEnd(name) && !(r.conn.trusted && fromProxy(name)) || len(named) > 0 && hasToken(named, name) || equalFold(name, p.idHeader) {
			continue
		}
		dst = appendField(dst, name, value)
	}
	if len(r.id) > 0 {
		dst = appendField(dst, []byte(p.idHeader), r.id)
	}
	return p.appendForwarded(dst, r)
}

func appendField(dst, name, value []byte) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// appendForwarded says where the request came from. What came with it is extended only for trusted proxies.
func (p *Proxy) appendForwarded(dst []byte, r *request) []byte {
	h := &r.ctx.Request.Header
	dst = append(dst, "X-Forwarded-For: "...)
	if r.conn.trusted {
		f := r.fields()
		for name, value, ok := f.next(); ok; name, value, ok = f.next() {
			if equalFold(name, "X-Forwarded-For") && len(value) > 0 {
				dst = append(append(dst, value...), ", "...)
			}
		}
	}
	if r.conn.peer.IsValid() {
		dst = r.conn.peer.AppendTo(dst)
	} else {
		dst = append(dst, "127.0.0.1"...) // a unix socket: somebody on this machine
	}
	dst = append(dst, "\r\n"...)
	proto, host := []byte("http"), h.Host()
	if r.conn.server.Secure {
		proto = []byte("https")
	}
	if r.conn.trusted {
		proto, host = orElse(h.Peek("X-Forwarded-Proto"), proto), orElse(h.Peek("X-Forwarded-Host"), host)
	}
	dst = appendField(dst, []byte("X-Forwarded-Proto"), proto)
	if len(host) > 0 {
		dst = appendField(dst, []byte("X-Forwarded-Host"), host)
	}
	f := r.fields()
	for name, value, ok := f.next(); ok; name, value, ok = f.next() {
		if equalFold(name, "Via") {
			dst = appendField(dst, name, value)
		}
	}
	version := "1.1"
	if !h.IsHTTP11() {
		version = "1.0"
	}
	return append(append(append(dst, "Via: "...), version...), " sluice\r\n"...)
}

func orElse(v, otherwise []byte) []byte {
	if len(v) > 0 {
		return v
	}
	return otherwise
}

// attachBody frames the body anew: whole where it is in memory, else as a stream.
func (p *Proxy) attachBody(r *request) {
	stream := r.ctx.RequestBodyStream()
	length := r.ctx.Request.Header.ContentLength()
	switch {
	case r.bodyRead:
		r.out.Body = r.body
		if len(r.body) > 0 || framed(r) {
			r.frame(int64(len(r.body)))
		}
	case stream == nil:
		if framed(r) {
			r.frame(0)
		}
	case length >= 0 && length <= prefetched:
		r.bodyBuffer, _ = appendAtMost(r.bodyBuffer[:0], stream, prefetched)
		r.bodyRead, r.bodyWhole, r.body = true, true, r.bodyBuffer
		r.out.Body = r.body
		r.frame(int64(len(r.body)))
	default:
		r.upload.Reader = stream
		r.out.BodyStream, r.out.BodyLength = &r.upload, int64(length)
		if length < 0 {
			r.out.BodyLength = -1
			r.fieldBuffer = append(r.fieldBuffer, "Transfer-Encoding: chunked\r\n"...)
		} else {
			r.frame(int64(length))
		}
	}
}

func (r *request) frame(length int64) {
	r.fieldBuffer = append(r.fieldBuffer, "Content-Length: "...)
	r.fieldBuffer = append(strconv.AppendInt(r.fieldBuffer, length, 10), "\r\n"...)
}

// framed reports whether the client itself announced a body, an empty one included.
func framed(r *request) bool {
	f := r.fields()
	for name, _, ok := f.next(); ok; name, _, ok = f.next() {
		if equalFold(name, "Content-Length") || equalFold(name, "Transfer-Encoding") {
			return true
		}
	}
	return false
}

// clientKey mixes the client's address into 64 bits (the finisher of SplitMix64).
func clientKey(r *request) uint64 {
	a := r.clientAddr().As16()
	x := binary.BigEndian.Uint64(a[:8]) ^ binary.BigEndian.Uint64(a[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
