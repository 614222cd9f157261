package config

import (
	"net/url"
	"strings"
)

// Origins are web origins in their serialised form (RFC 6454, section 6.2), which browsers send and which are compared
// byte by byte. "*" stands alone, for all of them.
type Origins []string

func (o Origins) check(r *report, key string) {
	at := func(i int) string { return element(key, i) }
	for i, origin := range o {
		switch {
		case origin == "*" && len(o) > 1:
			r.fail(at(i), `"*" is every origin, without cookies; write ["*"] alone, or name the origins`)
		case origin != "*" && origin != serialised(origin):
			r.fail(at(i), "%q is not an origin; write scheme, host and port as browsers send them, "+
				`like "https://shop.example"`, origin)
		}
	}
	r.unique(o, at)
}

// serialised is the form in which browsers send the origin; "" = it is none.
func serialised(origin string) string {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || strings.ContainsAny(u.Host, "*%") {
		return ""
	}
	host := strings.ToLower(u.Host)
	for i := range len(host) {
		if host[i] <= ' ' || host[i] >= 0x7f {
			return ""
		}
	}
	if port := u.Port(); port == "" || u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host
}
