package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sluice/config/position"
	"sluice/config/source"
	"strconv"
	"strings"
)

// listen wants an address to listen on: ":8080", "127.0.0.1:8080", "[::]:8443" or "unix:/path".
func (r *report) listen(key, address string) {
	r.rule(key, "host:port or unix:/PATH")
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
	r.rule(key, "host:port")
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
	r.rule(key, "http://HOST:PORT, https://HOST:PORT or unix:/PATH")
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
		r.fail(key, "%q has more than a scheme, a host and a port: Sluice forwards the path of each request; write \"%s://%s\"",
			text, u.Scheme, u.Host)
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

// maxNetworks bounds a file of addresses, in bytes: some 400,000 lines.
const maxNetworks = 8 << 20

// networks reads a list of CIDRs and of files of them.
func (r *report) networks(key string, list []string) (all []netip.Prefix) {
	for i, text := range list {
		path, isFile := strings.CutPrefix(text, "file:")
		switch {
		case !isFile:
			before := len(r.problems)
			if r.prefix(position.Element(key, i), text); len(r.problems) == before {
				all = append(all, netip.MustParsePrefix(text))
			}
		case !strings.HasPrefix(path, "/"):
			r.fail(position.Element(key, i), "%q has no absolute path; write it like \"file:/etc/sluice/deny.txt\"", text)
		default:
			all = append(all, r.networksIn(position.Element(key, i), path)...)
		}
	}
	return all
}

// networksIn reads a file of one CIDR or address a line. What follows a # is a comment. The first line that is neither
// is a problem: a list that is read in part would let in whom it was to keep out.
func (r *report) networksIn(key, path string) (all []netip.Prefix) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for without end, at each reload
		r.fail(key, "%s is not a regular file; write the path of one that sluice can read again and again", path)
		return nil
	}
	text, err := source.Read(path, maxNetworks)
	switch {
	case err != nil:
		r.fail(key, "open %s: %s; write the path of a file that sluice may read", path, source.Cause(err))
		return nil
	case len(text) > maxNetworks:
		r.fail(key, "%s is larger than %v; join its networks into larger ones", path, Size(maxNetworks))
		return nil
	}
	all, bad := parseNetworks(string(text))
	if bad.number > 0 {
		r.fail(key, "%s:%d: %q is neither a CIDR nor an address; write it like \"192.0.2.0/24\"", path, bad.number, shortened(bad.text))
	}
	return all
}

// badLine is a line that cannot be read; number 0 = none.
type badLine struct {
	number int
	text   string
}

// byteOrderMark is what some editors put before a text (Unicode, section 23.8).
const byteOrderMark = "\ufeff"

func parseNetworks(text string) (all []netip.Prefix, bad badLine) {
	text = strings.TrimPrefix(text, byteOrderMark)
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		p, err := parseNetwork(line)
		if err != nil {
			return nil, badLine{n, line}
		}
		all = append(all, p)
	}
	return all, bad
}

// parseNetwork reads a CIDR, whatever its bits beyond its length are, or one address: lists come from elsewhere.
func parseNetwork(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, os.ErrInvalid
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// Files are those whose content is part of the configuration, its own included; a folder stands for what is in it. A file that is read anew at each use,
// as a certificate, is none of them.
func (c *Config) Files() []string {
	files := []string{c.file}
	for _, list := range [][]string{c.Limits.Bypass, c.Limits.Deny} {
		for _, text := range list {
			if path, isFile := strings.CutPrefix(text, "file:"); isFile {
				files = append(files, path)
			}
		}
	}
	files = append(files, c.Auth.KeyFiles...)
	if path := c.Upstream.TLS.CAPath; path != "" {
		files = append(files, path)
	}
	if dir := c.Responses.PagesDir; dir != "" {
		files = append(files, dir)
	}
	return files
}

// Origins are web origins in their serialised form (RFC 6454, section 6.2), which browsers send and which are compared
// byte by byte. "*" stands alone, for all of them.
type Origins []string

func (o Origins) check(r *report, key string) {
	r.rule(key, "origins, or \"*\" alone")
	at := func(i int) string { return position.Element(key, i) }
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
