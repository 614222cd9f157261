package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/server"
	"sluice/upstream"
)

// Decide has a Server answer the questions of other proxies, which forward requests themselves. The request that a
// question is about passes the checks of its route, but for those that are about forwarding.
type Decide struct {
	Dialect string         // one of Dialects
	Peers   TrustedProxies // who may ask, and is believed; a unix socket always is
}

// Where a Server that decides is asked.
const (
	decidePath    = "/decide"    // shall this request be forwarded?
	settlePath    = "/settle"    // this is what became of one that was
	rejectionPath = "/rejection" // the answer to one that was not, where the proxy could not pass it on
)

// dialect says how a proxy asks about a request: in which fields it has its method, its target and its host.
type dialect struct {
	method, target, host string // names of fields; "" = as those of the question
	below                bool   // the target of the question is that of the request behind decidePath
	only403              bool   // no other rejection comes through; the answer is asked for at rejectionPath
	no5xx                bool   // a rejection of 5xx loses its body and its fields on the way
	dropsKey             bool   // the client's Idempotency-Key is lost where the answer has none
}

var forwardAuth = &dialect{method: "X-Forwarded-Method", target: "X-Forwarded-Uri", host: "X-Forwarded-Host"}

var dialects = map[string]*dialect{
	"nginx":   {method: "X-Original-Method", target: "X-Original-URI", only403: true},
	"traefik": {method: forwardAuth.method, target: forwardAuth.target, host: forwardAuth.host, dropsKey: true},
	"caddy":   forwardAuth,
	"haproxy": forwardAuth,
	"envoy":   {below: true, no5xx: true},
}

const (
	statusHeader    = "X-Sluice-Status"                 // the status of a rejection that is answered with 403 instead
	rejectionHeader = "X-Sluice-Rejection"              // what rejectionPath answers with
	admittedField   = "X-Sluice-Decision: admitted\r\n" // tells the answer from a 200 of another server
	serialHeader    = "Sluice-Serial"                   // names what was admitted, for settlePath
	toldHeader      = "Sluice-Status"                   // the status of the upstream's response, for settlePath
)

// decide answers one request to a Server that decides.
func (s *Server) decide(ctx *fasthttp.RequestCtx, c *server.Conn) {
	p, d, state := s.proxy.Load(), dialects[s.decides.Dialect], c.State.(*connState)
	p.resolveTrust(state, c)
	path := c.Request().Path
	admitted := false
	switch {
	case !state.trusted:
		p.refuseQuestion(ctx, c, rejection{Reason: reject.Denied, Detail: reject.Detail{Cause: reject.UntrustedPeer}})
	case string(path) == settlePath:
		p.answerSettle(ctx, c, s.open)
		return
	case string(path) == rejectionPath:
		p.answerRejection(ctx, c)
		return
	case string(path) == decidePath || d.below && bytes.HasPrefix(path, []byte(decidePath)):
		admitted = p.answerQuestion(ctx, c, d, s.open)
	default:
		p.refuseQuestion(ctx, c, rejection{Reason: reject.NoRoute})
	}
	if !admitted {
		d.markRejection(ctx, c)
	}
}

// markRejection makes sure that no proxy takes a rejection for an admission, whatever its status is.
func (d *dialect) markRejection(ctx *fasthttp.RequestCtx, c *server.Conn) {
	status := ctx.Response.StatusCode()
	if !d.only403 && status >= 300 && !(d.no5xx && status >= 500) {
		return
	}
	text := c.Prepared()
	text.Fields = append(strconv.AppendInt(append(text.Fields, statusHeader+": "...), int64(status), 10), "\r\n"...)
	ctx.Response.SetStatusCode(fasthttp.StatusForbidden)
	if d.only403 {
		ctx.Response.ResetBody()
	}
}

// refuseQuestion rejects what is no question, or of a peer that may not ask.
func (p *Proxy) refuseQuestion(ctx *fasthttp.RequestCtx, c *server.Conn, no rejection) {
	r := p.newRequest(ctx, c)
	defer p.release(r)
	r.internal, r.rejection = true, no
	p.reject(r)
}

// answerQuestion decides about the request that c asks about.
func (p *Proxy) answerQuestion(ctx *fasthttp.RequestCtx, c *server.Conn, d *dialect, open *decisions) (admitted bool) {
	state := c.State.(*connState)
	head, fault := d.appendHead(state.question[:0], c.Request(), p.ClientHeader)
	state.question = head
	if fault.Reason != reject.Admitted {
		p.refuseQuestion(ctx, c, fault)
		return false
	}
	if err := c.Substitute(head, d.consumes); err != nil {
		p.protocolError(ctx, c, err.(server.ProtocolError))
		return false
	}
	r := p.newRequest(ctx, c)
	defer p.release(r)
	r.asked = true
	admitted = p.admit(r)
	if admitted && r.acquired.order && time.Now().UnixMilli() >= r.reservation.Deadline { // the process was stopped
		r.rejection, admitted = rejection{Reason: reject.UpstreamBusy}, false
	}
	if admitted {
		p.answerAdmitted(r, d, open)
		return true // unless that has panicked
	}
	p.reject(r)
	return false
}

// carryRejection puts the rejection into a field where its proxy passes no body on.
func (r *Request) carryRejection() {
	if d := r.client.decides; d != nil && dialects[d.Dialect].only403 {
		text := r.conn.Prepared()
		text.Fields = append(append(text.Fields, rejectionHeader+": "...), r.carried.encode(&r.reject)...)
		text.Fields = append(text.Fields, "\r\n"...)
	}
}

// questionFields are those of the question itself. The body of the request is not there, nor is what frames it.
var questionFields = [...]string{"TE", "Host", "Expect", "Upgrade", "Connection", "Keep-Alive", "Content-Length",
	"Proxy-Connection", "Transfer-Encoding"}

// appendHead appends the request line and the Host of the request that q asks about. It objects where a field without
// which the request would not be known is missing or there twice, and where one imitates a field of Sluice or of a
// proxy. client is the field in which the proxy names the client.
func (d *dialect) appendHead(b []byte, q *server.Request, client string) (head []byte, no rejection) {
	parts := [...]struct {
		name  string
		value []byte
		count int
	}{{d.method, q.Method, 0}, {d.target, q.Target, 0}, {d.host, q.Host, 0}}
	clients := 0
	for name, value := range q.Fields {
		if imitates(q, name, client) {
			return b, rejection{Reason: reject.Ambiguous, Detail: reject.Detail{Cause: reject.FieldImitated}}
		}
		for i := range parts {
			if parts[i].name != "" && octets.EqualFold(name, parts[i].name) {
				parts[i].value = value
				parts[i].count++
			}
		}
		if octets.EqualFold(name, client) && len(value) > 0 {
			clients++
		}
	}
	for i := range parts {
		if parts[i].name != "" && parts[i].count != 1 {
			return b, badRequest(reject.QuestionIncomplete, parts[i].name)
		}
	}
	if clients == 0 {
		return b, badRequest(reject.QuestionIncomplete, client)
	}
	target := parts[1].value
	if d.below {
		target = bytes.TrimPrefix(target, []byte(decidePath))
	}
	b = append(append(append(append(b, parts[0].value...), ' '), target...), " HTTP/1.1\r\n"...)
	return append(octets.AppendField(b, "Host", parts[2].value), "\r\n"...), rejection{}
}

// imitates reports a field that a server could take for one of Sluice or of a proxy, although it has another name: CGI,
// WSGI and PHP fold "_" and "-". The proxy that asks sends it to the upstream. X-Forwarded-Prefix, which no client
// needs, moves the path in some servers.
func imitates(q *server.Request, name []byte, client string) bool {
	if octets.EqualFieldName(name, "X-Forwarded-Prefix") {
		return true
	}
	return q.Symbols && bytes.ContainsAny(name, "_.!#$%&'*+^`|~") && (!octets.EndToEnd(name) || octets.FromProxy(name) ||
		octets.EqualFieldName(name, idempotencyKey) ||
		octets.EqualFieldName(name, client) && !octets.EqualFold(name, client))
}

// consumes reports a field that the request did not have.
func (d *dialect) consumes(name []byte) bool {
	for _, field := range questionFields {
		if octets.EqualFold(name, field) {
			return true
		}
	}
	return octets.EqualFold(name, d.method) || octets.EqualFold(name, d.target) || octets.EqualFold(name, d.host)
}

// answerAdmitted says that the request may be forwarded, and with which fields. What was acquired for it is given back
// when the proxy tells what became of it, or after the upstream's time.
func (p *Proxy) answerAdmitted(r *Request, d *dialect, open *decisions) {
	server.Begin(&r.ctx.Response, fasthttp.StatusOK)
	text := r.conn.Prepared()
	b := append(text.Fields[:0], admittedField...)
	if len(r.id) > 0 {
		b = octets.AppendField(b, p.RequestIDHeader, r.id)
	}
	if r.acquired.order {
		r.outcome = metrics.OrderUnknown
		b = p.appendOrderFields(b, r)
	} else if d.dropsKey {
		for name, value := range r.head.Fields {
			if octets.EqualFold(name, idempotencyKey) {
				b = octets.AppendField(b, idempotencyKey, value)
			}
		}
	}
	if serial := open.add(r); serial != "" {
		b = octets.AppendField(b, serialHeader, serial)
	}
	text.Fields = b
	r.attempt.sent, r.attempt.outcome, r.attempt.begun = true, upstream.Answered, p.Now()
	r.attempt.replied = r.attempt.begun
	if nth := r.shard().Took(upstream.Answered, time.Duration(r.attempt.replied-r.now)); nth%metrics.DecisionSample == 1 {
		r.client.shard.Decided(time.Duration(r.attempt.begun - r.now))
	}
	p.appendRateFields(r)
	r.discardBody()
}

// checkQuestion rejects a request whose order may stand in the body, which the proxy that asks keeps.
func (r *Request) checkQuestion() rejection {
	if r.route.Queue || r.route.readBody || r.route.readForm {
		return rejection{Reason: reject.Ambiguous, Detail: reject.Detail{Cause: reject.BodyNotSeen}}
	}
	return rejection{}
}

// maxPaths is how long the paths of a rejection may be that travel in a field, in bytes: proxies have little room.
const maxPaths = 1 << 10

// rejectionEncoder has the room in which rejections become fields.
type rejectionEncoder struct {
	json  *json.Encoder
	plain bytes.Buffer
	field []byte
}

// encode is a rejection as a field carries it, until the next one. It may shorten c.
func (e *rejectionEncoder) encode(c *reject.Case) []byte {
	if e.json == nil {
		e.json = json.NewEncoder(&e.plain)
	}
	if len(c.RetryPath)+len(c.BackPath) > maxPaths {
		c.RetryPath, c.BackPath = nil, nil
	}
	e.plain.Reset()
	if err := e.json.Encode(c); err != nil {
		panic("BUG: a rejection is no JSON: " + err.Error())
	}
	e.field = base64.RawURLEncoding.AppendEncode(e.field[:0], e.plain.Bytes())
	return e.field
}

func decodeRejection(text []byte) (c reject.Case, ok bool) {
	plain, err := base64.RawURLEncoding.AppendDecode(nil, text)
	if err != nil || json.Unmarshal(plain, &c) != nil {
		return c, false
	}
	setStart(&c)
	return c, c.Reason > reject.Admitted && c.Reason < reject.NumReasons && c.Detail.Cause < reject.NumCauses
}

// answerRejection is the whole answer to a request that was rejected a moment ago, in the format and language of its
// client. It is counted already.
func (p *Proxy) answerRejection(ctx *fasthttp.RequestCtx, c *server.Conn) {
	head := c.Request()
	said, ok := decodeRejection(head.Peek(rejectionHeader))
	if !ok {
		said = reject.Case{Reason: reject.Internal}
	}
	said.Accept, said.AcceptLanguage, said.Origin = head.Peek("Accept"), head.Peek("Accept-Language"), head.Peek("Origin")
	p.responder.Write(&ctx.Response, c.Prepared(), &said)
	if !c.DiscardBody() {
		c.CloseAfterResponse()
	}
}
