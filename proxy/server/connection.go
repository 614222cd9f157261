package server

import (
	"strings"

	"sluice/internal/octets"
)

// connection reads the options of one Connection line. Several lines are one list (RFC 9110, section 5.3).
func (s *scan) connection(p *parser, value []byte) Rule {
	if octets.EqualFold(value, "keep-alive") { // nearly always
		s.keepAlive = true
		return fine
	}
	for len(value) > 0 {
		option, rest := octets.Cut(value, ',')
		value = rest
		if option = octets.Trim(option); len(option) == 0 {
			continue // RFC 9110, section 5.6.1: empty elements are ignored
		}
		switch {
		case octets.EqualFold(option, "close"):
			s.Close = true
		case octets.EqualFold(option, "keep-alive"):
			s.keepAlive = true
		case octets.EqualFold(option, "upgrade"):
			s.wantsUpgrade = true
		case !octets.IsToken(option):
			return badConnection
		case p.protects(option):
			return connectionNamesHeader
		default:
			s.Named = true
		}
	}
	return fine
}

// upgrade reads the protocols of one Upgrade line.
func (s *scan) upgrade(value []byte) {
	for len(value) > 0 {
		protocol, rest := octets.Cut(value, ',')
		value = rest
		name, _ := octets.Cut(octets.Trim(protocol), '/')
		if len(name) == 0 {
			continue
		}
		s.Upgrade = true
		if octets.EqualFold(name, "h2c") {
			s.H2C = true
		}
	}
}

// endToEnd are fields that handler and upstream rely on: a Connection field that names one would have a hop remove
// it. A name that ends in "-" stands for all that begin so.
var endToEnd = [...]string{
	"host", "content-", "transfer-encoding", "expect", "trailer",
	"cookie", "authorization", "idempotency-key", "origin", "referer",
	"forwarded", "via", "x-forwarded-", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
	"cf-connecting-ip", "x-original-", "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
	"x-request-id",
}

// hopFields are the fields of framing and of one hop, which no other spelling may imitate.
var hopFields = [...]string{
	"host", "content-length", "transfer-encoding", "expect", "trailer", "connection", "proxy-connection", "keep-alive",
	"te", "upgrade", "proxy-authorization", "proxy-authenticate", "http2-settings",
}

// protects reports whether a Connection option names a field that must arrive.
func (p *parser) protects(option []byte) bool {
	var buf [maxName]byte
	plain := plainName(&buf, option)
	return matches(plain, endToEnd[:]) || matches(plain, p.limits.Protected)
}

// imitatesHopField reports whether name, which holds a byte other than letters, digits and "-", becomes a hop field
// once a server folds punctuation into "_" and then takes "_" for "-", as CGI, WSGI and PHP do.
func imitatesHopField(name []byte) bool {
	var buf [maxName]byte
	return matches(plainName(&buf, name), hopFields[:])
}

// maxName is the length to which names are compared. It covers every built-in name; a longer one matches by prefix
// alone.
const maxName = 128

// plainName writes name in lower case with "-" for all punctuation, cut at maxName.
func plainName(buf *[maxName]byte, name []byte) []byte {
	n := min(len(name), maxName)
	for i, c := range name[:n] {
		if classes[c]&symbolByte != 0 {
			c = '-'
		}
		buf[i] = octets.Lower(c)
	}
	return buf[:n]
}

func matches(plain []byte, names []string) bool {
	for _, name := range names {
		if string(plain) == name {
			return true
		}
		if strings.HasSuffix(name, "-") && len(plain) >= len(name) && string(plain[:len(name)]) == name {
			return true
		}
	}
	return false
}
