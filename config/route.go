package config

import (
	"strings"
	"time"
)

// Route says which requests these are, which gate they pass, and where SKU, user and quantity are found.
type Route struct {
	Name     string `toml:"name"`                          // unique; a label in logs and metrics
	Match    string `toml:"match"`                         // METHOD [HOST]/PATH; its syntax is the proxy's
	Gate     string `toml:"gate"`                          // "pass" "limit" "check" "reserve"
	SKU      string `toml:"sku"`                           // a template; needed by check and reserve
	User     string `toml:"user"`                          // a template; "" = no user is identified
	Quantity string `toml:"quantity"`                      // a template or a number
	Delivery string `toml:"delivery" words:"direct queue"` // how orders of gate reserve reach the shop

	// whether another value of SKU, user or quantity in the query beside $form_x, or in a form beside $arg_x, matters
	Sources string `toml:"sources" words:"all one"`
	SKUForm string `toml:"sku_form" words:"text digits"` // how SKUs may be spelled

	Require []string `toml:"require"` // conditions like "$jwt_level>=2"; their syntax is the proxy's

	OrderToken bool `toml:"order_token"` // orders need the token that the gate tells from the start of the sale on

	Room string `toml:"room"` // name of a [[room]] whose pass orders need; "" = none

	// of this route, within limits.concurrency; 0 = no cap of its own
	MaxInFlight int `toml:"max_in_flight" unit:"requests" range:"0 to most"`

	// from the request to the header of the answer; 0 = upstream.response_header_timeout
	Timeout time.Duration `toml:"timeout" range:"0s or more"`

	// how long an answer to GET is given to others as well; 0 = not at all
	Cache time.Duration `toml:"cache" range:"0s or more"`
}

func (t *Route) preset() {
	*t = Route{Quantity: "1", Sources: "all", SKUForm: "text", Delivery: "direct", Require: []string{}}
}

// needsStock tells whether the route's gate asks for stock.
func (t *Route) needsStock() bool { return t.Gate == "check" || t.Gate == "reserve" }

// checkRoutes returns the names of the routes.
func (c *Config) checkRoutes(r *report) []string {
	if len(c.Routes) == 0 {
		r.Fail("", "no [[route]]: every request would be rejected; add one, like name = \"all\", match = \"/\", gate = "+
			"\"limit\"")
	}
	names := make([]string, len(c.Routes))
	for i := range c.Routes {
		names[i] = c.Routes[i].Name
		c.Routes[i].check(r, Element("route", i))
		c.checkGate(r, &c.Routes[i], Element("route", i))
		c.checkDelivery(r, &c.Routes[i], Element("route", i))
		c.checkOrderToken(r, &c.Routes[i], Element("route", i))
	}
	r.Unique(names, func(i int) string { return Element("route", i) + ".name" })
	return names
}

func (t *Route) check(r *report, at string) {
	r.Filled(at+".name", t.Name)
	for _, c := range t.Name {
		if c < ' ' || c == 0x7f {
			r.Fail(at+".name", "%q has control characters; write plain text", t.Name)
			break
		}
	}
	if t.Match == "" {
		r.Fail(at+".match", "is missing; write it like \"POST /order/{sku}\" or \"/\"")
	}
	if t.Gate == "" {
		r.Fail(at+".gate", "is missing; write %s", choices(gates))
	} else {
		r.OneOf(at+".gate", t.Gate, gates...)
	}
	if t.needsStock() && t.SKU == "" {
		r.Fail(at+".sku", "is missing: gate %q must know what is bought; write where it is found, like \"$path_sku\"", t.Gate)
	}
	r.Filled(at+".quantity", t.Quantity)
	if t.needsStock() && t.Cache > 0 {
		r.Fail(at+".cache", "an answer of gate %q is one person's; drop cache, or write gate = \"pass\" or \"limit\"", t.Gate)
	}
	if t.Gate == "pass" && t.MaxInFlight > 0 {
		r.Fail(at+".max_in_flight", "gate \"pass\" has no limits; write gate = \"limit\", or drop max_in_flight")
	}
	if t.Gate == "pass" && len(t.Require) > 0 {
		r.Fail(at+".require", "gate \"pass\" compares nothing; write gate = \"limit\", or drop require")
	}
}

var gates = []string{"pass", "limit", "check", "reserve"}

// checkGate finds what a gate and [stock] contradict each other in.
func (c *Config) checkGate(r *report, t *Route, at string) {
	if t.needsStock() && c.Stock.Source == "off" {
		r.Fail(at+".gate", "%q asks for stock, but stock.source is \"off\"; write gate = \"limit\", or another source",
			t.Gate)
	}
	if t.Gate == "check" && t.User == "" && c.Stock.Source == "redis" && c.Stock.Layout.UsersKey != "" {
		r.Fail(at+".user", "is missing: stock.layout.users_key knows who has bought; write where the user is found, like "+
			"\"$cookie_uid\"")
	}
	c.checkCart(r, t, at)
	if t.Gate != "reserve" {
		return
	}
	if c.Stock.OnError == "allow" {
		r.Fail(at+".gate", "\"reserve\" cannot be allowed without Redis, but stock.on_error is \"allow\"; write on_error = "+
			"\"reject\", or gate = \"check\"")
	}
	if c.Stock.UnknownSKU == "allow" {
		r.Fail(at+".gate", "\"reserve\" cannot take from a SKU that is not there, but stock.unknown_sku is \"allow\"; "+
			"write unknown_sku = \"reject\", or gate = \"check\"")
	}
}

// checkCart finds what orders over several SKUs cannot go together with.
func (c *Config) checkCart(r *report, t *Route, at string) {
	if !strings.Contains(t.SKU+t.Quantity, ".*") {
		return
	}
	const one = "; write the SKU of one array element, like \"$json_items.0.sku_id\", or "
	fail := func(wrong bool, why, way string) {
		if wrong {
			r.Fail(at+".sku", "%q takes orders over several SKUs: %s", t.SKU, why+one+way)
		}
	}
	fail(t.Gate != "reserve", "that is for gate \"reserve\" alone", "gate = \"reserve\"")
	fail(t.Delivery == "queue", "an order that waits is of one", "delivery = \"direct\"")
	fail(t.OrderToken, "an order token is for one", "drop order_token")
	fail(t.Room != "", "a pass of a waiting room is for one", "drop room")
	if u := c.Stock.Reserve.StatusURL; u != "" && !strings.Contains(u, "{sku}") {
		r.Fail(at+".sku", "%q takes orders over several SKUs, but stock.reserve.status_url does not say which one it asks "+
			"about: a client's key that names two carts could confirm units of an order that the shop does not have; write "+
			"{sku} into it, like \"http://shop/orders/{serial}?sku={sku}\"",
			t.SKU)
	}
}
