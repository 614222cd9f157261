package upstream

import (
	"bytes"

	"sluice/internal/octets"
)

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
