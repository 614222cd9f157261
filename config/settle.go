package config

import (
	"net/url"
	"path/filepath"
	"regexp"
	"sluice/config/report"
	"sluice/config/source"
	"strings"
	"time"
)

// Settle is how sluice settle brings orders into a database. The gate does not read it.
type Settle struct {
	Database     string      `toml:"database"` // postgres:// mysql:// sqlite: without a password; "" = no settlement
	PasswordFile string      `toml:"password_file"`
	Password     Secret      // what PasswordFile holds
	URL          string      // Database; the path of SQLite is absolute, or as seen from where sluice was started
	Listen       string      `toml:"listen"`               // host:port of health and metrics; "" = none
	Batch        int         `toml:"batch" unit:"entries"` // entries a transaction, 1 to 10000
	Workers      int         `toml:"workers" unit:"SKUs"`  // 1 to 64
	Stock        SettleStock `toml:"stock"`
	OrdersQuery  string      `toml:"orders_query"` // returns serial and quantity of the orders of :sku; "" = they are not compared
	Paid         SettlePaid  `toml:"paid"`

	Webhook SettleWebhook `toml:"webhook"`
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
	Query string        `toml:"query"` // returns the paid units of :sku; "" = nothing ends by it
	Every time.Duration `toml:"every"` // 1s to 1h
}

// SettleWebhook is an HTTP server that gets every change of a ledger.
type SettleWebhook struct {
	URL     string        `toml:"url"` // "" = none
	KeyFile string        `toml:"key_file"`
	Key     Secret        // what KeyFile holds
	Batch   int           `toml:"batch" unit:"changes"` // of a request, 1 to 1000
	Timeout time.Duration `toml:"timeout"`              // 100ms to 1m
}

func defaultSettle() Settle {
	return Settle{Listen: "127.0.0.1:8092", Batch: 500, Workers: 4, Stock: SettleStock{SKUColumn: "sku", LeftColumn: "num", Check: true},
		Paid: SettlePaid{Every: 5 * time.Second}, Webhook: SettleWebhook{Batch: 100, Timeout: 5 * time.Second}}
}

// identifiers are names of SQL that need no quoting, perhaps with a schema.
var identifiers = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

func (c *Config) checkSettle(r *report.Report) {
	s := &c.Settle
	report.Between(r, "settle.batch", s.Batch, 1, 10_000)
	report.Between(r, "settle.workers", s.Workers, 1, 64)
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
	report.Between(r, "settle.paid.every", s.Paid.Every, time.Second, time.Hour)
	if q := s.Paid.Query; q != "" && !strings.Contains(q, ":sku") {
		r.Fail("settle.paid.query", "lacks :sku; write it where the SKU stands, like WHERE sku = :sku")
	}
	s.checkWebhook(r)
	if s.Database == "" {
		return
	}
	s.checkDatabase(r)
	if c.Stock.Source != "redis" {
		r.Fail("settle.database", "needs the ledger's changes in Redis, but stock.source is %q; write source = \"redis\"", c.Stock.Source)
	}
	if !c.Stock.Reserve.StreamKeepUnread {
		r.Fail("settle.database", "needs every change until it is settled; write stream_keep_unread = true into [stock.reserve]")
	}
}

func (s *Settle) checkWebhook(r *report.Report) {
	const key = "settle.webhook.url"
	w := &s.Webhook
	report.Between(r, "settle.webhook.batch", w.Batch, 1, 1000)
	report.Between(r, "settle.webhook.timeout", w.Timeout, 100*time.Millisecond, time.Minute)
	if w.URL == "" {
		return
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "":
		r.Fail(key, "cannot be read; write it like \"https://shop.example/sluice\"")
	case u.User != nil:
		r.Fail(key, "holds a user, which the configuration would show; the receiver verifies the signature instead")
	case s.Database == "":
		r.Fail(key, "needs a database, which keeps how far it is; write settle.database")
	}
	if w.KeyFile == "" {
		r.Fail("settle.webhook.key_file", "is empty; write the file of the key that signs each request")
	}
}

func (s *Settle) checkDatabase(r *report.Report) {
	const key = "settle.database"
	scheme, rest, _ := strings.Cut(s.Database, ":")
	switch scheme {
	case "sqlite":
		if strings.TrimPrefix(rest, "//") == "" {
			r.Fail(key, "has no path; write \"sqlite:/var/lib/sluice/settle.db\"")
		}
	case "postgres", "postgresql", "mysql":
		u, err := url.Parse(s.Database)
		if err != nil || u.Host == "" || len(u.Path) < 2 {
			r.Fail(key, "cannot be read; write it like %q", scheme+"://user@host/name")
			return
		}
		if _, has := u.User.Password(); has {
			r.Fail(key, "holds a password, which the configuration would show; write it into the file that settle.password_file names")
		}
	default:
		r.Fail(key, "%q is not known; begin with \"postgres://\", \"mysql://\" or \"sqlite:\"", scheme+":")
	}
}

// read reads the password, and finds the file of SQLite from the configuration's folder.
func (s *Settle) read(r *report.Report, folder string) {
	s.Password = Secret(r.Secret("settle.password_file", folder, s.PasswordFile))
	s.Webhook.Key = Secret(r.LongSecret("settle.webhook.key_file", folder, s.Webhook.KeyFile))
	s.URL = s.Database
	if path, ok := strings.CutPrefix(s.Database, "sqlite:"); ok {
		s.URL = "sqlite:" + filepath.Clean(source.From(folder, strings.TrimPrefix(path, "//")))
	}
}
