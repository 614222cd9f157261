package proxy

import (
	"io"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"sluice/proxy/http1"
)

// request is what the gate knows of one request while it judges and forwards it. It is pooled; nothing in it
// outlives handle, but for the stream that takes its releases along.
type request struct {
	proxy *Proxy
	asked *http1.Request
	resp  *fasthttp.Response // the shop's answer, or a kept one
	reply *reply             // the gate's own
	conn  *Conn
	now   int64 // monotonic ns of the gate's clock, read once
	route *route
	shard *shard

	method, host, path, query []byte
	caught                    captures
	id                        []byte
	client                    netip.Addr // by clientAddr
	sku, user, key            []byte     // key: the client's Idempotency-Key
	quantity                  int64
	bypass                    bool     // no limit applies
	asking                    bool     // for the state of an order; nothing is bought
	keys                      [][]byte // of the route's keyed rates, in their order; empty = the request lacks it

	bodyRead bool // all of it
	upload   upload
	body     []byte
	json     *fastjson.Value
	parser   *fastjson.Parser

	admitted bool          // Stock.Enter said yes: Leave is owed
	placed   Places        // whose Enter said yes: Leave is owed; nil = nobody's
	took     time.Duration // by the shop, to answer
	held     bool          // Orders.Take said yes: Settle is owed
	taken    Taken
	fate     Fate
	out      Outgoing
	flight   Flight        // nil = it does not fly
	owed     time.Duration // what a refusal after the flight would tell to wait

	page    Page
	fetches bool // Pages.Find said Fetch: Keep or Leave is owed
	served  bool // from memory

	// What the journal is told.
	reason, observed  Reason
	wait              time.Duration
	nth               uint64 // of the refusals of its kind
	limit             string
	sent              bool
	outcome           Outcome
	decided, answered int64 // monotonic ns

	traced bool
	trace  Trace

	// Room that is kept from one request to the next.
	hostBuffer, scratch, value, number, idBuffer, clientBuffer, bodyBuffer, line, fieldBuffer, keyBuffer, text []byte
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
		keys: r.keys[:0], keyBuffer: r.keyBuffer, text: r.text,
		page: Page{Key: r.page.Key[:0], Conditions: r.page.Conditions[:0]},
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

// tally is where what becomes of this request is counted.
func (r *request) tally() *tally { return &r.route.tallies[r.shard.index] }

// upload is the client's body on its way to the shop: what is in memory already, then what is still to come.
type upload struct {
	begun []byte
	conn  *Conn
	fault error // why it broke off
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if len(u.begun) > 0 {
		n := copy(p, u.begun)
		u.begun = u.begun[n:]
		return n, nil
	}
	n, err := u.conn.ReadBody(p)
	if err != nil && err != io.EOF {
		u.fault = err
	}
	return n, err
}
