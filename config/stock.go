package config

import (
	"strings"
	"time"
)

// Stock is where the gate learns what is left.
type Stock struct {
	Source             string        `toml:"source"`                 // "memory" "redis" "off"
	OnError            string        `toml:"on_error"`               // "reject" or "allow"
	UnknownSKU         string        `toml:"unknown_sku"`            // "reject" or "allow"
	PollInterval       time.Duration `toml:"poll_interval"`          // 1 ms to 1 s
	MaxInFlightPerUnit int           `toml:"max_in_flight_per_unit"` // requests in flight for each unit left; 0 = no cap
	SoldOutTTL         time.Duration `toml:"sold_out_ttl"`           // above 0
	SoldOutOn          *Answer       `toml:"sold_out_on"`            // nil = the shop's answers teach nothing
	Detail             string        `toml:"detail"`                 // "level" "exact" "none"
	LowStock           int           `toml:"low_stock"`              // so many units or less; 0 or above
	MaxSkew            time.Duration `toml:"max_skew"`               // between this machine's clock and Redis'; 100 ms to 1 h
	Redis              Redis         `toml:"redis"`
	Layout             Layout        `toml:"layout"`
	Script             Script        `toml:"script"`
	Reserve            Reserve       `toml:"reserve"`
}

// Answer describes an answer of the shop. What is given must all be true of it.
type Answer struct {
	Status []int  `toml:"status"`
	Header string `toml:"header"` // a field's name, or "Name: value"
	JSON   string `toml:"json"`   // where in a JSON body, like "data.code"
	Values []any  `toml:"values"` // what may stand there: strings, ints or bools
}

func defaultStock(env func(string) (string, bool)) Stock {
	return Stock{
		Source:       "memory",
		OnError:      "reject",
		UnknownSKU:   "reject",
		PollInterval: 10 * time.Millisecond,
		SoldOutTTL:   time.Second,
		Detail:       "level",
		LowStock:     10,
		MaxSkew:      2 * time.Second,
		Redis:        defaultRedis(env),
		Layout:       defaultLayout(),
		Script:       Script{Keys: []string{}, Args: []string{}, Codes: map[string]string{}},
		Reserve:      defaultReserve(),
	}
}

func (s *Stock) check(r *report) {
	r.oneOf("stock.source", s.Source, "memory", "redis", "off")
	r.oneOf("stock.on_error", s.OnError, "reject", "allow")
	r.oneOf("stock.unknown_sku", s.UnknownSKU, "reject", "allow")
	between(r, "stock.poll_interval", s.PollInterval, time.Millisecond, time.Second)
	between(r, "stock.max_in_flight_per_unit", s.MaxInFlightPerUnit, 0, most)
	r.positive("stock.sold_out_ttl", s.SoldOutTTL)
	r.oneOf("stock.detail", s.Detail, "level", "exact", "none")
	between(r, "stock.low_stock", s.LowStock, 0, most)
	between(r, "stock.max_skew", s.MaxSkew, 100*time.Millisecond, time.Hour)
	if s.SoldOutOn != nil {
		s.SoldOutOn.check(r, "stock.sold_out_on")
	}
	s.Redis.check(r)
	s.Layout.check(r)
	s.Reserve.check(r)
	s.checkScript(r)
	s.checkMirror(r)
}

func (a *Answer) check(r *report, at string) {
	if len(a.Status) == 0 && a.JSON == "" && a.Header == "" {
		r.fail(at, "names no answer; write status, header, or json and values")
	}
	if a.Header != "" {
		name, _, _ := strings.Cut(a.Header, ":")
		r.token(at+".header", name)
	}
	for i, status := range a.Status {
		between(r, element(at+".status", i), status, 100, 599)
	}
	if (a.JSON == "") != (len(a.Values) == 0) {
		r.fail(at, "json and values belong together; write both or neither")
	}
}
