package config

import (
	"slices"
	"strings"
	"time"
)

// Reserve is how routes with gate = "reserve" hold, confirm and release.
type Reserve struct {
	MaxPerUser       int           `toml:"max_per_user"`    // units a person; 0 = no limit
	ReservationTTL   time.Duration `toml:"reservation_ttl"` // at least 1 s
	ConfirmOn        []string      `toml:"confirm_on"`      // "2xx" or "201"; empty = only the API confirms
	ReleaseOn        []string      `toml:"release_on"`
	ConfirmJSON      *JSONValue    `toml:"confirm_json"` // nil = the status alone decides
	SecretFile       string        `toml:"secret_file"`
	Secret           Secret        // what SecretFile holds, at least 16 bytes
	StatusURL        string        `toml:"status_url"`   // with {serial}, perhaps {sku}; "" = nobody can be asked
	OnNotFound       string        `toml:"on_not_found"` // "keep" "release_after_deadline" "cancel_then_release" "release_after_ttl"
	WriteBack        bool          `toml:"write_back"`
	MaxBatch         int           `toml:"max_batch"`         // orders in one call of a script: 1 to 256
	StreamMaxEvents  int           `toml:"stream_max_events"` // 100 to 10 million
	StreamKeepUnread bool          `toml:"stream_keep_unread"`
	Apart            string        // put before the keys that belong to no SKU, by a load test; "" = none
}

// JSONValue is a place in a JSON body and what may stand there.
type JSONValue struct {
	Path   string `toml:"path"`
	Values []any  `toml:"values"` // strings, ints or bools
}

func defaultReserve() Reserve {
	return Reserve{
		MaxPerUser:      1,
		ReservationTTL:  15 * time.Minute,
		ConfirmOn:       []string{"2xx"},
		ReleaseOn:       []string{"4xx"},
		OnNotFound:      "keep",
		MaxBatch:        64,
		StreamMaxEvents: 100_000,
	}
}

func (v *Reserve) check(r *report) {
	between(r, "stock.reserve.max_per_user", v.MaxPerUser, 0, most)
	between(r, "stock.reserve.max_batch", v.MaxBatch, 1, 256)
	between(r, "stock.reserve.stream_max_events", v.StreamMaxEvents, 100, 10_000_000)
	between(r, "stock.reserve.reservation_ttl", v.ReservationTTL, time.Second, 30*24*time.Hour)
	r.statusClasses("stock.reserve.confirm_on", v.ConfirmOn)
	r.statusClasses("stock.reserve.release_on", v.ReleaseOn)
	for i, status := range v.ReleaseOn {
		if slices.Contains(v.ConfirmOn, status) {
			r.fail(element("stock.reserve.release_on", i), "%q is in confirm_on too: an answer is one or the other; drop it from one", status)
		}
	}
	if j := v.ConfirmJSON; j != nil && (j.Path == "" || len(j.Values) == 0) {
		r.fail("stock.reserve.confirm_json", "path and values belong together; write both")
	}
	if _, ok := webURL(v.StatusURL); v.StatusURL != "" && (!ok || !strings.Contains(v.StatusURL, "{serial}")) {
		r.fail("stock.reserve.status_url", "%q is not a URL with {serial}; write it like \"http://127.0.0.1:9000/orders/by-serial/{serial}\"", v.StatusURL)
	}
	r.oneOf("stock.reserve.on_not_found", v.OnNotFound, "keep", "release_after_deadline", "cancel_then_release",
		"release_after_ttl")
}

// statusClasses wants statuses such as "2xx" or "201".
func (r *report) statusClasses(key string, list []string) {
	for i, text := range list {
		digit, class := strings.CutSuffix(text, "xx")
		if class && len(digit) == 1 && strings.Contains("12345", digit) || statusCode(text) != 0 {
			continue
		}
		r.fail(element(key, i), "%q is not a status; write it like \"2xx\" or \"201\"", text)
	}
}
