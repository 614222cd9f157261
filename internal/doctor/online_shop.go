package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"

	"sluice/config"
	"sluice/upstream"
)

// tryTargets connects to each target of the shop as the gate does, and asks for its health where a path is configured.
func tryTargets(ctx context.Context, o *Report, c *config.Config) error {
	for _, text := range c.Upstream.Targets {
		t, err := newShopTarget(c, text)
		if err != nil {
			o.Fail("target", "%s: %v", text, err)
			continue
		}
		if c.Upstream.Health.Path != "" {
			t.tryHealth(ctx, o)
			continue
		}
		switch err := t.try(ctx); {
		case err != nil:
			o.Fail("target", "%s: %v; %s", text, err, upstream.Remedy(err))
		case t.wantsTLS(ctx):
			o.Fail("target", "%s", t.plainToTLS())
		default:
			o.OK("target", "%s takes connections", text)
		}
	}
	return nil
}

// shopTarget is one target, and the way to it.
type shopTarget struct {
	text, network, address, host string
	tls                          *tls.Config // nil = plain
	config                       *config.Upstream
}

func newShopTarget(c *config.Config, text string) (t shopTarget, err error) {
	t = shopTarget{text: text, config: &c.Upstream}
	if path, isSocket := strings.CutPrefix(text, "unix:"); isSocket {
		t.network, t.address, t.host = "unix", path, "localhost"
		return t, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return t, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	t.network, t.address, t.host = "tcp", net.JoinHostPort(u.Hostname(), port), u.Host
	if u.Scheme == "https" {
		s := &c.Upstream.TLS
		t.tls, err = upstream.TLS{CA: s.CA, ServerName: s.ServerName}.Config(u.Hostname())
	}
	return t, err
}

func (t *shopTarget) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: t.config.ConnectTimeout()}
	if t.tls == nil {
		return d.DialContext(ctx, t.network, t.address)
	}
	return (&tls.Dialer{NetDialer: &d, Config: t.tls}).DialContext(ctx, t.network, t.address)
}

// try opens a connection, TLS included.
func (t *shopTarget) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.config.ConnectTimeout())
	defer cancel()
	conn, err := t.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// wantsTLS reports whether a plain target speaks TLS. The shop gets a handshake and no request.
func (t *shopTarget) wantsTLS(ctx context.Context) bool {
	if t.tls != nil || t.network != "tcp" {
		return false
	}
	secured := *t
	secured.tls = &tls.Config{InsecureSkipVerify: true} // nothing is sent; only whether it is TLS is asked
	return secured.try(ctx) == nil
}

// plainToTLS is what is wrong where wantsTLS is true.
func (t *shopTarget) plainToTLS() string {
	return t.text + " speaks TLS, and is sent plain HTTP; write " + strings.Replace(t.text, "http:", "https:", 1) +
		" in upstream.targets"
}

// tryHealth asks as the gate's own checks do.
func (t *shopTarget) tryHealth(ctx context.Context, o *Report) {
	ctx, cancel := context.WithTimeout(ctx, t.config.ConnectTimeout()+upstream.Checks("").Timeout)
	defer cancel()
	scheme, path := "http://", t.config.Health.Path
	if t.tls != nil {
		scheme = "https://"
	}
	at := strings.TrimSuffix(t.text, "/") + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+t.host+path, nil)
	if err != nil {
		o.Fail("target", "%s: %v", at, err)
		return
	}
	open := func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dial(ctx) }
	transport := &http.Transport{DisableKeepAlives: true, DialContext: open, DialTLSContext: open}
	resp, err := transport.RoundTrip(req) // a client would follow redirects
	if err != nil {
		o.Fail("target", "%s: %v; %s", at, err, upstream.Remedy(err))
		return
	}
	resp.Body.Close()
	switch {
	case upstream.Passes(resp.StatusCode):
		o.OK("target", "%s answers %d", at, resp.StatusCode)
	case t.wantsTLS(ctx):
		o.Fail("target", "%s", t.plainToTLS())
	default:
		o.Fail("target", "%s answers %d, and not 200 to 399: it counts as down, and gets orders only while every target "+
			"does; correct upstream.health.path", at, resp.StatusCode)
	}
}
