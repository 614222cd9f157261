package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sluice/config"
	"sluice/proxy/route"
)

// checkCached warns of pages that look like a person's.
func (o *Report) checkCached(c *config.Config) {
	for i, r := range c.Routes {
		if r.Cache > 0 && r.User != "" {
			o.Warn("cache", "%s: the route knows its user, but its answers are given to all; make sure that the shop says "+
				"private or Vary: Cookie", c.At(fmt.Sprintf("route[%d].cache", i+1)))
		}
	}
}

// listTimeouts says which routes wait longer for the shop, or less long, than the others.
func (o *Report) listTimeouts(c *config.Config) {
	for i, r := range c.Routes {
		if r.Timeout > 0 {
			o.Info("timeout", "%s: the shop has %s to answer on route %q, and %s elsewhere",
				c.At(fmt.Sprintf("route[%d].timeout", i+1)), r.Timeout, r.Name, c.Upstream.ResponseHeaderTimeout)
		}
	}
}

// checkRest warns where requests of no route are likely: the shop's pages.
func (o *Report) checkRest(c *config.Config) {
	for i := range c.Routes {
		p, err := route.ParsePattern(c.Routes[i].Match)
		if err != nil || p.Methods() == nil && (p.Path() == "/" || strings.HasPrefix(p.Path(), "/{")) {
			return
		}
	}
	o.Warn("routes", "no [[route]] matches all other requests: they are answered with 404 no_route; for the shop's pages "+
		"add one with match = \"/\" and gate = \"pass\"")
}

// checkConditions warns of conditions that a client can meet by writing what it likes.
func (o *Report) checkConditions(c *config.Config) {
	for i, r := range c.Routes {
		for j, condition := range r.Require {
			if name := config.ForgeableVariable(condition); name != "" {
				o.Warn("conditions", "%s: a client can write $%s as it likes; compare what the shop has signed: $jwt_x or "+
					"$signed_x (docs/security.md)", c.At(fmt.Sprintf("route[%d].require[%d]", i+1, j+1)), name)
			}
		}
	}
}

// checkSpelling advises on SKUs that may have more spellings than one, where the shop says what is sold out.
func (o *Report) checkSpelling(c *config.Config) {
	for i, r := range c.Routes {
		learns := c.Stock.SoldOutOn != nil && (r.Gate == "limit" || r.Gate == "check")
		if learns && r.SKUForm == "text" && strings.Contains(r.SKU, "$") {
			o.Info("sold out", "%s: stock.sold_out_on closes one spelling of a SKU; if SKUs are numbers, a shop may take 07, "+
				"+7 and 7.0 for 7: write sku_form = \"digits\" for this route", c.At(fmt.Sprintf("route[%d].sku", i+1)))
		}
	}
}

// dotted is a name that ends at a dot, with what follows it.
var dotted = regexp.MustCompile(`\$(arg|cookie|http|form|jwt|signed)_([A-Za-z0-9_-]+)(\.[A-Za-z0-9_-][A-Za-z0-9._-]*)`)

// checkNames warns of names that end at a dot: mostly the dot belongs to them, and no request would have the name.
func (o *Report) checkNames(c *config.Config) {
	warn := func(key, text string) {
		if m := dotted.FindStringSubmatch(text); m != nil {
			o.Warn("names", "%s: the name in %q ends at the dot; write %s, or %s where the rest is text", c.At(key), m[0],
				"$"+m[1]+"('"+m[2]+m[3]+"')", "$("+m[1]+"_"+m[2]+")"+m[3])
		}
	}
	for i, r := range c.Routes {
		at := config.Element("route", i)
		warn(at+".sku", r.SKU)
		warn(at+".user", r.User)
		warn(at+".quantity", r.Quantity)
		for j, condition := range r.Require {
			warn(config.Element(at+".require", j), condition)
		}
	}
	for i, l := range c.Limits.Rates {
		warn(config.Element("limits.rate", i)+".key", l.Key)
	}
	for i, l := range c.Limits.InFlight {
		warn(config.Element("limits.in_flight", i)+".key", l.Key)
	}
}

// checkRooms says how rooms call people, and warns of those in which a client can invent users: each has a place.
func (o *Report) checkRooms(c *config.Config) {
	for i := range c.Rooms {
		m := &c.Rooms[i]
		if m.Sale == "" {
			o.Info("room", "%-18s %s, always on; claim within %s, at most %d people a second", m.Name, m.Order, m.ClaimWithin,
				m.PerSecond)
			continue
		}
		o.Info("room", "%-18s %s, opens %s before sale %s; claim within %s, overshoot %v", m.Name, m.Order, m.Opens, m.Sale,
			m.ClaimWithin, m.Overshoot)
	}
	for i, r := range c.Routes {
		if name := config.ForgeableVariable(r.User); r.Room != "" && name != "" {
			o.Warn("rooms", "%s: a client can write $%s as it likes, and so have many places in room %q; name users by what "+
				"the shop has signed: $jwt_x or $signed_x (docs/waiting-room.md)", c.At(fmt.Sprintf("route[%d].user", i+1)),
				name, r.Room)
		}
		if r.Room != "" && strings.Contains(r.User, "$jwt_") && c.Auth.JWTFrom == "$http_authorization" {
			o.Info("room", "%s: a browser that follows a link sends no Authorization, so the page of room %q asks it to "+
				"sign in; for pages let auth.jwt_from name a cookie", c.At(fmt.Sprintf("route[%d].user", i+1)), r.Room)
		}
	}
}

// checkAccessLog says what of requests is written down.
func (o *Report) checkAccessLog(c *config.Config) {
	a := &c.AccessLog
	if a.Output == "off" {
		o.Info("log", "of requests: none; the last %s of lines are remembered for sluice why", a.BufferSize)
		return
	}
	if err := writable(a.Output); err != nil {
		o.Warn("log", "access_log.output: %v; create its folder, or let the user that runs sluice write there", err)
	}
	o.Info("log", "of requests, to %s: all that are forwarded; of each reason to reject the first %d in a second, "+
		"then 1 in 1000; the last %s remembered for sluice why", a.Output, a.RejectedPerSecond, a.BufferSize)
}

// writable reports why the file of an output, or the folder in which it would be made, cannot be written.
func writable(output string) error {
	path, isFile := strings.CutPrefix(output, "file:")
	if !isFile {
		return nil
	}
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
		return f.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".sluice-check-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// listSales says when what is sold.
func (o *Report) listSales(c *config.Config) {
	for i := range c.Sales {
		s := &c.Sales[i]
		early := map[string]string{"reject": "early requests are rejected",
			"pass": "early requests go on to the shop"}[s.BeforeStart]
		if s.MaxPerUser > 0 {
			early += fmt.Sprintf("; a user has at most %d units of all SKUs together", s.MaxPerUser)
		}
		o.Info("sale", "%-18s SKUs: %d, %s to %s (%s); %s", s.Name, len(s.SKUs), s.Starts.Format(time.RFC3339),
			s.Ends.Format(time.RFC3339), s.Ends.Sub(s.Starts), early)
		if time.Now().After(s.Ends) {
			o.Warn("sale", "%s ended at %s: its orders are rejected as ended", s.Name, s.Ends.Format(time.RFC3339))
		}
	}
	if len(c.Sales) > 0 && c.Stock.Source != "redis" {
		o.Warn("sale", "sales are kept by this machine's own clock, and a pause is known to one instance alone: "+
			"stock.source is %q", c.Stock.Source)
	}
}
