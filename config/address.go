package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// listen wants an address to listen on: ":8080", "127.0.0.1:8080", "[::]:8443" or "unix:/path".
func (r *report) listen(key, address string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			r.fail(key, "%q has no absolute path; write it like \"unix:/run/sluice.sock\"", address)
		}
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || !portNumber(port, 0) || strings.ContainsAny(host, " /") {
		r.fail(key, "%q is not an address; write it like \":8080\", \"127.0.0.1:8080\" or \"unix:/run/sluice.sock\"", address)
	}
}

// hostPort wants an address to connect to.
func (r *report) hostPort(key, address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || !portNumber(port, 1) || strings.ContainsAny(host, " /") {
		r.fail(key, "%q is not an address; write it like \"127.0.0.1:6379\"", address)
	}
}

func portNumber(port string, least int) bool {
	n, err := strconv.Atoi(port)
	return err == nil && digits(port) && n >= least && n <= 65535
}

// loopback tells whether only this machine can reach a listen address.
func loopback(address string) bool {
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
		r.fail(key, "%q is an address, not a CIDR; write \"%s/%d\"", text, text, ip.BitLen())
	case err != nil:
		r.fail(key, "%q is not a CIDR; write it like \"10.0.0.0/8\"", text)
	case p.Masked() != p:
		r.fail(key, "%q has bits beyond its length; write %q", text, p.Masked())
	}
}

// target wants the root of the shop: "http://host:port", "https://host" or "unix:/path".
func (r *report) target(key, text string) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			r.fail(key, "%q has no absolute path; write it like \"unix:/run/shop.sock\"", text)
		}
		return
	}
	u, ok := webURL(text)
	if !ok {
		r.fail(key, "%q is not a target; write it like \"http://127.0.0.1:9000\", \"https://shop.internal\" or \"unix:/run/shop.sock\"", text)
		return
	}
	if u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		r.fail(key, "%q says more than where the shop is; write \"%s://%s\"", text, u.Scheme, u.Host)
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

// trusted reads the CIDRs of server.trusted_proxies, which are checked already.
func trusted(list []string) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range list {
		parts := []string{text}
		if text == "private" { // RFC 1918, RFC 4193, loopback
			parts = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "127.0.0.0/8", "::1/128"}
		}
		for _, p := range parts {
			if prefix, err := netip.ParsePrefix(p); err == nil {
				prefixes = append(prefixes, prefix)
			}
		}
	}
	return prefixes
}
