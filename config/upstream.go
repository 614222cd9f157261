package config

import (
	"crypto/x509"
	"slices"
	"sluice/config/position"
	"sluice/config/report"
	"sluice/config/source"
	"strconv"
	"strings"
	"time"
)

// Upstream is the shop's ordering backend.
type Upstream struct {
	Targets  []string `toml:"targets"` // at least one; no default
	Policy   string   `toml:"policy"`
	MaxConns int      `toml:"max_conns" unit:"connections"` // 1 to 65535, per target
	// 0 to 1000000 requests that wait for a connection; 0 = none waits
	MaxPending int `toml:"max_pending" unit:"requests"`
	// 0 to Timeout; how long they wait; 0 = they do not
	QueueTimeout time.Duration `toml:"queue_timeout"`
	// 1 MiB to 1 TiB; what slow clients have not read, in memory
	ResponseMemory Size `toml:"response_memory"`
	// past it, in a file: 1 MiB to 1 TiB; 0 = none
	SpoolSize Size `toml:"spool_size"`
	// "" = the system's folder for temporary files
	SpoolDir       string        `toml:"spool_dir"`
	ConnectTimeout time.Duration `toml:"connect_timeout"` // above 0, at most Timeout
	// above 0, at most Timeout; to the response's header
	ResponseHeaderTimeout time.Duration `toml:"response_header_timeout"`
	Timeout               time.Duration `toml:"timeout"` // above 0; the whole exchange
	IdleConnTimeout       time.Duration `toml:"idle_conn_timeout"`
	PassHost              bool          `toml:"pass_host"`
	Retry                 string        `toml:"retry"` // "off" or "connect"
	TLS                   UpstreamTLS   `toml:"tls"`
	Health                Health        `toml:"health"`
}

// UpstreamTLS is how the certificates of https:// targets are verified.
type UpstreamTLS struct {
	// certificates in PEM, in place of the system's; "" = those of the system
	CAFile             string `toml:"ca_file"`
	ServerName         string `toml:"server_name"` // "" = the host of each target's URL
	InsecureSkipVerify bool   `toml:"insecure_skip_verify"`
	CA                 string // what CAFile holds
	CAPath             string // where it was read; "" = there is none
}

// Health is how each target is probed.
type Health struct {
	Path     string        `toml:"path"`                 // "" = no active check
	Interval time.Duration `toml:"interval"`             // above 0
	Timeout  time.Duration `toml:"timeout"`              // above 0, at most Interval
	Fails    int           `toml:"fails" unit:"checks"`  // 1 to 1000, in a row
	Passes   int           `toml:"passes" unit:"checks"` // 1 to 1000, in a row
	Status   string        `toml:"status"`               // "200" or "200-399"; see Statuses
}

// Statuses is the range of Status, both ends included.
func (h *Health) Statuses() (low, high int) {
	first, last, isRange := strings.Cut(h.Status, "-")
	if !isRange {
		last = first
	}
	return statusCode(first), statusCode(last)
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
		MaxPending:            10000,
		QueueTimeout:          time.Second,
		ResponseMemory:        64 << 20,
		SpoolSize:             1 << 30,
		ConnectTimeout:        time.Second,
		ResponseHeaderTimeout: 5 * time.Second,
		Timeout:               10 * time.Second,
		IdleConnTimeout:       4 * time.Second,
		PassHost:              true,
		Retry:                 "connect",
		Health: Health{Interval: 2 * time.Second, Timeout: time.Second, Fails: 3, Passes: 2,
			Status: "200-399"},
	}
}

func (u *Upstream) check(r *report.Report) {
	if len(u.Targets) == 0 {
		r.Fail("upstream.targets", "is missing; write where the shop is, like [\"http://127.0.0.1:9000\"]")
	}
	for i, target := range u.Targets {
		r.Target(position.Element("upstream.targets", i), target)
	}
	r.Unique(u.Targets, func(i int) string { return position.Element("upstream.targets", i) })
	r.OneOf("upstream.policy", u.Policy, "least_conn", "round_robin", "random", "first", "client_hash")
	report.Between(r, "upstream.max_conns", u.MaxConns, 1, 65535)
	report.Between(r, "upstream.max_pending", u.MaxPending, 0, 1000000)
	r.NotNegative("upstream.queue_timeout", u.QueueTimeout)
	report.Between(r, "upstream.response_memory", u.ResponseMemory, 1<<20, maxSize)
	r.Rule("upstream.spool_size", "0B, or 1MiB to 1024GiB")
	if u.SpoolSize != 0 {
		report.Between(r, "upstream.spool_size", u.SpoolSize, 1<<20, maxSize)
	}
	r.Positive("upstream.connect_timeout", u.ConnectTimeout)
	r.Positive("upstream.response_header_timeout", u.ResponseHeaderTimeout)
	r.Positive("upstream.timeout", u.Timeout)
	r.Positive("upstream.idle_conn_timeout", u.IdleConnTimeout)
	report.AtMost(r, "upstream.queue_timeout", u.QueueTimeout, "upstream.timeout", u.Timeout)
	report.AtMost(r, "upstream.connect_timeout", u.ConnectTimeout, "upstream.timeout", u.Timeout)
	report.AtMost(r, "upstream.response_header_timeout", u.ResponseHeaderTimeout, "upstream.timeout", u.Timeout)
	r.OneOf("upstream.retry", u.Retry, "off", "connect")
	u.checkTLS(r)
	u.Health.check(r)
}

// checkTLS wants a target that [upstream.tls] is for, and one way to verify it.
func (u *Upstream) checkTLS(r *report.Report) {
	t := &u.TLS
	hasTLS := slices.ContainsFunc(u.Targets, func(target string) bool { return strings.HasPrefix(target, "https://") })
	for key, used := range map[string]bool{
		"ca_file": t.CAFile != "", "server_name": t.ServerName != "", "insecure_skip_verify": t.InsecureSkipVerify,
	} {
		if used && !hasTLS && len(u.Targets) > 0 {
			r.Fail("upstream.tls."+key, "no target of upstream.targets begins with https://; write one so, or remove this key")
		}
	}
	if t.InsecureSkipVerify && t.CAFile != "" {
		r.Fail("upstream.tls.insecure_skip_verify", "true switches off the verification by ca_file; remove one of them")
	}
	if strings.ContainsFunc(t.ServerName, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("/:*",
			c)
	}) {
		r.Fail("upstream.tls.server_name", "%q is not the name of a host; write it like \"shop.internal\"", t.ServerName)
	}
}

// read reads the CA's certificates. A relative path starts from folder.
func (t *UpstreamTLS) read(r *report.Report, folder string) {
	if t.CAFile == "" {
		return
	}
	t.CAPath = source.From(folder, t.CAFile)
	text, err := source.Read(t.CAPath, maxCA)
	switch {
	case err != nil:
		r.Fail("upstream.tls.ca_file", "open %s: %s; write the path of a file that sluice may read", t.CAPath,
			source.Cause(err))
	case len(text) > maxCA:
		r.Fail("upstream.tls.ca_file", "%s is larger than %v; write the certificate of the CA alone into it", t.CAPath,
			Size(maxCA))
	case !x509.NewCertPool().AppendCertsFromPEM(text):
		r.Fail("upstream.tls.ca_file", "%s holds no certificate in PEM; write that of the CA into it, from "+
			"\"-----BEGIN CERTIFICATE-----\" on", t.CAPath)
	}
	t.CA = string(text)
}

// maxCA bounds a file of certificates, in bytes.
const maxCA = 1 << 20

func (h *Health) check(r *report.Report) {
	if h.Path != "" && (!strings.HasPrefix(h.Path, "/") || strings.ContainsAny(h.Path, " \t\r\n")) {
		r.Fail("upstream.health.path", "%q is not a path; write it like \"/healthz\"", h.Path)
	}
	r.Positive("upstream.health.interval", h.Interval)
	r.Positive("upstream.health.timeout", h.Timeout)
	report.AtMost(r, "upstream.health.timeout", h.Timeout, "upstream.health.interval", h.Interval)
	report.Between(r, "upstream.health.fails", h.Fails, 1, 1000)
	report.Between(r, "upstream.health.passes", h.Passes, 1, 1000)
	if low, high := h.Statuses(); low == 0 || high < low {
		r.Fail("upstream.health.status", "%q is not a range of statuses; write it like \"200\" or \"200-399\"", h.Status)
	}
}
