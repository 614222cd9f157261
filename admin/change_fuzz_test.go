package admin

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever a caller sends, a change that is taken asks for one thing, and within what a ledger counts.
func FuzzChangeAsksForOneThing(f *testing.F) {
	for _, body := range []string{`{"set": 5}`, `{"set": 5, "limit": 0}`, `{"add": -3}`,
		`{"state": "on", "limit": 1}`, `{"set": 1, "add": 1}`, `{"SET": 1}`, `{"set": 1e3}`, `{"set": null}`, `null`,
		`{}{}`} {
		f.Add(body, "key")
	}
	f.Fuzz(func(t *testing.T, body, key string) {
		r := httptest.NewRequest("POST", "/api/v1/stock/1001", strings.NewReader(body))
		r.Header["Idempotency-Key"] = []string{key}
		c, err := changeOf(httptest.NewRecorder(), r)
		if err != nil || c.fitsLedger() != nil {
			return
		}
		asked := 0
		for _, is := range []bool{c.Set != nil, c.Add != nil, c.State != ""} {
			if is {
				asked++
			}
		}
		if asked != 1 || c.Limit != nil && c.Set == nil || c.key != "" && c.Add == nil {
			t.Errorf("%q is taken as %+v", body, c)
		}
		if c.Set != nil && *c.Set < 0 || c.Limit != nil && *c.Limit < 0 || c.Add != nil && *c.Add == 0 {
			t.Errorf("%q is taken as %s", body, &c)
		}
		if c.fitsLayout() == nil && (c.Limit != nil || c.State != "" || c.key != "") {
			t.Errorf("%q is taken for the shop's own key", body)
		}
	})
}
