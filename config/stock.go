package config

import (
	"slices"
	"strings"
	"time"
)

// Stock is where the gate learns what is left.
type Stock struct {
	Source       string        `toml:"source" words:"memory redis off"`
	OnError      string        `toml:"on_error" words:"reject allow"`
	UnknownSKU   string        `toml:"unknown_sku" words:"reject allow"`
	PollInterval time.Duration `toml:"poll_interval" range:"1ms to 1s"`
	// orders at the upstream for each unit left; 0 = no cap
	MaxInFlightPerUnit int           `toml:"max_in_flight_per_unit" unit:"requests" range:"0 to most"`
	SoldOutTTL         time.Duration `toml:"sold_out_ttl" range:"above 0s"`
	// nil = the shop's answers teach nothing
	SoldOutOn *Answer `toml:"sold_out_on"`
	Detail    string  `toml:"detail" words:"level exact none"`
	LowStock  int     `toml:"low_stock" unit:"units" range:"0 to most"` // so many units or less
	Redis     Redis   `toml:"redis"`
	Layout    Layout  `toml:"layout"`
	Reserve   Reserve `toml:"reserve"`
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
		Source:             "memory",
		OnError:            "reject",
		UnknownSKU:         "reject",
		PollInterval:       10 * time.Millisecond,
		MaxInFlightPerUnit: 2,
		SoldOutTTL:         time.Second,
		Detail:             "level",
		LowStock:           10,
		Redis:              defaultRedis(env),
		Layout:             defaultLayout(),
		Reserve:            defaultReserve(),
	}
}

func (s *Stock) check(r *report) {
	if s.SoldOutOn != nil {
		s.SoldOutOn.check(r, "stock.sold_out_on")
	}
	s.Redis.check(r)
	s.Layout.check(r)
	s.Reserve.check(r)
	s.checkMirror(r)
}

func (a *Answer) check(r *report, at string) {
	if len(a.Status) == 0 && a.JSON == "" && a.Header == "" {
		r.Fail(at, "names no answer; write status, header, or json and values")
	}
	if a.Header != "" {
		name, _, _ := strings.Cut(a.Header, ":")
		r.Token(at+".header", name)
	}
	for i, status := range a.Status {
		between(r, Element(at+".status", i), status, 100, 599)
	}
	if (a.JSON == "") != (len(a.Values) == 0) {
		r.Fail(at, "json and values belong together; write both or neither")
	}
}

// Reserve is how routes with gate = "reserve" hold, confirm and release.
type Reserve struct {
	MaxPerUser     int           `toml:"max_per_user" unit:"units" range:"0 to most"` // units a person; 0 = no limit
	ReservationTTL time.Duration `toml:"reservation_ttl" range:"1s to 720h"`
	ConfirmOn      []string      `toml:"confirm_on"` // "2xx" or "201"; empty = only the API confirms
	ReleaseOn      []string      `toml:"release_on"`
	ConfirmJSON    *JSONValue    `toml:"confirm_json"` // nil = the status alone decides
	SecretFile     string        `toml:"secret_file"`
	Secret         Secret        // what SecretFile holds, at least 16 bytes
	StatusURL      string        `toml:"status_url"` // with {serial}, perhaps {sku}; "" = the shop cannot be asked
	// "keep" "release_after_deadline" "cancel_then_release" "release_after_ttl"
	OnNotFound       string `toml:"on_not_found" words:"keep release_after_deadline cancel_then_release release_after_ttl"`
	WriteBack        bool   `toml:"write_back"`
	StreamKeepUnread bool   `toml:"stream_keep_unread"`
}

// JSONValue is a place in a JSON body and what may stand there.
type JSONValue struct {
	Path   string `toml:"path"`
	Values []any  `toml:"values"` // strings, ints or bools
}

func defaultReserve() Reserve {
	return Reserve{
		MaxPerUser:     1,
		ReservationTTL: 15 * time.Minute,
		ConfirmOn:      []string{"2xx"},
		ReleaseOn:      []string{"4xx"},
		OnNotFound:     "keep",
	}
}

func (v *Reserve) check(r *report) {
	statusClasses(r, "stock.reserve.confirm_on", v.ConfirmOn)
	statusClasses(r, "stock.reserve.release_on", v.ReleaseOn)
	for i, status := range v.ReleaseOn {
		if slices.Contains(v.ConfirmOn, status) {
			r.Fail(Element("stock.reserve.release_on", i),
				"%q is in confirm_on too: an answer is one or the other; drop it from one", status)
		}
	}
	if j := v.ConfirmJSON; j != nil && (j.Path == "" || len(j.Values) == 0) {
		r.Fail("stock.reserve.confirm_json", "path and values belong together; write both")
	}
	if _, ok := webURL(v.StatusURL); v.StatusURL != "" && (!ok || !strings.Contains(v.StatusURL, "{serial}")) {
		r.Fail("stock.reserve.status_url", "%q is not a URL with {serial}; write it like "+
			"\"http://127.0.0.1:9000/orders/by-serial/{serial}\"", v.StatusURL)
	}
}

// statusClasses wants statuses such as "2xx" or "201".
func statusClasses(r *report, key string, list []string) {
	r.Rule(key, "100 to 599, or 1xx to 5xx")
	for i, text := range list {
		digit, class := strings.CutSuffix(text, "xx")
		if class && len(digit) == 1 && strings.Contains("12345", digit) || statusCode(text) != 0 {
			continue
		}
		r.Fail(Element(key, i), "%q is not a status; write it like \"2xx\" or \"201\"", text)
	}
}
