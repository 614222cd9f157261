package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"

	"sluice/config"
)

// tryTargets connects to each target of the shop, and asks for its health where a path is configured.
func tryTargets(ctx context.Context, o *Report, c *config.Config) error {
	for _, target := range c.Upstream.Targets {
		u, err := url.Parse(target)
		if err != nil {
			o.Fail("target", "%s: %v", target, err)
			continue
		}
		if path := c.Upstream.Health.Path; path != "" {
			o.tryHealth(ctx, c, target, path)
			continue
		}
		if err := connects(ctx, c, u); err != nil {
			o.Fail("target", "%s: %v; start the shop, or correct upstream.targets", target, err)
			continue
		}
		o.OK("target", "%s takes connections", target)
	}
	return nil
}

func connects(ctx context.Context, c *config.Config, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	ctx, cancel := context.WithTimeout(ctx, c.Upstream.ConnectTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if u.Scheme != "https" {
		return nil
	}
	return tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
}

// tryHealth asks as the gate's own probes do.
func (o *Report) tryHealth(ctx context.Context, c *config.Config, target, path string) {
	ctx, cancel := context.WithTimeout(ctx, c.Upstream.ConnectTimeout+c.Upstream.Health.Timeout)
	defer cancel()
	at := strings.TrimSuffix(target, "/") + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		o.Fail("target", "%s: %v", at, err)
		return
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req) // a client would follow redirects
	if err != nil {
		o.Fail("target", "%v; start the shop, or correct upstream.targets", err)
		return
	}
	resp.Body.Close()
	low, high := c.Upstream.Health.Statuses()
	if resp.StatusCode < low || resp.StatusCode > high {
		o.Fail("target", "%s answers %d, and not %s: it would get no orders; correct upstream.health.path or status", at,
			resp.StatusCode, c.Upstream.Health.Status)
		return
	}
	o.OK("target", "%s answers %d", at, resp.StatusCode)
}
