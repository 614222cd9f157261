package config

import (
	"strings"
	"time"
)

// Stock is where the gate learns what is left.
type Stock struct {
	Source        string        `toml:"source"`          // "memory" "redis" "off"
	OnError       string        `toml:"on_error"`        // "refuse" or "allow"
	UnknownSKU    string        `toml:"unknown_sku"`     // "refuse" or "allow"
	Refresh       time.Duration `toml:"refresh"`         // 1 ms to 1 s
	PerUnit       int           `toml:"per_unit"`        // requests in flight for each unit left; 0 = no cap
	SoldOutMemory time.Duration `toml:"sold_out_memory"` // above 0
	SoldOutOn     *Answer       `toml:"sold_out_on"`     // nil = the shop's answers teach nothing
	Redis         Redis         `toml:"redis"`
	Layout        Layout        `toml:"layout"`
	Reserve       Reserve       `toml:"reserve"`
}

// Answer describes an answer of the shop. What is given must all be true of it.
type Answer struct {
	Status []int  `toml:"status"`
	JSON   string `toml:"json"`   // where in a JSON body, like "data.code"
	Values []any  `toml:"values"` // what may stand there: strings, ints or bools
}

func defaultStock() Stock {
	return Stock{
		Source:        "memory",
		OnError:       "refuse",
		UnknownSKU:    "refuse",
		Refresh:       10 * time.Millisecond,
		SoldOutMemory: time.Second,
		Redis:         defaultRedis(),
		Layout:        defaultLayout(),
		Reserve:       defaultReserve(),
	}
}

func (s *Stock) check(r *report) {
	r.oneOf("stock.source", s.Source, "memory", "redis", "off")
	r.oneOf("stock.on_error", s.OnError, "refuse", "allow")
	r.oneOf("stock.unknown_sku", s.UnknownSKU, "refuse", "allow")
	between(r, "stock.refresh", s.Refresh, time.Millisecond, time.Second)
	between(r, "stock.per_unit", s.PerUnit, 0, most)
	r.positive("stock.sold_out_memory", s.SoldOutMemory)
	if s.SoldOutOn != nil {
		s.SoldOutOn.check(r, "stock.sold_out_on")
	}
	s.Redis.check(r)
	s.Layout.check(r)
	s.Reserve.check(r)
}

func (a *Answer) check(r *report, at string) {
	if len(a.Status) == 0 && a.JSON == "" {
		r.fail(at, "names no answer; write status, or json and values")
	}
	for i, status := range a.Status {
		between(r, element(at+".status", i), status, 100, 599)
	}
	if (a.JSON == "") != (len(a.Values) == 0) {
		r.fail(at, "json and values belong together; write both or neither")
	}
}

// Redis is how the stock's Redis is reached.
type Redis struct {
	Addresses      []string      `toml:"addresses"` // at least one "host:port"
	Topology       string        `toml:"topology"`  // "auto" "single" "sentinel" "cluster"
	MasterName     string        `toml:"master_name"`
	Username       string        `toml:"username"`
	PasswordFile   string        `toml:"password_file"`
	Password       Secret        // what PasswordFile holds
	DB             int           `toml:"db"` // 0 or above; 0 in a cluster
	TLS            bool          `toml:"tls"`
	PoolSize       int           `toml:"pool_size"`       // 1 to 10000
	ConnectTimeout time.Duration `toml:"connect_timeout"` // above 0
	Timeout        time.Duration `toml:"timeout"`         // above 0; one command
	WaitReplicas   int           `toml:"wait_replicas"`   // 0 to 16
	BreakerErrors  int           `toml:"breaker_errors"`  // at least 1, within a second
	BreakerPause   time.Duration `toml:"breaker_pause"`   // above 0
}

func defaultRedis() Redis {
	return Redis{
		Addresses:      []string{"127.0.0.1:6379"},
		Topology:       "auto",
		PoolSize:       16,
		ConnectTimeout: 500 * time.Millisecond,
		Timeout:        100 * time.Millisecond,
		BreakerErrors:  20,
		BreakerPause:   time.Second,
	}
}

func (d *Redis) check(r *report) {
	if len(d.Addresses) == 0 {
		r.fail("stock.redis.addresses", "is empty; write where Redis is, like [\"127.0.0.1:6379\"]")
	}
	for i, address := range d.Addresses {
		r.hostPort(element("stock.redis.addresses", i), address)
	}
	r.unique(d.Addresses, func(i int) string { return element("stock.redis.addresses", i) })
	r.oneOf("stock.redis.topology", d.Topology, "auto", "single", "sentinel", "cluster")
	switch {
	case d.Topology == "sentinel" && d.MasterName == "":
		r.fail("stock.redis.master_name", "is missing: topology \"sentinel\" asks for a master by its name; write it")
	case d.MasterName != "" && (d.Topology == "single" || d.Topology == "cluster"):
		r.fail("stock.redis.master_name", "means a sentinel, but topology is %q; write topology = \"sentinel\", or drop it", d.Topology)
	case d.Topology == "cluster" && d.DB != 0:
		r.fail("stock.redis.db", "%d: a cluster has only db 0; write 0", d.DB)
	}
	between(r, "stock.redis.db", d.DB, 0, 1<<20)
	between(r, "stock.redis.pool_size", d.PoolSize, 1, 10000)
	r.positive("stock.redis.connect_timeout", d.ConnectTimeout)
	r.positive("stock.redis.timeout", d.Timeout)
	between(r, "stock.redis.wait_replicas", d.WaitReplicas, 0, 16)
	between(r, "stock.redis.breaker_errors", d.BreakerErrors, 1, most)
	r.positive("stock.redis.breaker_pause", d.BreakerPause)
}

// Layout is how the shop keeps its stock in Redis.
type Layout struct {
	Type        string   `toml:"type"`        // "counter" "hash_sold" "hash_left" "counter_users" "list" "script"
	Key         string   `toml:"key"`         // a template with $sku
	TotalField  string   `toml:"total_field"` // hash_sold
	SoldField   string   `toml:"sold_field"`  // hash_sold
	LeftField   string   `toml:"left_field"`  // hash_left
	StatusKey   string   `toml:"status_key"`
	StatusField string   `toml:"status_field"` // of the hash; not with StatusKey
	StatusOpen  []string `toml:"status_open"`
	UsersKey    string   `toml:"users_key"`     // a template with $sku
	SoldOutAt   int      `toml:"sold_out_at"`   // this or less is sold out
	SoldOutFlag string   `toml:"sold_out_flag"` // a template with $sku; "" = none
	Prefix      string   `toml:"prefix"`
	ScriptFile  string   `toml:"script_file"`
	Driver      string   `toml:"driver"`
}

func defaultLayout() Layout {
	return Layout{
		Type:       "counter",
		Key:        "seckill:stock:$sku",
		TotalField: "total",
		SoldField:  "ordered",
		LeftField:  "inStock",
		StatusOpen: []string{"1"},
	}
}

func (l *Layout) check(r *report) {
	r.oneOf("stock.layout.type", l.Type, "counter", "hash_sold", "hash_left", "counter_users", "list", "script")
	r.skuKey("stock.layout.key", l.Key)
	switch l.Type {
	case "hash_sold":
		r.filled("stock.layout.total_field", l.TotalField)
		r.filled("stock.layout.sold_field", l.SoldField)
	case "hash_left":
		r.filled("stock.layout.left_field", l.LeftField)
	case "counter_users":
		r.filled("stock.layout.users_key", l.UsersKey)
	case "script":
		r.filled("stock.layout.script_file", l.ScriptFile)
	}
	l.checkStatus(r)
	if l.UsersKey != "" {
		r.skuKey("stock.layout.users_key", l.UsersKey)
	}
	if l.SoldOutFlag != "" {
		r.skuKey("stock.layout.sold_out_flag", l.SoldOutFlag)
	}
}

func (l *Layout) checkStatus(r *report) {
	r.variables("stock.layout.status_key", l.StatusKey, "sku")
	if l.StatusKey != "" && l.StatusField != "" {
		r.fail("stock.layout.status_field", "and status_key both say where the status is; drop one")
	}
	if l.StatusField != "" && !strings.HasPrefix(l.Type, "hash_") {
		r.fail("stock.layout.status_field", "is a field of a hash, but type is %q; write status_key", l.Type)
	}
	if (l.StatusKey != "" || l.StatusField != "") && len(l.StatusOpen) == 0 {
		r.fail("stock.layout.status_open", "is empty: no SKU would ever be on sale; write the values that mean open")
	}
}

// skuKey wants a Redis key that differs from SKU to SKU.
func (r *report) skuKey(key, template string) {
	names := variablesOf(template)
	if len(names) == 0 {
		r.fail(key, "%q has no $sku: all SKUs would share it; write it like \"seckill:stock:$sku\"", template)
	}
	r.variables(key, template, "sku")
}
