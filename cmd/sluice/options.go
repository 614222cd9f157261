package main

import (
	"encoding/json"
	"log/slog"
	"net"
	"strings"

	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// upstreamOptions are those of c. adopt stands below what failpoints do to each new connection.
func upstreamOptions(c *config.Config, adopt func(net.Conn) net.Conn, log *slog.Logger) upstream.Options {
	u := c.Upstream
	return upstream.Options{
		Targets: u.Targets, Policy: u.Policy, MaxConns: u.MaxConns,
		ConnectTimeout: u.ConnectTimeout, ResponseTimeout: u.ResponseTimeout,
		Timeout: u.Timeout, IdleConnTimeout: u.IdleConnTimeout, Retry: u.Retry,
		Health: upstream.Health{
			Path: u.Health.Path, Interval: u.Health.Interval, Timeout: u.Health.Timeout,
			Fails: u.Health.Fails, Passes: u.Health.Passes, Status: u.Health.Status,
		},
		Logger: log,
		Wrap:   wrapUpstream(adopt),
	}
}

// gates by their name in the file. A route whose gate is not here was refused by config.
var gates = map[string]route.Gate{
	"pass": route.Pass, "limit": route.Limit, "check": route.Check, "reserve": route.Reserve,
}

func routes(c *config.Config) (out []proxy.Route) {
	for _, r := range c.Routes {
		out = append(out, proxy.Route{Name: r.Name, Match: r.Match, Gate: gates[r.Gate], SKU: r.SKU, User: r.User,
			Quantity: r.Quantity, OrderToken: r.OrderToken, Cache: r.Cache})
	}
	return out
}

func proxyOptions(c *config.Config) proxy.Options {
	limit := c.Limits.Connection
	return proxy.Options{
		Routes:          routes(c),
		Observe:         c.Mode == "observe",
		Trusted:         c.Server.Trusted(),
		ClientHeader:    c.Server.ClientIPHeader,
		RequestIDHeader: c.Server.RequestIDHeader,
		MaxBody:         int64(c.Server.MaxBodySize),
		PassHost:        c.Upstream.PassHost,
		CacheWait:       c.Upstream.Timeout,
		Responses:       responses(&c.Responses),
		Auth:            proofs(&c.Proof),
		CloseOnExcess:   limit.OnExcess == "close",
		MaxRequests:     limit.MaxRequests,
		Bypass:          c.Limits.Bypassed,
		Deny:            c.Limits.Denied,
		ObserveOnly:     observeOnly(c),
		SoldOutOn:       soldOutOn(c.Stock.SoldOutOn),
		StockStatus:     stockStatus(&c.Stock),
	}
}

func settlement(r *config.Reserve) proxy.SettlementRules {
	s := proxy.SettlementRules{PerUser: int64(r.PerUser), ConfirmOn: r.ConfirmOn, ReleaseOn: r.ReleaseOn,
		Key: []byte(r.Secret)}
	if j := r.ConfirmJSON; j != nil {
		s.ConfirmJSON = inJSON(j.Path, j.Values)
	}
	return s
}

// inJSON is a place in a body, like "data.code", and what may stand there.
func inJSON(path string, values []any) *proxy.JSONValue {
	j := &proxy.JSONValue{Keys: strings.Split(path, ".")}
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			panic("BUG: a configured value that is no JSON: " + err.Error())
		}
		j.Values = append(j.Values, string(text))
	}
	return j
}

var formats = map[string]reject.Format{
	"auto": reject.Auto, "html": reject.HTML, "problem": reject.Problem, "envelope": reject.Envelope,
}

func responses(r *config.Responses) reject.Options {
	class := func(c config.Class) reject.Answer {
		return reject.Answer{Status: c.Status, Code: c.Code, RetryAfter: c.RetryAfter, Redirect: c.Redirect}
	}
	return reject.Options{
		Format: formats[r.Format], Languages: r.Languages, Pages: reject.PageFiles{Dir: r.PagesDir, Files: r.Pages},
		Answers: map[reject.Class]reject.Answer{
			reject.Busy: class(r.Busy), reject.SoldOutClass: class(r.SoldOut), reject.NotStartedClass: class(r.NotStarted),
			reject.EndedClass: class(r.Ended), reject.PausedClass: class(r.Paused),
			reject.ConfirmedClass: class(r.Confirmed), reject.DuplicateClass: class(r.Duplicate),
			reject.DeniedClass: class(r.Denied), reject.UnidentifiedClass: class(r.Unidentified),
			reject.UnknownSKUClass: class(r.UnknownSKU), reject.BadRequestClass: class(r.BadRequest),
			reject.Unavailable: class(r.Unavailable),
		},
		EnvelopeStatus: r.Envelope.Status, EnvelopeBody: r.Envelope.Body,
		Jitter: r.RetryAfterJitter, CORS: r.CORS == "reflect", ReasonHeader: r.ReasonHeader,
		RateFields: r.RatelimitHeaders,
	}
}

func serverOptions(c *config.Config, conns proxy.Connections, log *slog.Logger) (proxy.ServerOptions, error) {
	secure, err := tlsConfig(c.Server.TLS, log)
	if err != nil {
		return proxy.ServerOptions{}, c.Errorf("server.tls", "%v", err)
	}
	s := c.Server
	return proxy.ServerOptions{
		ReadHeaderTimeout: s.ReadHeaderTimeout, ReadTimeout: s.ReadTimeout,
		WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout,
		MaxHeader:     int(s.MaxHeaderSize),
		LenientTarget: s.LenientTarget,
		Connections:   conns,
		TLS:           secure,
		ProxyProtocol: s.ProxyProtocol,
		Log:           log,
	}, nil
}
