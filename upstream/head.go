package upstream

import (
	"bytes"

	"sluice/internal/octets"
)

// switching is 101, after which the connection speaks another protocol.
const switching = 101

const (
	maxFields = 1024 // field lines of one head: fasthttp keeps some 100 bytes for each
	maxNamed  = 32   // names in Connection
)

// head is what the transport must know of a response's head before fasthttp reads it, which would repair much that is
// rejected here.
type head struct {
	status    int
	length    int64 // Content-Length; -1 = none
	chunked   bool
	http11    bool
	close     bool     // the upstream will not use this connection again
	skip      int      // bytes at the start of the checked head that are no part of it any more
	encodings int      // Content-Encoding lines
	encoding  []byte   // their values, joined where there are several
	named     [][]byte // names of end-to-end fields in Connection
}

// role is what a field means to a hop. Most mean nothing to it.
type role uint8

const (
	endToEnd role = iota
	hopByHop      // RFC 9110, section 7.6.1
	upgrade       // hop-by-hop, but for a 101
	connection
	contentLength
	transferEncoding
	contentEncoding
)

// fieldRoles are the fields that mean something, in lower case.
var fieldRoles = [...]struct {
	name string
	role role
}{
	{"te", hopByHop}, {"trailer", hopByHop}, {"keep-alive", hopByHop}, {"proxy-connection", hopByHop},
	{"upgrade", upgrade}, {"connection", connection}, {"content-length", contentLength},
	{"content-encoding", contentEncoding}, {"transfer-encoding", transferEncoding},
}

// roleOf is the role of a field by its name.
func roleOf(name []byte) role {
	for i := range fieldRoles {
		if f := &fieldRoles[i]; len(name) == len(f.name) && octets.EqualFold(name, f.name) {
			return f.role
		}
	}
	return endToEnd
}

// check reads raw, a head up to its empty line, and reports whether it is well-formed. What the client must
// not see is taken out of it where it lies, and what stood before moves up: raw[h.skip:] is left for fasthttp's reader.
// (Fields deleted later from fasthttp's header would change the order of others.) The values of the fields that stay
// are left for fasthttp's reader to check.
func (h *head) check(raw []byte) bool {
	*h = head{length: -1}
	at := len(lineAt(raw, 0))
	if at < len(crlf) || raw[at-len(crlf)] != '\r' || !h.statusLine(raw[:at-len(crlf)]) {
		return false
	}
	raw[len("HTTP/1.")] = '1' // the client is told our version
	for n := 0; ; n++ {
		line := lineAt(raw, at)
		if string(line) == crlf {
			break
		}
		name, value, ok := look(line)
		if !ok || n == maxFields {
			return false
		}
		r := roleOf(name)
		if (r != endToEnd || h.interim()) && !octets.IsText(value) {
			return false
		}
		if r != endToEnd && !h.field(r, octets.Trim(value)) {
			return false
		}
		if !h.keeps(r) {
			h.remove(raw, at, at+len(line))
		}
		at += len(line)
	}
	h.close = h.close || !h.http11
	if (len(h.named) > 0 || h.encodings > 1) && !h.removeNamed(raw) {
		return false
	}
	// The two readings of such a response are how responses are smuggled.
	return !h.chunked || h.length < 0 && h.http11
}

// statusLine reads "HTTP/1.1 200 OK". The space after the code may be missing with the reason, as many servers have it.
func (h *head) statusLine(b []byte) bool {
	const version = len("HTTP/1.1")
	if len(b) < version+len(" 200") || b[version] != ' ' {
		return false
	}
	h.http11 = string(b[:version]) == "HTTP/1.1"
	if !h.http11 && string(b[:version]) != "HTTP/1.0" {
		return false
	}
	for _, c := range b[version+1 : version+4] {
		if c < '0' || c > '9' {
			return false
		}
		h.status = h.status*10 + int(c-'0')
	}
	reason := b[version+4:]
	if len(reason) > 0 && reason[0] != ' ' {
		return false
	}
	return h.status >= 100 && h.status <= 599 && octets.IsText(reason)
}

// field records what one field says of the framing and of the connection. It rejects one that leaves a doubt.
func (h *head) field(r role, value []byte) bool {
	switch r {
	case connection:
		return h.connection(value)
	case contentLength:
		if h.length >= 0 {
			return false
		}
		h.length = octets.Length(value)
		return h.length >= 0
	case transferEncoding:
		if h.chunked || !octets.EqualFold(value, "chunked") {
			return false
		}
		h.chunked = true
	case contentEncoding:
		h.encodings++
	}
	return true
}

// connection reads the value of one Connection field. The names of hop-by-hop fields say nothing new.
func (h *head) connection(list []byte) bool {
	for len(list) > 0 {
		var token []byte
		token, list = octets.Cut(list, ',')
		token = octets.Trim(token)
		switch r := roleOf(token); {
		case octets.EqualFold(token, "close"):
			h.close = true
		case len(token) == 0 || r == hopByHop || r == upgrade:
		case len(h.named) == maxNamed || !octets.IsToken(token):
			return false
		default:
			h.named = append(h.named, bytes.Clone(token)) // remove may overwrite it
		}
	}
	return true
}

// keeps reports a field that the client may see, unless Connection names it.
func (h *head) keeps(r role) bool {
	switch r {
	case endToEnd, contentEncoding:
		return true
	case contentLength:
		return h.status >= 200 && h.status != 204
	case upgrade:
		return h.status == switching
	}
	return false
}

// remove takes raw[from:to] out of the head: what stands before moves up.
func (h *head) remove(raw []byte, from, to int) {
	copy(raw[h.skip+to-from:to], raw[h.skip:from])
	h.skip += to - from
}

// removeNamed takes out what Connection names, and Content-Encoding where there are several: of those fasthttp would
// keep only the last, so that they are joined. It reports whether what it took out is well-formed.
func (h *head) removeNamed(raw []byte) bool {
	at := h.skip + len(lineAt(raw, h.skip))
	for {
		line := lineAt(raw, at)
		if string(line) == crlf {
			return true
		}
		name, value, _ := look(line)
		switch {
		case h.names(name):
			if !octets.IsText(value) {
				return false
			}
			h.remove(raw, at, at+len(line))
		case h.encodings > 1 && roleOf(name) == contentEncoding:
			if len(h.encoding) > 0 {
				h.encoding = append(h.encoding, ", "...)
			}
			h.encoding = append(h.encoding, octets.Trim(value)...)
			h.remove(raw, at, at+len(line))
		}
		at += len(line)
	}
}

// names reports whether Connection names the field, which therefore ends here.
func (h *head) names(field []byte) bool {
	for _, name := range h.named {
		if octets.EqualFold(name, field) {
			return true
		}
	}
	return false
}

// interim reports a response that another one follows.
func (h *head) interim() bool { return h.status < 200 && h.status != switching }

// bodiless reports a response that ends with its head, whatever its fields say (RFC 9112, section 6.3).
func (h *head) bodiless(toHead bool) bool {
	return toHead || h.status < 200 || h.status == 204 || h.status == 304
}

// The strict look at a head, before a parser reads it: what a second parser could read differently is rejected. It
// holds for requests as for responses.

// lineAt is the line that starts at head[at], with its end.
func lineAt(head []byte, at int) []byte {
	return head[at : at+bytes.IndexByte(head[at:], '\n')+1]
}

// look takes a field line apart, in the only way in which every parser reads it: it ends in CRLF, and its name is a
// token up to the colon. So there is no bare LF, no line that goes on with the one before, no space before the colon
// and no empty name. The value has its blanks, and may have other bytes than text.
func look(line []byte) (name, value []byte, ok bool) {
	end := len(line) - len(crlf)
	colon := bytes.IndexByte(line, ':')
	if end < 0 || line[end] != '\r' || colon < 0 || !octets.IsToken(line[:colon]) {
		return nil, nil, false
	}
	return line[:colon], line[colon+1 : end], true
}
