package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Listen wants an address to listen on: ":8080", "127.0.0.1:8080", "[::]:8443" or "unix:/path".
func (r *report) Listen(key, address string) {
	r.Rule(key, "host:port or unix:/PATH")
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			r.Fail(key, "%q has no absolute path; write it like \"unix:/run/sluice.sock\"", address)
		}
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || !portNumber(port, 0) || strings.ContainsAny(host, " /") {
		r.Fail(key, "%q is not an address; write it like \":8080\", \"127.0.0.1:8080\" or \"unix:/run/sluice.sock\"", address)
	}
}

// HostPort wants an address to connect to.
func (r *report) HostPort(key, address string) {
	r.Rule(key, "host:port")
	if strings.Contains(address, "://") {
		r.Fail(key, "%q is a URL; write only its host and port, like \"127.0.0.1:6379\": the user, the password, the "+
			"database and TLS are the keys username, password_file, db and tls of stock.redis", address)
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || !portNumber(port, 1) || strings.ContainsAny(host, " /") {
		r.Fail(key, "%q is not an address; write it like \"127.0.0.1:6379\"", address)
	}
}

// RedisAddress wants an address to connect to, or the path of a unix socket. It reports whether it is a path.
func (r *report) RedisAddress(key, address string) (socket bool) {
	r.Rule(key, "host:port, /PATH or unix:/PATH")
	path, named := strings.CutPrefix(address, "unix:")
	switch {
	case strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//"):
		return true
	case named:
		r.Fail(key, "%q has no absolute path; write it like \"unix:/run/redis/redis.sock\"", address)
		return true
	}
	r.HostPort(key, address)
	return false
}

func portNumber(port string, least uint64) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n >= least
}

// isLoopback tells whether only this machine can reach a listen address.
func isLoopback(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// prefix wants a CIDR or one of the words that may stand for some.
func (r *report) prefix(key, text string, words ...string) {
	if slices.Contains(words, text) {
		return
	}
	p, err := netip.ParsePrefix(text)
	ip, single := netip.ParseAddr(text)
	switch {
	case single == nil:
		r.Fail(key, "%q is an address, not a CIDR; write \"%s/%d\"", text, text, ip.BitLen())
	case err != nil:
		r.Fail(key, "%q is not a CIDR; write it like \"10.0.0.0/8\"", text)
	case p.Masked() != p:
		r.Fail(key, "%q has bits beyond its length; write %q", text, p.Masked())
	}
}

// Proxies also rejects a list that trusts every client: then every client could choose the address that is limited.
func (r *report) Proxies(key, text string) {
	r.Rule(key, "CIDRs, or \"private\"")
	if p, err := netip.ParsePrefix(text); err == nil && p.Bits() == 0 {
		r.Fail(key, "%q lets every client choose its own address; write the CIDRs of the proxies", text)
		return
	}
	r.prefix(key, text, "private")
}

// Target wants the root of the shop: "http://host:port", "https://host" or "unix:/path".
func (r *report) Target(key, text string) {
	r.Rule(key, "http://HOST:PORT, https://HOST:PORT or unix:/PATH")
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			r.Fail(key, "%q has no absolute path; write it like \"unix:/run/shop.sock\"", text)
		}
		return
	}
	u, ok := webURL(text)
	if !ok {
		r.Fail(key, "%q is not a target; write it like \"http://127.0.0.1:9000\", \"https://shop.internal\" or "+
			"\"unix:/run/shop.sock\"", text)
		return
	}
	if u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		r.Fail(key, "%q has more than a scheme, a host and a port: Sluice forwards the path of each request; "+
			"write \"%s://%s\"", text, u.Scheme, u.Host)
	}
}

// webURL takes an absolute http or https URL with a host.
func webURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, false
	}
	return u, !strings.HasSuffix(u.Host, ":") && (u.Port() == "" || portNumber(u.Port(), 1))
}

// Origins wants web origins as browsers send them, or "*" alone.
func (r *report) Origins(key string, list []string) {
	r.Rule(key, "origins, or \"*\" alone")
	at := func(i int) string { return Element(key, i) }
	for i, origin := range list {
		switch {
		case origin == "*" && len(list) > 1:
			r.Fail(at(i), `"*" is every origin, without cookies; write ["*"] alone, or name the origins`)
		case origin != "*" && origin != serialised(origin):
			r.Fail(at(i), "%q is not an origin; write scheme, host and port as browsers send them, "+
				`like "https://shop.example"`, origin)
		}
	}
	r.Unique(list, at)
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
