package proxy

import (
	"io"
	"net"

	"github.com/valyala/fasthttp"

	"sluice/proxy/http1/eventloop"
)

// Shop is the protected shop. It sends each request at most once.
type Shop interface {
	// Send writes req to one target and reads the answer into resp. Whatever it returns, an order
	// of which one byte was written is never written again, by it or by its caller.
	Send(req *Outgoing, resp *fasthttp.Response) Outcome

	// Upgrade is Send for a request that asks to leave HTTP (RFC 9110, section 7.8). If the shop answers 101, the
	// connection is the caller's, who must close it; otherwise it is nil, and the answer is an ordinary one.
	Upgrade(req *Outgoing, resp *fasthttp.Response) (net.Conn, Outcome)
}

// Launcher is a Shop whose answer a loop can wait for.
type Launcher interface {
	// Begin is Send for a client in a loop. Where the request could leave at once it returns a Flight, from which the outcome
	// will come; req and resp are the Flight's until then. Otherwise it is Send: it has client step aside, and waits.
	Begin(req *Outgoing, resp *fasthttp.Response, client *Looped) (Flight, Outcome)
}

// Flight is a request that is on its way to the shop. It belongs to one goroutine, or rests.
type Flight interface {
	// Rest lets it wait in a loop for the answer. From true on it is the loop's, which hands owner on with what comes; on
	// false End has to be called, or again.
	Rest(owner any) bool

	// Hurry has it rest no more: it is waited for in the goroutine that calls End.
	Hurry()

	// End takes the answer, as Send does, or reports that nothing of it has come yet. It has the client step aside
	// before it waits. A Flight that has ended is not to be touched.
	End() (outcome Outcome, ended bool)
}

// Looped is a connection that rests in a loop.
type Looped = eventloop.Socket

// Outgoing is one request as the shop shall see it: built here, not copied from the client.
// The Shop writes Line, then a Host line, then Fields, then the body, and adds nothing else.
// It keeps no slice of it after Send returns, except BodyStream until resp's stream is closed.
type Outgoing struct {
	Line   []byte // "POST /path?query HTTP/1.1\r\n"
	Host   []byte // the value of Host; empty = the target's own authority
	Fields []byte // every other header line, framing included, each with its CRLF; without the empty line

	Body       []byte    // the whole body, already framed by Content-Length in Fields
	BodyStream io.Reader // or a stream (pass routes only); Body is nil then
	BodyLength int64     // of BodyStream; -1 = the Shop writes it in chunks (Fields say so)

	Head   bool   // the method is HEAD: the answer has no body
	Order  bool   // an order: written at most once, and the pooled connection is probed before
	Stream bool   // an answer without a length may be handed on as it comes; else it is read whole
	Store  bool   // what fits into memory is read whole, as for an Order
	Whole  bool   // the answer is read whole in any case: what it says is looked at before it goes on
	Key    uint64 // hash of the client, for policy client_hash

	Target string // written by the Shop: the target that it was last brought to; "" = none could be chosen
}

// Outcome says how far a request came. It is never inferred from an error's text.
type Outcome uint8

const (
	Answered Outcome = iota // the answer is in resp
	NotSent                 // not one byte was written: it is certain that the shop saw nothing
	TimedOut                // written in part or whole, no answer in time: unknown
	Broken                  // written in part or whole, and no whole, well-formed answer came: unknown
)
