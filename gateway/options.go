package gateway

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"sluice/cache"
	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/auth"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/tracing"
	"sluice/upstream"
)

// openUpstream makes the pool of c. adopt stands below what failpoints do to each new connection.
func openUpstream(c *config.Config, adopt func(net.Conn) net.Conn, log *slog.Logger) (*upstream.Pool, error) {
	o := upstreamOptions(c)
	o.Logger, o.Wrap = log, failUpstream(adopt)
	return upstream.New(o)
}

// upstreamOptions are those of c that a reload may change.
func upstreamOptions(c *config.Config) upstream.Options {
	u := &c.Upstream
	return upstream.Options{
		Targets: u.Targets, Policy: u.Policy, MaxConns: u.MaxConns,
		MaxPending: maxPending, QueueTimeout: u.QueueTimeout,
		ConnectTimeout: u.ConnectTimeout(), ResponseTimeout: u.ResponseHeaderTimeout,
		Timeout: u.Timeout, IdleConnTimeout: u.IdleConnTimeout, Retry: "connect",
		Memory: int64(c.Server.ResponseMemory()), Health: upstream.Checks(u.Health.Path),
		TLS: upstream.TLS{CA: u.TLS.CA, ServerName: u.TLS.ServerName},
	}
}

const (
	maxPending   = 10_000           // requests that wait for a connection to the upstream: their number bounds memory
	writeTimeout = 30 * time.Second // of one write to a client that does not read
)

const (
	jwtLeeway     = 30 * time.Second // by how much the clock of a token's issuer may be wrong
	orderTokenTTL = time.Minute      // how long an order token is valid at least; at most twice as long
)

// gates by their name in the file. A route whose gate is not here was rejected by config.
var gates = map[string]route.Gate{
	"pass": route.Pass, "limit": route.Limit, "check": route.Check, "reserve": route.Reserve,
}

func routes(c *config.Config) (out []proxy.Route) {
	for _, r := range c.Routes {
		out = append(out, proxy.Route{Name: r.Name, Match: r.Match, Gate: gates[r.Gate], SKU: r.SKU, User: r.User,
			Quantity: r.Quantity, OneSource: r.Sources == "one", DigitsOnly: r.SKUForm == "digits", Require: r.Require,
			OrderToken: r.OrderToken, Room: r.Room, Cache: r.Cache, Timeout: r.Timeout, Queue: r.Delivery == "queue"})
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
		MaxWaiting:      int64(c.Queue.MaxOrder),
		BodyMemory:      int64(c.Server.BodyMemory),
		PassHost:        c.Upstream.PassHost,
		CacheWait:       c.Upstream.Timeout,
		SettleWithin:    c.Upstream.Timeout,
		Responses:       responses(&c.Responses),
		Auth:            proofs(&c.Auth),
		MaxRequests:     limit.MaxRequests,
		Bypass:          c.Limits.Bypassed,
		Deny:            c.Limits.Denied,
		ObserveOnly:     observeOnly(c),
		SoldOutOn:       soldOutOn(c.Stock.SoldOutOn),
		StockStatus:     stockStatus(&c.Stock),
		MaxQuantity:     int64(c.Stock.Reserve.MaxPerUser),
		SigningKey:      []byte(c.Stock.Reserve.Secret),
		Outcomes:        outcomeRules(&c.Stock.Reserve),
		Bounds:          limitBounds(c),
		Unit:            "stock.max_in_flight_per_unit: " + orOff(c.Stock.MaxInFlightPerUnit),
	}
}

// outcomeRules is how r reads the shop's answers to orders.
func outcomeRules(r *config.Reserve) proxy.OutcomeRules {
	rules := proxy.OutcomeRules{ConfirmOn: r.ConfirmOn, ReleaseOn: r.ReleaseOn}
	if j := r.ConfirmJSON; j != nil {
		rules.ConfirmJSON = inJSON(j.Path, j.Values)
	}
	return rules
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
	of := &r.Classes
	return reject.Options{
		Format: formats[r.Format], Languages: r.Languages, Pages: reject.PageFiles{Dir: r.PagesDir, Files: r.Pages},
		Answers: map[reject.Class]reject.Answer{
			reject.Busy: reject.Answer(of.Busy), reject.SoldOutClass: reject.Answer(of.SoldOut),
			reject.NotStartedClass: reject.Answer(of.NotStarted), reject.EndedClass: reject.Answer(of.Ended),
			reject.PausedClass: reject.Answer(of.Paused), reject.ConfirmedClass: reject.Answer(of.Confirmed),
			reject.DuplicateClass: reject.Answer(of.Duplicate), reject.DeniedClass: reject.Answer(of.Denied),
			reject.UnidentifiedClass: reject.Answer(of.Unidentified), reject.RoomClass: reject.Answer(of.Room),
			reject.UnknownSKUClass: reject.Answer(of.UnknownSKU), reject.BadRequestClass: reject.Answer(of.BadRequest),
			reject.Unavailable: reject.Answer(of.Unavailable),
		},
		EnvelopeStatus: r.Envelope.Status, EnvelopeBody: r.Envelope.Body,
		Jitter: r.RetryAfterJitter, Origins: r.CORSOrigins,
		RateFields: r.RatelimitHeaders,
	}
}

func serverOptions(c *config.Config, l *limiters, secure *tls.Config, log *slog.Logger) proxy.ServerOptions {
	s := &c.Server
	return proxy.ServerOptions{
		ReadHeaderTimeout: min(s.ReadTimeout/2, 5*time.Second), ReadTimeout: s.ReadTimeout, // the rest is for the body
		WriteTimeout: writeTimeout, IdleTimeout: s.IdleTimeout,
		MaxHeader:     int(s.MaxHeaderSize),
		LenientTarget: s.LenientTarget,
		Connections:   connections{l.conns}, MaxConns: l.files.clients(c),
		TLS:           secure,
		ProxyProtocol: s.ProxyProtocol,
		Log:           log,
	}
}

// Explain tells what a gateway of c would make of a request: raw as a client at peer sends it.
func Explain(c *config.Config, raw string, peer netip.Addr) (proxy.Explanation, error) {
	options := proxyOptions(c)
	asked := newLimiters(c, func() int64 { return 0 }, slog.New(slog.DiscardHandler))
	options.Limiters, _ = asked.Prepare(c)
	options.Rooms = explainedRooms(c)
	p, err := proxy.New(options)
	if err != nil {
		return proxy.Explanation{}, err
	}
	return p.Explain(raw, peer, int(c.Server.MaxHeaderSize), c.Server.LenientTarget), nil
}

// staleWhileRevalidate is how long a stale page is served while one request fetches it anew.
const staleWhileRevalidate = 10 * time.Second

func cacheOptions(c *config.Config) cache.Options {
	return cache.Options{
		Size: int64(c.Cache.Size), StaleIfError: c.Cache.StaleIfError,
		StaleWhileRevalidate: min(staleWhileRevalidate, c.Cache.StaleIfError),
	}
}

// openTraces begins to tell a collector of requests; nil when c names none.
func openTraces(c *config.Config, count *tracing.Counts, version string, log *slog.Logger) (*tracing.Tracer, error) {
	if c.Traces.Endpoint == "" {
		return nil, nil
	}
	t, err := tracing.New(tracing.Options{Endpoint: c.Traces.Endpoint, SampleRatio: c.Traces.SampleRatio,
		Service: cmp.Or(c.Name, "sluice"), Version: version, Counts: count, Log: log})
	if err != nil {
		return nil, c.Errorf("traces.endpoint", "%v", err)
	}
	return t, nil
}

func proofs(c *config.Auth) auth.VerifierOptions {
	return auth.VerifierOptions{
		JWT: auth.JWTOptions{
			Algorithm: c.JWTAlgorithm, Key: string(c.JWTKey), Issuer: c.JWTIssuer, Audience: c.JWTAudience,
			Leeway: jwtLeeway, Remember: config.JWTCacheSize,
		},
		From: c.JWTFrom, CookieKey: string(c.CookieKey), OrderTokenKey: string(c.OrderTokenKey), Slot: orderTokenTTL,
	}
}
