package loadtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/stores"
	"sluice/internal/load"
	"sluice/room"
	"sluice/stockgate/layout"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// sandbox is where a load test takes place: a SKU, keys and a shop that no sale knows.
type sandbox struct {
	ID    string // that was not used before
	File  string // the configuration
	Route string // the one that is tested; "" = the first that sells
	Units int64
	SKU   string
	Until time.Time // it has ended by then
}

// name is that of the shop that the sandbox is, and of its waiting room.
func (s *sandbox) name() redisconn.Name { return redisconn.Name("loadtest-" + s.ID) }

// load reads the configuration and makes a sandbox of it. not is what of it is not tested.
func (s *sandbox) load(env func(string) (string, bool)) (c *config.Config, not []string, err error) {
	if c, err = config.Load(s.File, env, gateway.Validate); err != nil {
		return nil, nil, err
	}
	if c.Stock.Source == "redis" {
		if _, err := stores.ShopLayout(c); err != nil {
			return nil, nil, err
		}
	}
	for i := range c.Sales {
		sale, now := &c.Sales[i], time.Now()
		if c.Stock.Source != "redis" || !now.Before(sale.Ends) || s.Until.Before(sale.Starts) {
			continue
		}
		when := "is on"
		if wait := sale.Starts.Sub(now); wait > 0 {
			when = fmt.Sprintf("begins in %s, and a load test may take %s", wait.Round(time.Second),
				s.Until.Sub(now).Round(time.Second))
		}
		return nil, nil, c.Errorf(fmt.Sprintf("sale[%d]", i+1),
			"%q %s: a load test would slow its Redis; run it before or after the sale", sale.Name, when)
	}
	not, err = s.cast(c)
	return c, not, err
}

// sold finds the route that is tested.
func (s *sandbox) sold(c *config.Config) (int, error) {
	if s.Route != "" {
		i := slices.IndexFunc(c.Routes, func(r config.Route) bool { return r.Name == s.Route })
		switch {
		case i < 0:
			return 0, fmt.Errorf("--route: %s has no route %q", s.File, s.Route)
		case c.Routes[i].SKU == "" || c.Routes[i].Gate == "pass":
			return 0, fmt.Errorf("--route: %q sells nothing: it needs a sku, and gate \"limit\", \"check\" or \"reserve\"",
				s.Route)
		}
		return i, nil
	}
	for _, gate := range []string{"reserve", "check", "limit"} {
		for i, r := range c.Routes {
			if r.Gate == gate && r.SKU != "" {
				return i, nil
			}
		}
	}
	return 0, c.Errorf("route",
		"none names a SKU: there is nothing to test; write sku into one with gate \"check\" or \"reserve\"")
}

// cast makes c the configuration of the sandbox.
func (s *sandbox) cast(c *config.Config) (not []string, err error) {
	leave := func(is bool, text string) {
		if is {
			not = append(not, text)
		}
	}
	i, err := s.sold(c)
	if err != nil {
		return nil, err
	}
	r := &c.Routes[i]
	s.Route, s.SKU = r.Name, "loadtest-"+s.ID
	for n := layout.MostParts; n > 1; n-- {
		if strings.Contains(fmt.Sprint(c.Stock.Layout), fmt.Sprintf("$sku_%d", n)) {
			s.SKU += strings.Repeat(":1", n-1)
			break
		}
	}
	leave(!load.Fills(r.SKU, r.Match),
		fmt.Sprintf("how the SKU is put together (%s): the crowd names it by a query", r.SKU))
	leave(r.User != "" && !load.Fills(r.User, r.Match),
		fmt.Sprintf("how a user is known (%s): the crowd names itself by a cookie", r.User))
	leave(r.OrderToken, "order tokens")
	leave(c.Server.TLS != nil, "TLS")
	leave(len(c.Rooms) > 0 && r.Room == "", "waiting rooms: the route has none")
	leave(r.Delivery == "queue" && c.Queue.Pull > 0, "consumers that take orders: the gateway sends them")
	leave(len(c.Sales) > 0, "the hours of sales: it begins at once")
	leave(c.Stock.Layout.StatusKey+c.Stock.Layout.StatusField+c.Stock.Layout.SoldOutKey != "",
		"the shop's status and its flag of sold out")
	leave(c.Mode == "observe", "rejections: mode is \"observe\", which only counts them")
	leave(c.Limits.Window.Scope == "fleet" && c.Fleet.Instances == 0, "a fleet: this one instance has the whole budget")
	leave(c.AccessLog.Output != "off" || c.Traces.Endpoint != "", "logs and traces of requests")
	if !load.Fills(r.SKU, r.Match) {
		r.SKU = "$arg_loadtest_sku"
	}
	if r.User != "" && !load.Fills(r.User, r.Match) {
		r.User = "$cookie_loadtest_user"
	}
	if r.Quantity != "1" && !load.Fills(r.Quantity, r.Match) {
		r.Quantity = "1"
	}
	r.OrderToken = false
	leave(s.enroom(c, r), "the draw of the waiting room: all join after the start, and are called in their order")
	s.isolate(c)
	return not, s.apart(c)
}

// enroom leaves c the waiting room of r alone, by another name, before a sale that has begun. It reports that the room
// has a draw, which is not tested.
func (s *sandbox) enroom(c *config.Config, r *config.Route) (draws bool) {
	rooms := c.Rooms
	c.Rooms, c.Sales = nil, nil
	i := slices.IndexFunc(rooms, func(m config.Room) bool { return m.Name == r.Room })
	if i < 0 {
		return false
	}
	m := rooms[i]
	draws = m.Order == room.Draw
	m.Name, m.Order, m.Beacon, m.BeaconChain, m.Bypass = string(s.name()), room.FIFO, false, "", nil
	if r.Room = m.Name; m.Sale != "" {
		m.Sale = m.Name
		c.Sales = []config.Sale{{Name: m.Name, SKUs: []string{s.SKU}, Starts: time.Now().Add(-time.Minute),
			Ends: s.Until.Add(time.Hour), BeforeStart: "reject"}}
	}
	c.Rooms = []config.Room{m}
	return draws
}

// isolate takes c away from everything that is real.
func (s *sandbox) isolate(c *config.Config) {
	c.Server.Listen, c.Server.TLS, c.Server.ProxyProtocol = []string{"127.0.0.1:0"}, nil, false
	c.Server.TrustedProxies = append(slices.Clone(c.Server.TrustedProxies), "127.0.0.0/8")
	c.Server.ShutdownDelay, c.Server.ShutdownTimeout = 0, 2*time.Second
	s.sendTo(c, "127.0.0.1:1") // until the shop is open
	for i := range c.Routes {
		if c.Routes[i].Name != s.Route {
			c.Routes[i].Delivery, c.Routes[i].Room = "direct", ""
		}
	}
	c.Queue.Pull = 0
	alone := &c.Limits // what instances count together it has for itself
	if alone.Concurrency.Scope = "instance"; c.Fleet.Instances == 0 {
		alone.Window.Scope = "instance"
	}
	alone.Rates = slices.Clone(alone.Rates)
	for i := range alone.Rates {
		alone.Rates[i].Scope = "instance"
	}
	c.Name, c.Server.StateDir = string(s.name()), "" // what is sold there is not kept
	c.Admin.Listen, c.Ops.Listen = "", ""
	c.AccessLog.Output, c.AccessLog.BufferSize = "off", 0
	c.Traces.Endpoint = ""
	l := &c.Stock.Layout
	l.Prefix = s.name().Key("shop:" + l.Prefix)
	l.StatusKey, l.StatusField, l.SoldOutKey = "", "", ""
	c.Stock.Reserve.Secret = config.Secret(ledger.NewSecret())
}

// sendTo has the shop at an address get the orders, and the questions about them.
func (s *sandbox) sendTo(c *config.Config, shop string) {
	c.Upstream.Targets = []string{"http://" + shop}
	if v := &c.Stock.Reserve; v.StatusURL != "" {
		v.StatusURL = "http://" + shop + load.StatusPath + "{serial}"
	}
}

// apart makes sure of it: no key may be another's than the sandbox's.
func (s *sandbox) apart(c *config.Config) error {
	switch l := &c.Stock.Layout; {
	case c.Stock.Source == "redis" && !c.UsesLedger() && (l.Type == "script" || l.Type == "list"):
		return c.Errorf("stock.layout.type",
			"%q cannot be load-tested: only the shop knows how to write such a stock; use \"counter\" for the load test", l.Type)
	}
	for _, name := range s.keys(c) {
		if !strings.HasPrefix(name, s.name().Key("")) {
			return fmt.Errorf("%s: the load test would touch %q, which is not its own", s.File, name)
		}
	}
	return nil
}

// keys are all that the load test may leave in Redis, but for what ends by itself.
func (s *sandbox) keys(c *config.Config) (all []string) {
	all = ledger.KeysOf(s.name(), s.SKU)
	if len(c.Rooms) > 0 {
		all = append(all, room.RedisKeys(s.name(), string(s.name()))...)
	}
	l := &c.Stock.Layout
	for _, text := range []string{l.Key, l.UsersKey} {
		t, err := layout.CompileKey("key", l.Prefix, text)
		if err == nil && len(t) > 0 {
			name := t.Of(s.SKU, layout.MostParts)
			beside := layout.Beside(s.name(), name)
			all = append(all, name, beside, beside+":"+s.SKU)
		}
	}
	return all
}

// order says how the crowd asks.
func (s *sandbox) order(c *config.Config) load.Order {
	r := s.route(c)
	o := load.Order{Match: r.Match, ID: s.SKU, SKU: r.SKU, User: r.User, Quantity: r.Quantity,
		Address: c.Server.ClientIPHeader}
	for _, rate := range c.Limits.Rates {
		if len(rate.Routes) == 0 || slices.Contains(rate.Routes, r.Name) {
			o.Keys = append(o.Keys, rate.Key)
		}
	}
	return o
}

func (s *sandbox) route(c *config.Config) *config.Route {
	return &c.Routes[slices.IndexFunc(c.Routes, func(r config.Route) bool { return r.Name == s.Route })]
}

// shop says how the stand-in answers, so that the gate understands it.
func (s *sandbox) shop(c *config.Config) load.ShopOptions {
	v := &c.Stock.Reserve
	o := load.ShopOptions{Units: s.Units, Status: 200, Body: `{"code":0}`, Teaches: c.Stock.SoldOutOn != nil,
		Again: s.route(c).Delivery == "queue" && v.OnNotFound != "cancel_then_release"}
	if o.Reserved = s.route(c).Gate == "reserve"; !o.Reserved {
		return o
	}
	if o.Confirms = len(v.ConfirmOn) == 0; !o.Confirms {
		_, _ = fmt.Sscanf(v.ConfirmOn[0], "%d", &o.Status) // "2xx" gives 2
		o.Status *= map[bool]int{true: 100, false: 1}[o.Status < 10]
	}
	if j := v.ConfirmJSON; j != nil {
		var tree any = j.Values[0]
		for _, name := range slices.Backward(strings.Split(j.Path, ".")) {
			tree = map[string]any{name: tree}
		}
		text, _ := json.Marshal(tree) // of what TOML had
		o.Body = string(text)
	}
	return o
}

// limits are those that advice may be about.
func (s *sandbox) limits(c *config.Config) Limits {
	r, w, in := s.route(c), &c.Limits.Window, &c.Limits.Concurrency
	l := Limits{
		Window: w.Size, QueueTimeout: in.QueueTimeout, Queue: in.MaxQueue, PerUnit: c.Stock.MaxInFlightPerUnit,
		MaxOpen: c.Limits.Connection.MaxConnections, Trusts: len(c.Server.TrustedProxies) > 1,
		ResponseTimeout: c.Upstream.ResponseHeaderTimeout,
		StatusURL:       c.Stock.Reserve.StatusURL, Reserves: r.Gate == "reserve", Checks: r.Gate == "check",
	}
	if c.Limits.Enforced("window") && c.Mode != "observe" {
		of := 1
		if w.Scope == "fleet" {
			of = max(1, c.Fleet.Instances)
		}
		l.Max, l.MaxPerSKU = (w.Max+of-1)/of, (w.MaxPerSKU+of-1)/of
	}
	if c.Limits.Enforced("concurrency") && c.Mode != "observe" {
		l.InFlight, l.InFlightKey = in.MaxInFlight, "limits.concurrency.max_in_flight"
		if r.MaxInFlight > 0 && r.MaxInFlight < l.InFlight {
			l.InFlight, l.InFlightKey = r.MaxInFlight, fmt.Sprintf("max_in_flight of route %q", r.Name)
		}
	}
	if r.Delivery == "queue" {
		l.InFlight, l.InFlightKey, l.Queue = c.Queue.MaxInFlight, "queue.max_in_flight", 0
	}
	return l
}

// connections are as many as the gate can keep waiting, and some more.
func (s *sandbox) connections(c *config.Config, asked int) int {
	waits := c.Limits.Concurrency.MaxInFlight + c.Limits.Concurrency.MaxQueue
	return cmp.Or(asked, min(max(waits+512, 1024), 4096))
}
