package upstream

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"
)

// Request is one request as the upstream shall see it: built by the proxy, not copied from the client. The zero value
// must be readied by Reset. It belongs to one Send or Upgrade at a time.
type Request struct {
	// HTTP is the method, the target, the header lines and the body or body stream. Its header has DisableSpecialHeader
	// and DisableNormalizing set: the lines go out verbatim and in order, and nothing is added. The first line is Host;
	// an empty value means the target's own authority.
	//
	// The caller adds the line "Content-Length" or "Transfer-Encoding: chunked" where there is a body, and calls
	// SetBodyStream after it: size -1 has the transport write chunks. A stream is read until Send or Upgrade returns.
	HTTP  *fasthttp.Request
	Lines []byte // header lines that follow those of HTTP, each with its CRLF

	Order     bool   // written at most once; has connections of its own; a reused connection is probed before
	Store     bool   // what fits into memory is read whole, as for an Order
	Whole     bool   // read whole in any case, up to MaxWhole; else a large response is handed on as it comes
	ClientKey uint64 // hash of the client, for policy client_hash
	Owner     Owner  // the goroutine of the request; nil = it may block anywhere

	Timeout time.Duration // in place of Options.ResponseTimeout; 0 = that. A longer one extends Options.Timeout
	Until   int64         // Unix ms: from then on it is not sent any more; 0 = at any time

	Client Client // asked after a wait; nil = it is always there

	Target string // set by the Pool: the target it was last sent to; "" = none could be chosen

	place place // by Acquire
}

// Client is who wants the response.
type Client interface {
	// Gone reports that the client has left, so that the request need not be sent. It does not block.
	Gone() bool

	// Interim hands on a 1xx response, as the client is to see it (RFC 9110, section 15.2). head must not be kept.
	Interim(head []byte)
}

// Owner stands for a goroutine that runs an event loop. A connection is told of it before each use, if it has a method
// Bind(owner any): reading and writing it does not block the loop then.
type Owner interface {
	// StepAside is called before anything else that blocks: a wait for a connection, a name look-up, a dial, a TLS
	// handshake.
	StepAside()
}

// Reset empties r for another request and keeps its memory. It closes a body stream.
func (r *Request) Reset() {
	if r.HTTP == nil {
		r.HTTP = new(fasthttp.Request)
	}
	r.HTTP.Reset()
	r.HTTP.Header.DisableSpecialHeader()
	r.HTTP.Header.DisableNormalizing()
	r.HTTP.Header.SetNoDefaultContentType(true)
	r.Order, r.Store, r.Whole = false, false, false
	r.Lines, r.ClientKey, r.Timeout, r.Until, r.Owner, r.Client, r.Target = nil, 0, 0, 0, nil, nil, ""
}

var noHost = []byte("Host: \r\n")

// AppendHead appends the head as it is sent. authority is the value of an empty Host.
func (r *Request) AppendHead(dst, authority []byte) []byte {
	dst = r.HTTP.Header.AppendBytes(dst)
	if len(r.Lines) > 0 {
		dst = append(append(dst[:len(dst)-len(crlf)], r.Lines...), crlf...)
	}
	host := bytes.IndexByte(dst, '\n') + 1
	if bytes.HasPrefix(dst[host:], noHost) {
		dst = slices.Insert(dst, host+len("Host: "), authority...)
	}
	return dst
}

// streamLength is the length of the body stream in bytes, as the header announces it; -1 = it is written in chunks.
// A stream that the header does not announce would be read as the next request.
func (r *Request) streamLength() int64 {
	n := r.HTTP.Header.ContentLength()
	if n < -1 {
		panic("BUG: a body stream without Content-Length or Transfer-Encoding")
	}
	return int64(n)
}

// body is the body where it is in memory.
func (r *Request) body() []byte {
	if r.HTTP.IsBodyStream() {
		return nil
	}
	return r.HTTP.Body()
}

// Outcome says how far a request came. It is never inferred from an error's text.
type Outcome uint8

// The outcomes.
const (
	Answered Outcome = iota // the response is there
	NotSent                 // not one byte was written: it is certain that the upstream saw nothing
	TimedOut                // written in part or whole, no response in time: unknown
	Broken                  // written in part or whole, and no whole, well-formed response came: unknown
	Busy                    // not one byte was written: no connection came free, the client left, or Until was over
	Capped                  // answered, by a stream or tunnel that is not handed on: clients hold too many already
	NumOutcomes
)

// String is the name in metrics and logs.
func (o Outcome) String() string {
	return [NumOutcomes]string{"answered", "not_sent", "timeout", "broken", "busy", "capped"}[o]
}
