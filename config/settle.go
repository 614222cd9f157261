package config

import (
	"cmp"
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Settle is how sluice-settle brings orders into a database. The gate does not read it.
type Settle struct {
	Database     string `toml:"database"` // postgres:// mysql:// sqlite: without a password; "" = no settlement
	PasswordFile string `toml:"password_file"`
	Password     Secret // what PasswordFile holds
	URL          string // Database; the path of SQLite is absolute, or as seen from where sluice was started
	// host:port of health and metrics; "" = none
	Listen string        `toml:"listen"`
	Verify time.Duration `toml:"verify" range:"0s to 24h"` // 0 = never; else 1s or more
	Stock  SettleStock   `toml:"stock"`
	// returns serial and quantity of the orders of :sku; "" = they are not compared
	OrdersQuery string     `toml:"orders_query"`
	Paid        SettlePaid `toml:"paid"`

	Webhook SettleWebhook `toml:"webhook"`
	Jobs    SettleJobs    `toml:"jobs"`

	RerouteAfter time.Duration `toml:"reroute_after" range:"0s to 24h"` // 0 = SKUs wait for their database
	RerouteTo    string        `toml:"reroute_to"`                      // a home

	Homes []SettleHome `toml:"home"`
}

// SettleStock is the shop's own stock table.
type SettleStock struct {
	Table      string `toml:"table"` // "" = sluice_stock
	SKUColumn  string `toml:"sku_column"`
	LeftColumn string `toml:"left_column"`
	Check      bool   `toml:"check"`
}

// SettlePaid ends a SKU when all its units are paid.
type SettlePaid struct {
	Query string `toml:"query"` // returns the paid units of :sku; "" = nothing ends by it
}

// SettleWebhook is an HTTP server that gets every change of a ledger.
type SettleWebhook struct {
	URL     string `toml:"url"` // "" = none
	KeyFile string `toml:"key_file"`
	Key     Secret // what KeyFile holds
}

func defaultSettle() Settle {
	return Settle{Listen: "127.0.0.1:8092", Verify: time.Minute,
		Stock: SettleStock{SKUColumn: "sku", LeftColumn: "num", Check: true},
		Jobs:  SettleJobs{Kinds: []string{}, Listen: "127.0.0.1:8093"}}
}

// KeepsUnread reports whether Redis keeps each change of a ledger until it is acknowledged: as configured, and always
// where orders are settled.
func (c *Config) KeepsUnread() bool {
	return c.Stock.Reserve.StreamKeepUnread || c.Settle.Database != ""
}

// identifiers are names of SQL that need no quoting, perhaps with a schema.
var identifiers = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

func (c *Config) checkSettle(r *report) {
	s := &c.Settle
	if s.Listen != "" {
		r.Listen("settle.listen", s.Listen)
	}
	if s.Stock.Table != "" {
		for key, name := range map[string]string{
			"table": s.Stock.Table, "sku_column": s.Stock.SKUColumn, "left_column": s.Stock.LeftColumn,
		} {
			if !identifiers.MatchString(name) || key != "table" && strings.Contains(name, ".") {
				r.Fail("settle.stock."+key, "%q is not a name of SQL; write letters, digits and _", name)
			}
		}
	}
	if q := s.OrdersQuery; q != "" && !strings.Contains(q, ":sku") {
		r.Fail("settle.orders_query", "lacks :sku; write it where the SKU stands, like WHERE sku = :sku")
	}
	if s.Verify > 0 && s.Verify < time.Second {
		r.Fail("settle.verify", "%v is too short; write \"1s\" or more, or \"0s\" for never", s.Verify)
	}
	if q := s.Paid.Query; q != "" && !strings.Contains(q, ":sku") {
		r.Fail("settle.paid.query", "lacks :sku; write it where the SKU stands, like WHERE sku = :sku")
	}
	s.checkWebhook(r)
	s.checkJobs(r)
	s.checkHomes(r)
	if s.Database == "" {
		return
	}
	checkDatabase(r, "settle.database", s.Database)
	if c.Stock.Source != "redis" {
		r.Fail("settle.database", "needs the ledger's changes in Redis, but stock.source is %q; write source = \"redis\"",
			c.Stock.Source)
	}
}

func (s *Settle) checkWebhook(r *report) {
	w := &s.Webhook
	if w.URL == "" {
		return
	}
	s.checkReceiver(r, "settle.webhook.", w.URL, w.KeyFile)
}

// checkReceiver checks the URL and the key of what gets signed requests.
func (s *Settle) checkReceiver(r *report, of, text, keyFile string) {
	u, err := url.Parse(text)
	switch key := of + "url"; {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "":
		r.Fail(key, "cannot be read; write it like \"https://shop.example/sluice\"")
	case u.User != nil:
		r.Fail(key, "holds a user, which the configuration would show; the receiver verifies the signature instead")
	case s.Database == "":
		r.Fail(key, "needs a database, which keeps how far it is; write settle.database")
	}
	if keyFile == "" {
		r.Fail(of+"key_file", "is empty; write the file of the key that signs each request")
	}
}

func checkDatabase(r *report, key, database string) {
	scheme, rest, _ := strings.Cut(database, ":")
	switch scheme {
	case "sqlite":
		if strings.TrimPrefix(rest, "//") == "" {
			r.Fail(key, "has no path; write \"sqlite:/var/lib/sluice/settle.db\"")
		}
	case "postgres", "postgresql", "mysql":
		u, err := url.Parse(database)
		var broken *url.Error
		switch {
		case errors.As(err, &broken):
			r.Fail(key, "cannot be read: %v; write it like %q, with the user and @ before the host", broken.Err,
				scheme+"://host:port/name")
			return
		case u.Host == "" || len(u.Path) < 2:
			r.Fail(key, "lacks its host or the name of the database; write it like %q, with the user and @ before the host",
				scheme+"://host:port/name")
			return
		}
		if _, has := u.User.Password(); has {
			r.Fail(key, "holds a password, which the configuration would show; write it into the file that "+
				strings.TrimSuffix(key, "database")+"password_file names")
		}
	default:
		r.Fail(key, "%q is not known; begin with \"postgres://\", \"mysql://\" or \"sqlite:\"", scheme+":")
	}
}

// read reads the password, and finds the file of SQLite from the configuration's folder.
func (s *Settle) read(r *report, folder string) {
	s.Password = Secret(r.Secret("settle.password_file", folder, s.PasswordFile))
	s.Webhook.Key = Secret(r.LongSecret("settle.webhook.key_file", folder, s.Webhook.KeyFile))
	s.Jobs.Key = Secret(r.LongSecret("settle.jobs.key_file", folder, s.Jobs.KeyFile))
	s.URL = databaseFrom(folder, s.Database)
	for i := range s.Homes {
		h := &s.Homes[i]
		h.Password = Secret(r.Secret(Element("settle.home", i)+".password_file", folder, h.PasswordFile))
		h.URL = databaseFrom(folder, h.Database)
	}
}

// databaseFrom is a database as seen from where sluice was started.
func databaseFrom(folder, database string) string {
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		return "sqlite:" + filepath.Clean(resolvePath(folder, strings.TrimPrefix(path, "//")))
	}
	return database
}

// MainHome is the name of the home that [settle] itself describes.
const MainHome = "main"

// SettleHome is another database, in which some SKUs are settled.
type SettleHome struct {
	Name         string   `toml:"name"` // unique, not MainHome
	Database     string   `toml:"database"`
	PasswordFile string   `toml:"password_file"`
	Password     Secret   // what PasswordFile holds
	URL          string   // as that of Settle
	SKUs         []string `toml:"skus"` // names, or their beginnings and *; may be empty: SKUs are moved there
}

func (h *SettleHome) preset() { *h = SettleHome{SKUs: []string{}} }

func isHomeName(name string) bool { return homeNames.MatchString(name) && len(name) <= 32 }

// homeNames have to fit into a label, a flag and a mark in Redis.
var homeNames = regexp.MustCompile(`^[a-z0-9]+([_-]?[a-z0-9]+)*$`)

func (s *Settle) checkHomes(r *report) {
	names := []string{MainHome}
	for i := range s.Homes {
		h, at := &s.Homes[i], Element("settle.home", i)
		names = append(names, h.Name)
		if !isHomeName(h.Name) {
			r.Fail(at+".name", "%q is not a name of a home; write a-z, 0-9, _ and -, at most 32", h.Name)
		}
		if r.Filled(at+".database", h.Database) {
			checkDatabase(r, at+".database", h.Database)
		}
		if len(s.Jobs.Kinds) > 0 && !strings.HasPrefix(h.Database, "postgres") {
			r.Fail(at+".database", "is %q, and settle.jobs.kinds needs PostgreSQL in every home", h.Database)
		}
		for _, sku := range h.SKUs {
			if strings.Contains(strings.TrimSuffix(sku, "*"), "*") || sku == "" {
				r.Fail(at+".skus", "%q is not a SKU or its beginning; write * at the end alone, like \"2*\"", sku)
			}
		}
	}
	r.Unique(names, func(i int) string { return Element("settle.home", max(i-1, 0)) + ".name" })
	if s.RerouteAfter > 0 && (len(s.Homes) == 0 || !slices.Contains(names, s.RerouteTo)) {
		r.Fail("settle.reroute_to", "%q is not another home; write one of %s", s.RerouteTo, strings.Join(names, ", "))
	}
}

// HomeNames are the names of all homes; MainHome comes first.
func (s *Settle) HomeNames() []string {
	names := []string{MainHome}
	for _, h := range s.Homes {
		names = append(names, h.Name)
	}
	return names
}

// HomeOf is the name of the home in which a SKU is settled that was not moved: the first one whose skus have it.
func (s *Settle) HomeOf(sku string) string {
	for _, h := range s.Homes {
		for _, pattern := range h.SKUs {
			if beginning, ok := strings.CutSuffix(pattern, "*"); sku == pattern || ok && strings.HasPrefix(sku, beginning) {
				return h.Name
			}
		}
	}
	return MainHome
}

// AtHome is c with the database of a home as that of [settle]; nil = there is no such home.
func (c *Config) AtHome(name string) *Config {
	if name == MainHome {
		return c
	}
	for _, h := range c.Settle.Homes {
		if h.Name == name {
			there := *c
			s := &there.Settle
			s.Database, s.PasswordFile, s.Password, s.URL = h.Database, h.PasswordFile, h.Password, h.URL
			return &there
		}
	}
	return nil
}

// SettleJobs are jobs of River, which PostgreSQL keeps.
type SettleJobs struct {
	Kinds   []string `toml:"kinds"` // of jobKinds; empty = no jobs
	URL     string   `toml:"url"`   // of sluice-settle work; "" = the shop's own workers work the jobs
	KeyFile string   `toml:"key_file"`
	Key     Secret   // what KeyFile holds
	// host:port of health and metrics of sluice-settle work; "" = none
	Listen string `toml:"listen"`
}

// jobKinds are the changes of an order that a job can follow.
var jobKinds = []string{"order.held", "order.sold", "order.released", "order.refunded"}

func (s *Settle) checkJobs(r *report) {
	j := &s.Jobs
	if j.Listen != "" {
		r.Listen("settle.jobs.listen", j.Listen)
	}
	for _, kind := range j.Kinds {
		if !slices.Contains(jobKinds, kind) {
			now := map[string]string{"order.reserved": `is now "order.held"`, "order.confirmed": `is now "order.sold"`}
			r.Fail("settle.jobs.kinds", "%q %s; write some of %s", kind, cmp.Or(now[kind], "is not known"),
				strings.Join(jobKinds, ", "))
		}
	}
	if len(j.Kinds) > 0 && !strings.HasPrefix(s.Database, "postgres") {
		r.Fail("settle.jobs.kinds", "needs PostgreSQL, which keeps the jobs, but settle.database is %q; with another "+
			"database "+
			"use [settle.webhook]", s.Database)
	}
	if j.URL != "" {
		s.checkReceiver(r, "settle.jobs.", j.URL, j.KeyFile)
	}
}
