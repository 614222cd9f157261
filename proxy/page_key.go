package proxy

import (
	"bytes"

	"sluice/internal/octets"
	"sluice/proxy/route"
	"sluice/proxy/server"
)

// pageSite is where a page is asked for.
type pageSite struct {
	Scheme, Host []byte // as the client asked
	Route        []byte // the host by which the route was found
	Trusted      bool   // a trusted proxy sent the request: what it says of the page's address is a part of the key
	ClientHeader string // in which such a proxy names its client, who chooses no page
}

// appendPageKey appends the key of the page that head asks for, whatever its method does to the page. Two requests with
// one key are given one response.
func appendPageKey(dst []byte, head *server.Request, at pageSite) []byte {
	dst = append(append(dst, at.Scheme...), '\n')
	dst = append(append(dst, at.Host...), '\n')
	dst = append(append(dst, at.Route...), '\n')
	dst = append(dst, head.Path...)
	if q := head.Query; q != nil { // "/x?" is another page than "/x"
		dst = append(append(dst, '?'), q...)
	}
	if at.Trusted {
		dst = appendProxyFields(dst, head, at.ClientHeader)
	}
	return dst
}

// appendProxyFields appends what else trusted proxies say of the page's address, often in words that they took from the
// client: some frameworks build links by it.
func appendProxyFields(dst []byte, head *server.Request, clientHeader string) []byte {
	for name, value := range head.Fields {
		switch {
		case !octets.FromProxy(name) || octets.EqualFold(name, clientHeader) || !octets.EndToEnd(name):
		case octets.EqualFold(name, "Forwarded"):
			dst = appendForwardedPlace(dst, value)
		case octets.HasPrefixFold(name, "X-Forwarded-"), octets.EqualFieldName(name, "Script-Name"):
			dst = append(append(append(append(dst, '\n'), name...), ':'), value...)
		}
	}
	return dst
}

// appendForwardedPlace appends the parameters of Forwarded (RFC 7239) that are not about the client. One that holds
// another "=" is to some readers another.
func appendForwardedPlace(dst, list []byte) []byte {
	isSeparator := func(c rune) bool { return c == ',' || c == ';' }
	for _, one := range bytes.FieldsFunc(list, isSeparator) {
		one = octets.Trim(one)
		client := (octets.HasPrefixFold(one, "for=") || octets.HasPrefixFold(one, "by=")) &&
			bytes.Count(one, []byte("=")) == 1
		if !client {
			dst = append(append(dst, '\n'), one...)
		}
	}
	return dst
}

// bypassesCache reports a request without a body that the upstream alone may answer: it says who the client is, asks
// for a part, or has a header by which some frameworks choose another page.
func bypassesCache(head *server.Request) bool {
	if !route.SafeMethod(head.Method) || head.Upgrade {
		return true
	}
	for name, value := range head.Fields {
		for _, n := range uncachedFields {
			if octets.EqualFieldName(name, n) {
				return true
			}
		}
		for _, n := range uncachedFamilies {
			if len(name) >= len(n) && octets.EqualFieldName(name[:len(n)], n) {
				return true
			}
		}
		if octets.EqualFold(name, "Cache-Control") && octets.HasToken(value, "no-store") {
			return true
		}
		if octets.NamesFields(name, value) {
			return true // it takes fields away that the page may vary by
		}
	}
	return false
}

// uncachedFields are those with which a request is no page's: of a person, of a part, of another page.
var uncachedFields = [...]string{
	"Authorization", "Proxy-Authorization", "Range", "If-Range", "If-Match", "If-Unmodified-Since",
	"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Original-URI",
	"X-Host", "X-Original-Host", "X-HTTP-Host-Override", "X-Scheme", "X-Url-Scheme", "Front-End-Https",
	"RSC", "X-Requested-With", "Turbo-Frame", "X-PJAX", "Origin",
}

// uncachedFamilies are the beginnings of more of them: fields by which frameworks choose a part of a page, or its data.
// Shops forget to name them in Vary, and a page must not be given for its part.
var uncachedFamilies = [...]string{"Next-", "HX-", "X-Inertia", "X-PJAX-", "Turbo-"}
