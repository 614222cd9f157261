package config

import (
	"net/netip"
	"time"
)

// Server is where shoppers come in.
type Server struct {
	Listen            []string      `toml:"listen"`          // at least one, "host:port" or "unix:/path"; port 0 = any free one
	TrustedProxies    []string      `toml:"trusted_proxies"` // CIDRs, or "private"; see Trusted
	ClientIPHeader    string        `toml:"client_ip_header"`
	ProxyProtocol     bool          `toml:"proxy_protocol"`
	ReadHeaderTimeout time.Duration `toml:"read_header_timeout"` // above 0, at most ReadTimeout
	ReadTimeout       time.Duration `toml:"read_timeout"`        // above 0; the whole request
	WriteTimeout      time.Duration `toml:"write_timeout"`       // above 0
	IdleTimeout       time.Duration `toml:"idle_timeout"`        // above 0
	MaxHeaderSize     Size          `toml:"max_header_size"`     // 1 KiB to 1 MiB
	LenientTarget     bool          `toml:"lenient_target"`      // percent-encode raw UTF-8 in a target
	MaxBodySize       Size          `toml:"max_body_size"`       // 1 KiB to 1 GiB; gated routes hold all of it in memory
	RequestIDHeader   string        `toml:"request_id_header"`
	ShutdownDelay     time.Duration `toml:"shutdown_delay"`   // 0 or above
	ShutdownTimeout   time.Duration `toml:"shutdown_timeout"` // above 0
	TLS               *TLS          `toml:"tls"`              // nil = plain HTTP
}

// TLS names the files of a certificate, in PEM.
type TLS struct {
	CertFile string `toml:"cert_file"`
	KeyFile  string `toml:"key_file"`
}

// Trusted is TrustedProxies as prefixes, "private" spelled out.
func (s *Server) Trusted() []netip.Prefix { return trusted(s.TrustedProxies) }

func defaultServer() Server {
	return Server{
		Listen:            []string{":8080"},
		TrustedProxies:    []string{},
		ClientIPHeader:    "X-Forwarded-For",
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       75 * time.Second,
		MaxHeaderSize:     32 << 10,
		MaxBodySize:       256 << 10,
		RequestIDHeader:   "X-Request-Id",
		ShutdownDelay:     5 * time.Second,
		ShutdownTimeout:   20 * time.Second,
	}
}

func (s *Server) check(r *report) {
	if len(s.Listen) == 0 {
		r.fail("server.listen", "is empty; write where shoppers come in, like [\":8080\"]")
	}
	for i, address := range s.Listen {
		r.listen(element("server.listen", i), address)
	}
	for i, text := range s.TrustedProxies {
		r.proxies(element("server.trusted_proxies", i), text)
	}
	r.token("server.client_ip_header", s.ClientIPHeader)
	r.token("server.request_id_header", s.RequestIDHeader)
	r.positive("server.read_header_timeout", s.ReadHeaderTimeout)
	r.positive("server.read_timeout", s.ReadTimeout)
	r.positive("server.write_timeout", s.WriteTimeout)
	r.positive("server.idle_timeout", s.IdleTimeout)
	r.notNegative("server.shutdown_delay", s.ShutdownDelay)
	r.positive("server.shutdown_timeout", s.ShutdownTimeout)
	atMost(r, "server.read_header_timeout", s.ReadHeaderTimeout, "server.read_timeout", s.ReadTimeout)
	between(r, "server.max_header_size", s.MaxHeaderSize, 1<<10, 1<<20)
	between(r, "server.max_body_size", s.MaxBodySize, 1<<10, 1<<30)
	if s.ProxyProtocol && len(s.TrustedProxies) == 0 {
		r.fail("server.proxy_protocol", "nobody is trusted to send it; name the proxies in server.trusted_proxies")
	}
	if s.TLS != nil {
		r.filled("server.tls.cert_file", s.TLS.CertFile)
		r.filled("server.tls.key_file", s.TLS.KeyFile)
	}
}

// proxies also refuses to trust everybody: then every client could choose the address that is limited.
func (r *report) proxies(key, text string) {
	if p, err := netip.ParsePrefix(text); err == nil && p.Bits() == 0 {
		r.fail(key, "%q lets every client choose its own address; write the CIDRs of the proxies", text)
		return
	}
	r.prefix(key, text, "private")
}
