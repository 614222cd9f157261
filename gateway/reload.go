package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/tracing"
)

// restartKeys are the keys and tables that a running gateway cannot change, and why. A reload changes all others.
var restartKeys = []struct{ key, why string }{
	{"name", "what is kept in Redis is kept under it"},
	{"server.listen", "the listeners are opened at the start"},
	{"server.socket_group", "the listeners are opened at the start"},
	{"server.proxy_protocol", "the listeners are opened at the start"},
	{"server.tls", "the listeners are opened at the start; other certificates in the same files are read by themselves"},
	{"server.state_dir", "the ledger keeps there what it must know when it returns"},
	{"decide", "the listeners are opened at the start"},
	{"admin.listen", "the listeners are opened at the start"},
	{"ops.listen", "the listeners are opened at the start"},
	{"ops.metrics_max_skus", "a SKU that metrics have named stays named"},
	{"stock.source", "orders under way were taken from it"},
	{"stock.redis", "connections, ledgers and orders under way are there"},
	{"stock.reserve.secret_file", "orders under way were signed by it"},
	{"stock.reserve.stream_keep_unread", "the ledger is opened with it"},
	{"settle.database", "the ledger keeps unread orders from the start where there is one"},
}

// whyRestart is why key changes only with a restart; "" = a reload changes it.
func whyRestart(key string) string {
	for _, r := range restartKeys {
		if rest, ours := strings.CutPrefix(key, r.key); ours && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return r.why
		}
	}
	return ""
}

// ChangesOnReload reports whether a reload changes key, as "limits.rate[per_user].burst"; other keys need a restart.
func ChangesOnReload(key string) bool { return whyRestart(key) == "" }

// rejectRestarts rejects a file that changes keys which only a restart can change. It names all of them.
func rejectRestarts(now, next *config.Config) error {
	return next.ErrorsOf(slices.DeleteFunc(changedKeys(now, next), ChangesOnReload), func(key string) string {
		return fmt.Sprintf("changes only with a restart (%s): restart the gateway, or write the former value",
			whyRestart(key))
	})
}

// runtime is what one configuration comes to on what goes on: all that can fail has been made.
type runtime struct {
	config *config.Config
	proxy  *proxy.Proxy
	orders *orderLedger  // nil = no route has reserved
	parts  proxy.Options // of proxy; build fills them in
	tracer *tracing.Tracer
	use    []func() // puts it into force, in this order; none of it fails
	undo   []func() // where something cannot be made, in the reverse order
}

var errClosed = errors.New("the gateway is closed")

// swap puts c into force, all of it or nothing. Connections, counts, orders and requests in flight go on; so do windows
// whose size, max_delay and warm_up stay, and rates whose name, key and max_keys stay. The controller is locked for
// changes. What is built may wait for Redis; until all of it is there, nothing that is in force changes, and all can be
// asked how the gateway is.
func (g *Gateway) swap(c *config.Config) error {
	if g.controller.closed {
		return errClosed
	}
	if g.running.Load() != nil {
		if err := rejectRestarts(g.running.Load(), c); err != nil {
			return err
		}
	}
	next := &runtime{config: c, orders: g.Orders()}
	for _, build := range []func(*runtime) error{g.buildLedger, g.checkName, g.buildAccessLog, g.buildUpstream,
		g.buildQueue, g.buildStock, g.buildRooms, g.buildTraces, g.buildProxy, g.buildFleet} {
		if err := build(next); err != nil {
			for _, undo := range slices.Backward(next.undo) {
				undo()
			}
			return err
		}
	}
	g.controller.mu.Lock()
	defer g.controller.mu.Unlock()
	for _, use := range next.use {
		use()
	}
	g.running.Store(c)
	if g.control.now.Load() != nil {
		g.useControls()
	}
	return nil
}

// buildRooms makes the rooms that are new.
func (g *Gateway) buildRooms(r *runtime) error {
	pages, err := reject.NewRoomPages(responses(&r.config.Responses))
	if err != nil {
		return err
	}
	rooms, use, err := g.rooms.Prepare(r.config, stockStatus(&r.config.Stock).Few, pages)
	if err != nil {
		return err
	}
	r.parts.Rooms, r.use = rooms, append(r.use, use)
	return nil
}

// buildTraces begins to send to another collector. What is queued for the one before is sent in the background.
func (g *Gateway) buildTraces(r *runtime) (err error) {
	r.tracer = g.tracer
	if g.running.Load() == nil || g.running.Load().Traces != r.config.Traces {
		if r.tracer, err = openTraces(r.config, &g.traced, g.version, g.log); err != nil {
			return err
		}
		if t := r.tracer; t != nil {
			r.undo = append(r.undo, t.Close)
		}
	}
	if r.tracer != nil {
		r.parts.Tracer = r.tracer
	}
	r.use = append(r.use, func() {
		if g.tracer != nil && g.tracer != r.tracer {
			g.retiring.Go(g.tracer.Close)
		}
		g.tracer = r.tracer
	})
	return nil
}

// buildProxy compiles what decides about requests, and what its checks ask.
func (g *Gateway) buildProxy(r *runtime) (err error) {
	ask, use := g.limits.Prepare(r.config)
	if r.proxy, err = proxy.New(g.proxyOptions(r, ask)); err != nil {
		return err
	}
	r.use = append(r.use, use, func() {
		options := serverOptions(r.config, g.limits, g.secure, g.log)
		if g.proxy = r.proxy; g.Server == nil {
			g.counters = r.proxy.Counters()
			g.Server = proxy.NewServer(r.proxy, options)
			g.adopter.Store(g.Server)
			g.openDeciders(options)
			g.openDemand()
		} else {
			g.Server.Replace(r.proxy, options)
		}
		g.demand.Use(stores.LabelledSKUs(r.config), g.looksAtShopStock(r.config))
		g.cache.Adjust(cacheOptions(r.config))
		if h, ours := g.log.Handler().(*logHandler); ours {
			h.use(r.config.Log)
		}
	})
	return nil
}

// buildAccessLog opens another output.
func (g *Gateway) buildAccessLog(r *runtime) error {
	if g.running.Load() == nil {
		return nil // it was opened with c
	}
	use, discard, err := g.access.Prepare(accessSettings(r.config))
	if err != nil {
		return r.config.Errorf("access_log.output", "%v", err)
	}
	r.use, r.undo = append(r.use, use), append(r.undo, discard)
	return nil
}

// buildUpstream makes other targets.
func (g *Gateway) buildUpstream(r *runtime) error {
	if g.running.Load() == nil {
		return nil // it was opened with c
	}
	use, err := g.shop.Prepare(upstreamOptions(r.config))
	if err != nil {
		return r.config.Errorf("upstream.targets", "%v", err)
	}
	r.use = append(r.use, use)
	return nil
}

// buildFleet joins the fleet where there is one from now on.
func (g *Gateway) buildFleet(r *runtime) error {
	join, err := g.fleet.prepare(r.config)
	r.use = append(r.use, join, g.fleet.countRates)
	return err
}

// otherStock warns of the routes whose gate changes to reserve, or from it to another: the shop's stock and the ledger
// are two stocks.
func otherStock(now, next *config.Config) (warnings []string) {
	for _, r := range next.Routes {
		before := slices.IndexFunc(now.Routes, func(b config.Route) bool { return b.Name == r.Name })
		if before < 0 {
			continue
		}
		switch reserved, reserves := now.Routes[before].Gate == "reserve", r.Gate == "reserve"; {
		case reserves && !reserved:
			warnings = append(warnings, "route "+r.Name+" sells from the ledger now: sluice stock set SKU UNITS")
		case reserved && !reserves:
			warnings = append(warnings, "route "+r.Name+" sells from the shop's stock now: set it to what is left")
		}
	}
	return warnings
}

// changedKeys are the keys whose values differ, with those of which only a file differs that they name.
func changedKeys(now, next *config.Config) []string {
	changed := config.Diff(now, next)
	for _, file := range []struct {
		key  string
		same bool
	}{
		{"limits.bypass", slices.Equal(now.Limits.Bypassed, next.Limits.Bypassed)},
		{"limits.deny", slices.Equal(now.Limits.Denied, next.Limits.Denied)},
		{"stock.reserve.secret_file", now.Stock.Reserve.Secret == next.Stock.Reserve.Secret},
		{"upstream.tls.ca_file", now.Upstream.TLS.CA == next.Upstream.TLS.CA},
		{"responses.template_dir", now.Responses.SamePages(&next.Responses)},
		{"auth.jwt_key_file", now.Auth.JWTKey == next.Auth.JWTKey},
		{"auth.cookie_key_file", now.Auth.CookieKey == next.Auth.CookieKey},
		{"auth.order_token_key_file", now.Auth.OrderTokenKey == next.Auth.OrderTokenKey},
		{"auth.room_key_file", now.Auth.RoomKeys == next.Auth.RoomKeys},
		{"admin.token_file", now.Admin.Token == next.Admin.Token},
		{"admin.viewer_token_file", now.Admin.ViewerToken == next.Admin.ViewerToken},
		{"admin.consumer_token_file", now.Admin.ConsumerToken == next.Admin.ConsumerToken},
	} {
		if !file.same && !slices.Contains(changed, file.key) {
			changed = append(changed, file.key)
		}
	}
	return changed
}
