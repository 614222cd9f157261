package server

import (
	"bufio"
	"sync"
)

// Limits bound one request head. Sizes are bytes.
type Limits struct {
	Header int // the whole head with its request line and empty line; more is 431. At least 256; 0 = 32 KiB
	Target int // the request target; more is 414. 0 = 8 KiB

	// Protected names fields that the handler relies on, besides the usual end-to-end fields. A Connection field must
	// not name them. A name that ends in "-" protects all names that begin so. Case does not matter.
	Protected []string

	// LenientTarget percent-encodes the bytes 0x80 to 0xff of a target before it is checked. Such a target costs one
	// allocation.
	LenientTarget bool
}

const (
	defaultHeader = 32 << 10
	defaultTarget = 8 << 10
	minHeader     = 256
)

// targetSlack is what a request line holds besides its target: two spaces, the version (8) and CRLF make 12; the rest
// is for the method, of which the longest that is registered has 17 bytes. A longer method costs room for the target.
const targetSlack = 32

// parser is what all connections share: the limits, and large buffers. It is safe for concurrent use.
type parser struct {
	limits    Limits
	firstLine int       // a request line that does not end within so many bytes has too long a target
	large     sync.Pool // of *[]byte, into which any head fits
	heads     sync.Pool // of *bufio.Reader, which reads any head
}

// newParser panics on limits under their minimum, which the configuration must have rejected before.
func newParser(limits Limits) *parser {
	if limits.Header == 0 {
		limits.Header = defaultHeader
	}
	if limits.Target == 0 {
		limits.Target = defaultTarget
	}
	if limits.Header < minHeader || limits.Target < 1 {
		panic("BUG: limits under their minimum")
	}
	p := &parser{limits: limits, firstLine: min(limits.Header, limits.Target+targetSlack)}
	size := max(limits.Header, 2*usualHead)
	p.large.New = func() any { b := make([]byte, size); return &b }
	p.heads.New = func() any { return bufio.NewReaderSize(nil, size) }
	return p
}
