package main

import (
	"encoding/json"
	"log/slog"
	"strings"

	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/upstream"
)

func upstreamOptions(c *config.Config, log *slog.Logger) upstream.Options {
	u := c.Upstream
	return upstream.Options{
		Targets: u.Targets, Policy: u.Policy, MaxConns: u.MaxConns,
		ConnectTimeout: u.ConnectTimeout, ResponseTimeout: u.ResponseTimeout, Timeout: u.Timeout, IdleConnTimeout: u.IdleConnTimeout,
		Retry: u.Retry,
		Health: upstream.Health{
			Path: u.Health.Path, Interval: u.Health.Interval, Timeout: u.Health.Timeout,
			Fails: u.Health.Fails, Passes: u.Health.Passes, Status: u.Health.Status,
		},
		Logger: log,
		Wrap:   breakableShop(),
	}
}

// gates by their name in the file. A route whose gate is not here was refused by config.
var gates = map[string]proxy.Gate{"pass": proxy.Pass, "limit": proxy.Limit, "check": proxy.Check, "reserve": proxy.Reserve}

func routes(c *config.Config) (out []proxy.Route) {
	for _, r := range c.Routes {
		out = append(out, proxy.Route{Name: r.Name, Match: r.Match, Gate: gates[r.Gate], SKU: r.SKU, User: r.User, Quantity: r.Quantity, OrderToken: r.OrderToken, Cache: r.Cache})
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
		PageWait:        c.Upstream.Timeout,
		Responses:       responses(&c.Responses),
		Proof:           proofs(&c.Proof),
		Pace:            func() proxy.Pace { return limiter.NewConnRate(float64(limit.Rate), limit.Burst) },
		CloseOnExcess:   limit.OnExcess == "close",
		MaxRequests:     limit.MaxRequests,
		Rates:           keyedRates(c),
		Bypass:          c.Limits.Bypassed,
		Deny:            c.Limits.Denied,
		Spared:          spared(c),
		SoldOutOn:       soldOutOn(c.Stock.SoldOutOn),
		Show:            shows(&c.Stock),
	}
}

func settling(r *config.Reserve) proxy.Settling {
	s := proxy.Settling{PerUser: int64(r.PerUser), ConfirmOn: r.ConfirmOn, ReleaseOn: r.ReleaseOn, Key: []byte(r.Secret)}
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

var formats = map[string]proxy.Format{"auto": proxy.Auto, "html": proxy.HTML, "problem": proxy.Problem, "envelope": proxy.Envelope}

func responses(r *config.Responses) proxy.Responses {
	class := func(c config.Class) proxy.Answer {
		return proxy.Answer{Status: c.Status, Code: c.Code, RetryAfter: c.RetryAfter, Redirect: c.Redirect}
	}
	return proxy.Responses{
		Format: formats[r.Format], Languages: r.Languages, Pages: proxy.PageFiles{Dir: r.PagesDir, Files: r.Pages},
		Answers: map[proxy.Class]proxy.Answer{
			proxy.Busy: class(r.Busy), proxy.SoldOutClass: class(r.SoldOut), proxy.NotStartedClass: class(r.NotStarted),
			proxy.EndedClass: class(r.Ended), proxy.PausedClass: class(r.Paused), proxy.ConfirmedClass: class(r.Confirmed), proxy.DuplicateClass: class(r.Duplicate),
			proxy.DeniedClass: class(r.Denied), proxy.UnidentifiedClass: class(r.Unidentified), proxy.UnknownSKUClass: class(r.UnknownSKU), proxy.BadRequestClass: class(r.BadRequest),
			proxy.Unavailable: class(r.Unavailable),
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
		ReadHeaderTimeout: s.ReadHeaderTimeout, ReadTimeout: s.ReadTimeout, WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout,
		MaxHeader:     int(s.MaxHeaderSize),
		Connections:   conns,
		TLS:           secure,
		ProxyProtocol: s.ProxyProtocol,
		Log:           log,
	}, nil
}
