package proxy

import (
	"io"
	"net/netip"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"
)

// request is what the gate knows of one request while it judges and forwards it. It is pooled; nothing in it
// outlives Handle, but for the stream that takes its releases along.
type request struct {
	proxy *Proxy
	ctx   *fasthttp.RequestCtx
	conn  *Conn
	now   int64 // monotonic ns of the gate's clock, read once
	route *route
	shard *shard

	method, host, path, query []byte
	caught                    captures
	id                        []byte
	client                    netip.Addr // by clientAddr
	sku, user                 []byte

	bodyRead, bodyWhole bool // reading was begun; and it came to its end
	upload              upload
	body                []byte
	json                *fastjson.Value
	parser              *fastjson.Parser

	admitted bool // Stock.Enter said yes: Leave is owed
	placed   bool // Places.Enter said yes: Leave is owed
	out      Outgoing

	// Room that is kept from one request to the next.
	hostBuffer, scratch, value, number, idBuffer, clientBuffer, bodyBuffer, line, fieldBuffer []byte
}

// keptBody is the largest body buffer that waits for the next request.
const keptBody = 64 << 10

// clear forgets the request and keeps the room.
func (r *request) clear() {
	if cap(r.bodyBuffer) > keptBody {
		r.bodyBuffer = nil
	}
	*r = request{
		parser: r.parser,
		number: r.number, hostBuffer: r.hostBuffer, scratch: r.scratch, value: r.value[:0], idBuffer: r.idBuffer,
		clientBuffer: r.clientBuffer, bodyBuffer: r.bodyBuffer, line: r.line, fieldBuffer: r.fieldBuffer,
	}
}

// clientAddr is who is limited: the first untrusted address on the way here.
func (r *request) clientAddr() netip.Addr {
	if !r.client.IsValid() {
		r.client = r.proxy.clientOf(r)
	}
	return r.client
}

// clientText is the client's address in text, without a zone.
func (r *request) clientText() []byte {
	r.clientBuffer = r.clientAddr().AppendTo(r.clientBuffer[:0])
	return r.clientBuffer
}

// bodyConsumed reports whether nothing of the request is left on the connection, so that the next one
// is not read from the middle of this one.
func (r *request) bodyConsumed() bool {
	stream := r.ctx.RequestBodyStream()
	if stream == nil || r.bodyRead && r.bodyWhole || r.upload.done {
		return true
	}
	// The library has the first 8 KiB in memory before it calls us: what is no longer than that is all here.
	if n := r.ctx.Request.Header.ContentLength(); n < 0 || n > prefetched {
		return false
	}
	_, err := io.Copy(io.Discard, stream)
	return err == nil
}

// prefetched is how much of a body of known length the HTTP library reads before it calls the handler.
const prefetched = 8 << 10

// upload is the client's body on its way to the shop; it notes whether its end was reached.
type upload struct {
	io.Reader
	done bool
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.done = u.done || err == io.EOF
	return n, err
}
