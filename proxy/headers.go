package proxy

import "bytes"

// trimSpace cuts optional white space (RFC 9110, section 5.6.3).
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for n := len(b); n > 0 && (b[n-1] == ' ' || b[n-1] == '\t'); n = len(b) {
		b = b[:n-1]
	}
	return b
}

// hasToken reports whether a comma-separated field value holds a token, in any letter case.
func hasToken(list, token []byte) bool {
	for len(list) > 0 {
		var item []byte
		item, list = cut(list, ',')
		if bytes.EqualFold(trimSpace(item), token) {
			return true
		}
	}
	return false
}

// namedByConnection lists the fields that Connection declares to be about this connection alone, comma-separated.
func (r *request) namedByConnection() []byte {
	if !r.asked.Named { // nearly always
		return nil
	}
	r.scratch = r.scratch[:0]
	for name, value := range r.asked.Fields {
		if equalFold(name, "Connection") && !equalFold(value, "keep-alive") && !equalFold(value, "close") {
			r.scratch = append(append(r.scratch, value...), ',')
		}
	}
	return r.scratch
}

// endToEnd reports whether a field may travel on: it is not about this connection alone (RFC 9110, section 7.6.1), not
// one that the gate writes itself, and not one that only the gate may speak. CGI takes Proxy for a setting of its own.
func endToEnd(name []byte) bool {
	if len(name) > 7 && equalFold(name[:7], "Sluice-") {
		return false
	}
	switch len(name) {
	case 2:
		return !equalFold(name, "TE")
	case 3:
		return !equalFold(name, "Via")
	case 4:
		return !equalFold(name, "Host")
	case 5:
		return !equalFold(name, "Proxy")
	case 6:
		return !equalFold(name, "Expect")
	case 7:
		return !equalFold(name, "Trailer") && !equalFold(name, "Upgrade")
	case 10:
		return !equalFold(name, "Connection") && !equalFold(name, "Keep-Alive")
	case 14:
		return !equalFold(name, "Content-Length") && !equalFold(name, "HTTP2-Settings")
	case 15:
		return !equalFold(name, "X-Forwarded-For")
	case 16:
		return !equalFold(name, "Proxy-Connection") && !equalFold(name, "X-Forwarded-Host")
	case 17:
		return !equalFold(name, "Transfer-Encoding") && !equalFold(name, "X-Forwarded-Proto")
	case 19:
		return !equalFold(name, "Proxy-Authorization")
	}
	return true
}

// fromProxy reports whether a field speaks of the way here, as one proxy or another does: believed, and handed on, from
// trusted proxies alone.
func fromProxy(name []byte) bool {
	const forwarded = "X-Forwarded-"
	if len(name) >= len(forwarded) && equalFold(name[:len(forwarded)], forwarded) {
		return true
	}
	switch len(name) {
	case 9:
		return equalFold(name, "Forwarded") || equalFold(name, "X-Real-IP")
	case 11:
		return equalFold(name, "X-Client-IP")
	case 14:
		return equalFold(name, "True-Client-IP")
	case 16:
		return equalFold(name, "CF-Connecting-IP")
	case 19:
		return equalFold(name, "X-Cluster-Client-IP")
	}
	return false
}
