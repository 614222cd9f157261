package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Server is where shoppers come in.
type Server struct {
	// at least one, "host:port" or "unix:/path"; port 0 = any free one
	Listen          []string      `toml:"listen"`
	SocketGroup     string        `toml:"socket_group"`    // of unix sockets, name or number; "" = the process's own
	TrustedProxies  []string      `toml:"trusted_proxies"` // CIDRs, or "private"; see Trusted
	ClientIPHeader  string        `toml:"client_ip_header"`
	ProxyProtocol   bool          `toml:"proxy_protocol"`
	ReadTimeout     time.Duration `toml:"read_timeout" range:"above 0s"` // the whole request
	IdleTimeout     time.Duration `toml:"idle_timeout" range:"above 0s"`
	MaxHeaderSize   Size          `toml:"max_header_size" range:"1KiB to 1MiB"`
	LenientTarget   bool          `toml:"lenient_target"`                       // percent-encode raw UTF-8 in a target
	MaxBodySize     Size          `toml:"max_body_size" range:"1KiB to 1GiB"`   // gated routes hold all of it in memory
	BodyMemory      Size          `toml:"body_memory" range:"64KiB to 1024GiB"` // at least twice MaxBodySize
	RequestIDHeader string        `toml:"request_id_header"`
	StateDir        string        `toml:"state_dir"` // "" = none
	ShutdownDelay   time.Duration `toml:"shutdown_delay" range:"0s or more"`
	ShutdownTimeout time.Duration `toml:"shutdown_timeout" range:"above 0s"`
	TLS             *TLS          `toml:"tls"` // nil = plain HTTP
}

// TLS names the files of a certificate, in PEM.
type TLS struct {
	CertFile string `toml:"cert_file"`
	KeyFile  string `toml:"key_file"`
}

func defaultServer() Server {
	return Server{
		Listen:          []string{":8080"},
		TrustedProxies:  []string{},
		ClientIPHeader:  "X-Forwarded-For",
		ReadTimeout:     10 * time.Second,
		IdleTimeout:     75 * time.Second,
		MaxHeaderSize:   32 << 10,
		MaxBodySize:     256 << 10,
		BodyMemory:      64 << 20,
		RequestIDHeader: "X-Request-Id",
		ShutdownDelay:   5 * time.Second,
		ShutdownTimeout: 20 * time.Second,
	}
}

func (s *Server) check(r *report, deciders []Decide) {
	if len(s.Listen) == 0 {
		r.Fail("server.listen", "is empty; write where shoppers come in, like [\":8080\"]")
	}
	for i, address := range s.Listen {
		r.Listen(Element("server.listen", i), address)
	}
	s.checkSocket(r, deciders)
	for i, text := range s.TrustedProxies {
		r.Proxies(Element("server.trusted_proxies", i), text)
	}
	r.Token("server.client_ip_header", s.ClientIPHeader)
	if strings.EqualFold(s.ClientIPHeader, "Forwarded") {
		r.Fail("server.client_ip_header", "%q is a header of RFC 7239, which is not read; write one that holds addresses "+
			"alone, like \"X-Forwarded-For\"", s.ClientIPHeader)
	}
	r.Token("server.request_id_header", s.RequestIDHeader)
	s.checkBodyMemory(r)
	if s.ProxyProtocol && len(s.TrustedProxies) == 0 {
		r.Fail("server.proxy_protocol", "no proxy is trusted to send the header; name the proxies in server.trusted_proxies")
	}
	if s.TLS != nil {
		r.Filled("server.tls.cert_file", s.TLS.CertFile)
		r.Filled("server.tls.key_file", s.TLS.KeyFile)
	}
}

// checkBodyMemory wants room for two of the largest bodies: a large one takes at most half of the memory.
func (s *Server) checkBodyMemory(r *report) {
	if s.MaxBodySize <= s.BodyMemory/2 {
		return
	}
	if _, has := r.Lines["server.max_body_size"]; has {
		r.Fail("server.max_body_size", "%s exceeds half of server.body_memory (%s); lower it, or set server.body_memory to "+
			"%s",
			s.MaxBodySize, s.BodyMemory, 2*s.MaxBodySize)
		return
	}
	r.Fail("server.body_memory", "%s is below twice server.max_body_size (%s); raise it to %s, or lower the other",
		s.BodyMemory, s.MaxBodySize, 2*s.MaxBodySize)
}

// ResponseMemory is how much of it responses take that are read whole: as much as request bodies, and room for one.
func (s *Server) ResponseMemory() Size { return max(s.BodyMemory, 1<<20) }

func (s *Server) checkSocket(r *report, deciders []Decide) {
	isSocket := func(address string) bool { return strings.HasPrefix(address, "unix:") }
	hasSocket := slices.ContainsFunc(s.Listen, isSocket) ||
		slices.ContainsFunc(deciders, func(d Decide) bool { return isSocket(d.Listen) })
	if s.SocketGroup != "" && !hasSocket {
		r.Fail("server.socket_group", "no address of server.listen is a unix socket; add one like "+
			"\"unix:/run/sluice/sluice.sock\", or remove socket_group")
	}
	if strings.ContainsFunc(s.SocketGroup, func(c rune) bool { return c <= ' ' || c == ':' || c > '~' }) {
		r.Fail("server.socket_group", "%q is not the name of a group; write it like \"www-data\"", s.SocketGroup)
	}
}

// Trusted is TrustedProxies as prefixes, "private" spelled out. They are checked already.
func (s *Server) Trusted() []netip.Prefix { return prefixes(s.TrustedProxies) }

// prefixes are those of a list of proxies.
func prefixes(list []string) (all []netip.Prefix) {
	for _, text := range list {
		parts := []string{text}
		if text == "private" { // RFC 1918, RFC 4193, loopback
			parts = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "127.0.0.0/8", "::1/128"}
		}
		for _, p := range parts {
			if prefix, err := netip.ParsePrefix(p); err == nil {
				all = append(all, prefix)
			}
		}
	}
	return all
}
