package config

import (
	"crypto/x509"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Upstream is the shop's ordering backend.
type Upstream struct {
	Targets  []string `toml:"targets"` // at least one; no default
	Policy   string   `toml:"policy" words:"least_conn round_robin random first client_hash"`
	MaxConns int      `toml:"max_conns" unit:"connections" range:"1 to 65535"` // per target
	// how long requests wait for a connection, at most Timeout
	QueueTimeout time.Duration `toml:"queue_timeout" range:"0s or more"`
	// to the response's header, at most Timeout
	ResponseHeaderTimeout time.Duration `toml:"response_header_timeout" range:"above 0s"`
	Timeout               time.Duration `toml:"timeout" range:"above 0s"` // the whole exchange
	IdleConnTimeout       time.Duration `toml:"idle_conn_timeout" range:"above 0s"`
	PassHost              bool          `toml:"pass_host"`
	TLS                   UpstreamTLS   `toml:"tls"`
	Health                Health        `toml:"health"`
}

// UpstreamTLS is how the certificates of https:// targets are verified.
type UpstreamTLS struct {
	// certificates in PEM, in place of the system's; "" = those of the system
	CAFile     string `toml:"ca_file"`
	ServerName string `toml:"server_name"` // "" = the host of each target's URL
	CA         string // what CAFile holds
	CAPath     string // where it was read; "" = there is none
}

// Health is how each target is probed.
type Health struct {
	Path string `toml:"path"` // "" = no active check
}

// ConnectTimeout is how long a connection may take. A distant upstream has a longer response_header_timeout.
func (u *Upstream) ConnectTimeout() time.Duration {
	return min(u.Timeout, max(time.Second, u.ResponseHeaderTimeout/5))
}

// statusCode is an HTTP status from 100 to 599, or 0.
func statusCode(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) != 3 || n < 100 || n > 599 {
		return 0
	}
	return n
}

func defaultUpstream() Upstream {
	return Upstream{
		Policy:                "least_conn",
		MaxConns:              512,
		QueueTimeout:          time.Second,
		ResponseHeaderTimeout: 5 * time.Second,
		Timeout:               10 * time.Second,
		IdleConnTimeout:       4 * time.Second,
		PassHost:              true,
	}
}

// LongestOrder is how long an order may take that is forwarded at once.
func (c *Config) LongestOrder() time.Duration {
	longest := c.Upstream.Timeout
	for i := range c.Routes {
		if c.Routes[i].Gate == "reserve" {
			longest = max(longest, c.Routes[i].Timeout)
		}
	}
	return longest
}

func (u *Upstream) check(r *report) {
	if len(u.Targets) == 0 {
		r.Fail("upstream.targets", "is missing; write where the shop is, like [\"http://127.0.0.1:9000\"]")
	}
	for i, target := range u.Targets {
		r.Target(Element("upstream.targets", i), target)
	}
	r.Unique(u.Targets, func(i int) string { return Element("upstream.targets", i) })
	atMost(r, "upstream.queue_timeout", u.QueueTimeout, "upstream.timeout", u.Timeout)
	atMost(r, "upstream.response_header_timeout", u.ResponseHeaderTimeout, "upstream.timeout", u.Timeout)
	u.checkTLS(r)
	u.Health.check(r)
}

// checkTLS wants a target that [upstream.tls] is for.
func (u *Upstream) checkTLS(r *report) {
	t := &u.TLS
	hasTLS := slices.ContainsFunc(u.Targets, func(target string) bool { return strings.HasPrefix(target, "https://") })
	for key, used := range map[string]bool{
		"ca_file": t.CAFile != "", "server_name": t.ServerName != "",
	} {
		if used && !hasTLS && len(u.Targets) > 0 {
			r.Fail("upstream.tls."+key, "no target of upstream.targets begins with https://; write one so, or remove this key")
		}
	}
	if strings.ContainsFunc(t.ServerName, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("/:*", c)
	}) {
		r.Fail("upstream.tls.server_name", "%q is not the name of a host; write it like \"shop.internal\"", t.ServerName)
	}
}

// read reads the CA's certificates. A relative path starts from folder.
func (t *UpstreamTLS) read(r *report, folder string) {
	if t.CAFile == "" {
		return
	}
	t.CAPath = resolvePath(folder, t.CAFile)
	t.CA = r.Text("upstream.tls.ca_file", folder, t.CAFile, maxCA, "the certificate of the CA")
	if t.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.CA)) {
		r.Fail("upstream.tls.ca_file", "%s holds no certificate in PEM; write that of the CA into it, from "+
			"\"-----BEGIN CERTIFICATE-----\" on", t.CAPath)
	}
}

// maxCA bounds a file of certificates, in bytes.
const maxCA = 1 << 20

func (h *Health) check(r *report) {
	if h.Path != "" && (!strings.HasPrefix(h.Path, "/") || strings.ContainsAny(h.Path, " \t\r\n")) {
		r.Fail("upstream.health.path", "%q is not a path; write it like \"/healthz\"", h.Path)
	}
}
