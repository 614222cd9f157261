package upstream

import (
	"bytes"
	"strconv"
)

// switching is 101, after which the connection speaks another protocol.
const switching = 101

const (
	maxFields = 1024 // field lines of one head: fasthttp keeps some 100 bytes for each
	maxNamed  = 32   // names in Connection
)

// head is what the transport must know of an answer's head. It is built only from a head in which
// every byte was looked at: fasthttp's own reader would repair much that is refused here.
type head struct {
	status    int
	length    int64  // Content-Length; -1 = none
	reason    []byte // with the space before it; may be empty
	fields    []byte // the field lines, to the empty line
	kept      []byte // all of it that the client may see, in room of its own
	named     int    // Connection names so many fields, beside close and keep-alive
	encodings int    // Content-Encoding lines
	chunked   bool
	http11    bool
	close     bool // the shop will not use this connection again
}

// parse checks raw, which ends in an empty line, and reads from it what rules framing and the connection's future. In the
// same pass it copies what the client may see to room, line by line as it came: nearly always that is right, and the
// few heads whose fields depend on one another are gone through again. The head refers to raw.
func (h *head) parse(raw, room []byte) (ok bool) {
	end := bytes.IndexByte(raw, '\n')
	*h = head{length: -1}
	if end < 0 || !h.statusLine(raw[:end]) {
		return false
	}
	h.fields = raw[end+1:]
	kept := append(append(room[:0], "HTTP/1.1"...), raw[len("HTTP/1.1"):end+1]...)
	rest := h.fields
	for n := 0; len(rest) > len(crlf); n++ {
		line := rest
		var name, value []byte
		if name, value, rest, ok = cutField(rest); !ok || n == maxFields {
			return false
		}
		r := roleOf(name)
		if !h.field(r, value) {
			return false
		}
		if h.keeps(r) {
			kept = appendLine(kept, line[:len(line)-len(rest)], name, value)
		}
	}
	if !bytes.Equal(rest, crlf) || h.chunked && (h.length >= 0 || !h.http11) {
		return false // the two readings of such an answer are how answers are smuggled
	}
	h.close = h.close || !h.http11
	h.kept = append(kept, crlf...)
	if h.named > 0 || h.encodings > 1 || h.status == switching {
		h.kept = h.appendKept(kept[:0])
	}
	return true
}

// keeps reports a field that the client may see, unless another one says otherwise.
func (h *head) keeps(r role) bool {
	switch r {
	case endToEnd, contentEncoding:
		return true
	case contentLength:
		return h.status != 204
	}
	return false
}

// appendLine appends a field in the usual form; line is the whole of it, with its end, as it came.
func appendLine(dst, line, name, value []byte) []byte {
	if len(line) == len(name)+len(": ")+len(value)+len(crlf) && line[len(name)+1] == ' ' {
		return append(dst, line...)
	}
	return appendField(dst, name, value)
}

var crlf = []byte("\r\n")

// statusLine reads "HTTP/1.1 200 OK\r". The space after the code may be missing with the reason, as
// many servers have it.
func (h *head) statusLine(b []byte) bool {
	const version = len("HTTP/1.1")
	if len(b) < version+len(" 200\r") || b[len(b)-1] != '\r' {
		return false
	}
	switch string(b[:version]) {
	case "HTTP/1.1":
		h.http11 = true
	case "HTTP/1.0":
	default:
		return false
	}
	b = b[version : len(b)-1]
	if b[0] != ' ' {
		return false
	}
	for _, c := range b[1:4] {
		if c < '0' || c > '9' {
			return false
		}
		h.status = h.status*10 + int(c-'0')
	}
	h.reason = b[4:]
	if len(h.reason) > 0 && h.reason[0] != ' ' {
		return false
	}
	return h.status >= 100 && h.status <= 599 && isText(h.reason)
}

// field takes note of one field; it refuses one that leaves a doubt about the framing.
func (h *head) field(r role, value []byte) bool {
	switch r {
	case connection:
		return h.connection(value)
	case contentLength:
		if h.length >= 0 {
			return false
		}
		h.length = parseLength(value)
		return h.length >= 0
	case transferEncoding:
		if h.chunked || !is(value, "chunked") {
			return false
		}
		h.chunked = true
	case contentEncoding:
		h.encodings++
	}
	return true
}

func (h *head) connection(list []byte) bool {
	for {
		var token []byte
		if token, list = cutToken(list); len(token) == 0 {
			return true
		}
		switch {
		case is(token, "close"):
			h.close = true
		case is(token, "keep-alive"):
		default:
			if h.named++; h.named > maxNamed || !isToken(token) {
				return false
			}
		}
	}
}

// names reports whether Connection names the field, which therefore ends here.
func (h *head) names(field []byte) bool {
	if h.named == 0 {
		return false
	}
	for rest := h.fields; !bytes.Equal(rest, crlf); {
		var name, list, token []byte
		name, list, rest, _ = cutField(rest)
		if roleOf(name) != connection {
			continue
		}
		for token, list = cutToken(list); len(token) > 0; token, list = cutToken(list) {
			if same(token, field) {
				return true
			}
		}
	}
	return false
}

// parseLength reads digits only, without a leading zero; -1 for anything else. Eighteen digits fit.
func parseLength(b []byte) int64 {
	if len(b) == 0 || len(b) > 18 || b[0] == '0' && len(b) > 1 {
		return -1
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// interim reports an answer that another one follows.
func (h *head) interim() bool { return h.status < 200 && h.status != switching }

// bodiless reports an answer that ends with its head, whatever its fields say (RFC 9112, 6.3).
func (h *head) bodiless(toHead bool) bool {
	return toHead || h.status < 200 || h.status == 204 || h.status == 304
}

// appendKept appends the head as the client may see it: our version, and no field that was meant for
// this hop. Content-Length stays where it describes a body that is not sent (HEAD, 304). It is what parse does for
// most heads at once, and holds for all.
func (h *head) appendKept(dst []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(h.status), 10)
	dst = append(dst, h.reason...)
	dst = append(dst, crlf...)
	for rest := h.fields; !bytes.Equal(rest, crlf); {
		var name, value []byte
		name, value, rest, _ = cutField(rest)
		switch r := roleOf(name); {
		case r == endToEnd:
		case r == contentLength && h.status != 204:
		case r == contentEncoding && h.encodings == 1:
		case h.status == switching && is(name, "upgrade"):
			dst = append(dst, "Connection: Upgrade\r\nUpgrade: "...)
			dst = append(dst, value...)
			dst = append(dst, crlf...)
			continue
		default:
			continue
		}
		if h.names(name) {
			continue
		}
		dst = appendField(dst, name, value)
	}
	if h.encodings > 1 {
		dst = h.appendEncodings(dst)
	}
	return append(dst, crlf...)
}

func appendField(dst, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, crlf...)
}

// appendEncodings joins several Content-Encoding lines, of which fasthttp would keep only the last.
func (h *head) appendEncodings(dst []byte) []byte {
	dst = append(dst, "Content-Encoding: "...)
	first := true
	for rest := h.fields; !bytes.Equal(rest, crlf); {
		var name, value []byte
		if name, value, rest, _ = cutField(rest); roleOf(name) != contentEncoding {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = append(dst, value...)
	}
	return append(dst, crlf...)
}
