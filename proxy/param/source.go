package param

import (
	"bytes"
	"net/netip"
	"unicode/utf8"

	"sluice/internal/octets"
	"sluice/proxy/reject"
	"sluice/proxy/server"
)

// Source is one request as far as values are looked up in it. Its exported fields belong to the request and do not
// change between the first lookup and Reset. It is not safe for concurrent use.
//
// It has more than 25 methods because each place of a request is looked up by two or three of its own.
type Source struct {
	Head       *server.Request
	Host       []byte     // lower case, without a port
	Query      []byte     // as received, without "?"
	Captures   [][]byte   // values of the route's {names}, as received, in the order of the names
	Body       []byte     // ignored unless BodyRead
	BodyRead   bool       // Body is whole
	ClientAddr netip.Addr // the zero Addr = unknown
	RequestID  []byte
	Tokens     Tokens // nil = nothing that the upstream has signed is believed

	media     mediaType // of Head, once mediaRead
	mediaRead bool
	checked   bool // bodyFault is CheckBody's result
	bodyFault Fault
	json      jsonState
	room      []byte // values that were decoded or put together, until Reset
	scratch   []byte // one name that was decoded
}

// Tokens verifies what the upstream has signed. A value is empty without a fault when the request proves nothing.
type Tokens interface {
	// Claim is a claim of the token that the request carries.
	Claim(s *Source, name string) ([]byte, Fault)

	// SignedCookie is the value that was signed, out of the cookie of that name.
	SignedCookie(s *Source, name string) ([]byte, Fault)
}

// Fault is why a value cannot be told; the zero value is none. Its reason is reject.Ambiguous or reject.BadRequest.
// Without a reason, its detail says why Tokens have no value.
type Fault struct {
	Reason reject.Reason
	Detail reject.Detail
}

func ambiguous(cause reject.Cause, operand string) Fault {
	return Fault{reject.Ambiguous, reject.Detail{Cause: cause, Operand: operand}}
}

func badRequest(cause reject.Cause, operand string) Fault {
	return Fault{reject.BadRequest, reject.Detail{Cause: cause, Operand: operand}}
}

// maxKeptRoom is the largest buffer in bytes that waits for the next request.
const maxKeptRoom = 64 << 10

// Reset forgets the request and keeps the room. Values that were looked up are no longer valid.
func (s *Source) Reset() {
	room, scratch := s.room[:0], s.scratch[:0]
	if cap(room) > maxKeptRoom {
		room = nil
	}
	if cap(scratch) > maxKeptRoom {
		scratch = nil
	}
	*s = Source{room: room, scratch: scratch}
}

// match is what stands under a name in one place, in all its spellings.
type match struct {
	count    int
	spelling Spelling // of the last one
	nested   bool     // one is a list or an object to some reader
	literal  int      // those that are the name but for letter case
	differs  bool     // not all values are the same
	value    []byte   // of the last one
}

// add adds a value whose name is spelled so; of another name it adds nothing.
func (m *match) add(spelling Spelling, value []byte) (same bool) {
	if spelling == Another {
		return false
	}
	m.differs = m.differs || m.count > 0 && !bytes.Equal(m.value, value)
	m.nested = m.nested || spelling == Nested
	if spelling != Folded {
		m.literal++
	}
	m.count, m.spelling, m.value = m.count+1, spelling, value
	return true
}

// repeats reports that the value has come before under the very name, and nothing else has.
func (m *match) repeats(spelling Spelling, value []byte) bool {
	return m.count == 1 && spelling == Exact && m.spelling == Exact && bytes.Equal(value, m.value)
}

// only is the one value; nil when its name is in another letter case. Where the name stands twice readers make a list
// of its values, also of equal ones, but for a spelling that only some readers fold into the name.
func (m *match) only(want string) ([]byte, Fault) {
	switch {
	case m.literal > 1 || m.differs:
		return nil, ambiguous(reject.DuplicateKey, want)
	case m.nested:
		return nil, ambiguous(reject.NameSpelling, want)
	case m.spelling == Cased:
		return nil, Fault{}
	}
	return m.value, Fault{}
}

// Decode undoes the percent-encoding of raw. The result is valid until Reset; ok is false when it is not UTF-8.
func (s *Source) Decode(raw []byte) (value []byte, ok bool) {
	value = s.unescape(raw, false)
	return value, utf8.Valid(value)
}

// text is a value decoded once, also "+" where plus is set. Of an incomplete escape servers make different things: an
// error, the text as it stands, or (%uXXXX) another letter.
func (s *Source) text(raw []byte, plus bool, p *Part) ([]byte, Fault) {
	if !wholeEscapes(raw) {
		return nil, ambiguous(reject.ValueInvalid, p.text)
	}
	value := s.unescape(raw, plus)
	if !utf8.Valid(value) {
		return nil, badRequest(reject.ValueInvalid, p.text)
	}
	return value, Fault{}
}

// unescape is raw decoded, in the room where that makes a difference.
func (s *Source) unescape(raw []byte, plus bool) []byte {
	if !hasEscape(raw, plus) {
		return raw
	}
	start := len(s.room)
	s.room = appendUnescaped(s.room, raw, plus)
	return s.room[start:len(s.room):len(s.room)]
}

// name is the name of a pair or part, decoded. It is valid until the next one.
func (s *Source) name(raw []byte, plus bool) []byte {
	if !hasEscape(raw, plus) {
		return raw
	}
	s.scratch = appendUnescaped(s.scratch[:0], raw, plus)
	return s.scratch
}

// wholeEscapes reports whether each "%" in raw begins an escape.
func wholeEscapes(raw []byte) bool {
	for i := bytes.IndexByte(raw, '%'); i >= 0; i = bytes.IndexByte(raw, '%') {
		if _, escaped := octets.Escape(raw[i:]); !escaped {
			return false
		}
		raw = raw[i+3:]
	}
	return true
}

func hasEscape(raw []byte, plus bool) bool {
	return bytes.IndexByte(raw, '%') >= 0 || plus && bytes.IndexByte(raw, '+') >= 0
}

func appendUnescaped(dst, raw []byte, plus bool) []byte {
	start := len(dst)
	dst = append(dst, raw...)
	if plus {
		for i, c := range dst[start:] {
			if c == '+' {
				dst[start+i] = ' '
			}
		}
	}
	return octets.Unescape(dst[:start], dst[start:])
}

// clientText is the client's address without a zone.
func (s *Source) clientText() []byte {
	start := len(s.room)
	s.room = s.ClientAddr.WithZone("").AppendTo(s.room)
	return s.room[start:len(s.room):len(s.room)]
}

// proven is a value that the upstream has signed.
func (s *Source) proven(p *Part) ([]byte, Fault) {
	switch {
	case s.Tokens == nil:
		return nil, Fault{}
	case p.kind == Claim:
		return s.Tokens.Claim(s, p.name)
	}
	return s.Tokens.SignedCookie(s, p.name)
}
