package http1

import "strings"

// endToEnd are the fields that the gate or the shop relies on: a Connection header that names one would have a hop
// remove it. A name that ends in "-" stands for all that begin so.
var endToEnd = [...]string{
	"host", "content-", "transfer-encoding", "expect", "trailer",
	"cookie", "authorization", "idempotency-key", "origin", "referer",
	"forwarded", "via", "x-forwarded-", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip",
	"x-original-", "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
	"x-request-id", "sluice-", "x-sluice-",
}

// hopByHop are the fields that no other spelling may imitate either.
var hopByHop = [...]string{
	"connection", "proxy-connection", "keep-alive", "te", "upgrade", "proxy-authorization", "proxy-authenticate", "http2-settings",
}

// names reports whether a Connection option names a field that must arrive.
func (g *Guard) names(option []byte) bool {
	var room [maxName]byte
	plain := plainName(&room, option)
	return matches(plain, endToEnd[:]) || matches(plain, g.limits.Protected)
}

// aliases reports whether name, which holds a byte other than letters, digits and "-", becomes one of the names that
// matter once a server turns that byte into "_" and then takes "_" for "-", as CGI, WSGI, PHP and others do.
func (g *Guard) aliases(name []byte) bool {
	var room [maxName]byte
	plain := plainName(&room, name)
	return matches(plain, endToEnd[:]) || matches(plain, hopByHop[:]) || matches(plain, g.limits.Protected)
}

// maxName is the length to which names are compared. It covers every built-in name; a longer one can only match by prefix.
const maxName = 128

// plainName writes name in lower case with "-" for all punctuation, cut at maxName.
func plainName(room *[maxName]byte, name []byte) []byte {
	n := min(len(name), maxName)
	for i, c := range name[:n] {
		if classes[c]&symbolByte != 0 {
			c = '-'
		}
		room[i] = lower(c)
	}
	return room[:n]
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
