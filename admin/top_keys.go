package admin

import (
	"net/http"
	"strconv"

	"sluice/proxy/metrics"
)

// How many are listed where the request does not say, and at most.
const (
	defaultTopKeys = 20
	maxTopKeys     = 1000
)

// topKeys lists the keys that limits reject most: ?n= of them, 1 to 1000.
func (a *API) topKeys(w http.ResponseWriter, r *http.Request) {
	n := defaultTopKeys
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxTopKeys {
			fail(w, http.StatusBadRequest, "n must be from 1 to 1000")
			return
		}
	}
	all := []metrics.TopKey{}
	if a.TopKeys != nil {
		all = a.TopKeys(n)
	}
	answer(w, struct {
		TopKeys []metrics.TopKey `json:"top_keys"`
	}{all})
}
