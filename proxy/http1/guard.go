// Package http1 stands between a client's socket and the gate. It hands on canonical HTTP/1.1 heads, one at a time,
// and the content of their bodies to whoever asks for it.
//
// The promise: what ReadHead reads is a head with one valid request line in origin form (or OPTIONS *), exactly one
// Host, and one framing that every parser reads alike. A head is judged whole before anything of it is handed on, and in the
// form in which it was judged: nobody reads it once more. What
// ReadBody returns is content without framing, no byte more or less than the framing says, and an end that is told from
// a body cut short. A body is judged as it is read, so that one can be refused unread; the next head comes only
// when the body before it was read to its end. After a Violation nothing more is ever read from that connection.
//
// What it refuses to do: it repairs nothing that two parsers could read differently, knows no routes and no body
// limits, keeps no time, answers nobody, and starts no goroutine. Three harmless things are made canonical in place:
// one empty line before a request is dropped (RFC 9112, 2.2), an absolute target loses the authority that Host
// repeats (3.2.2), and Expect is written in lower case, or blanked on HTTP/1.0 (RFC 9110, 10.1.1).
package http1

import (
	"io"
	"strings"
	"sync"
)

// Limits bound one request head. Both numbers are bytes.
type Limits struct {
	Header int // the whole head, request line and empty line included; more is 431. At least 256
	Target int // the request target; more is 414. At least 1

	// Protected names, besides the built-in ones, fields that the gate or the shop relies on, such as a configured
	// X-User-Id. A Connection header must not name them, and no other spelling (X_User_Id) may stand beside them.
	// A name that ends in "-" protects all names that begin so. Case does not matter.
	Protected []string
}

// Guard is what all connections share: the limits, and the buffers for what comes along behind a head and for large heads.
// It is safe for concurrent use.
type Guard struct {
	limits    Limits
	firstLine int // a request line that does not end within this many bytes has too long a target
	large     int // size of a large buffer, and the most that is read from a socket at once but for content
	small     sync.Pool
	big       sync.Pool
}

// slack is what a request line holds besides its target: the longest method known (7), two spaces, the version (8)
// and CRLF make 19; the rest lets a somewhat longer unknown method hear 501 instead of 414.
const slack = 32

// smallBuffer holds what most connections keep.
const smallBuffer = 2 << 10

// NewGuard makes a Guard. It panics on limits under their minimum, which configuration must have refused before.
func NewGuard(limits Limits) *Guard {
	if limits.Header < 256 || limits.Target < 1 {
		panic("BUG: wire limits under their minimum")
	}
	names := make([]string, len(limits.Protected))
	for i, name := range limits.Protected {
		names[i] = strings.ToLower(name)
	}
	limits.Protected = names
	return &Guard{
		limits:    limits,
		firstLine: min(limits.Header, limits.Target+slack),
		large:     max(limits.Header, 2*smallBuffer),
	}
}

// NewReader makes a Reader of the bytes of one connection. It never reads from src but within its own methods that read.
func (g *Guard) NewReader(src io.Reader) *Reader {
	return &Reader{guard: g, src: src, head: noHead}
}
