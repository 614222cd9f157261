package admin

import (
	"log/slog"
	"net/http"
	"testing"

	"sluice/proxy/metrics"
)

func TestAPI_WithATokenNoRequestIsAnsweredWithoutIt(t *testing.T) {
	api := &API{Token: "hush", Log: slog.New(slog.DiscardHandler)}
	h := api.Handler()
	for given, want := range map[string]int{"": 401, "Bearer": 401, "Bearer ": 401, "Bearer hus": 401, "Bearer hush2": 401,
		"hush": 401, "Basic hush": 401, "Bearer hush": 404, "bearer hush": 404} {
		w := ask(h, "GET", "/api/v1/stock", "", func(r *http.Request) {
			r.Host = "gate.example"
			r.Header.Set("Authorization", given)
		})
		if w.Code != want {
			t.Errorf("%q: %d, want %d", given, w.Code, want)
		}
	}
}

func TestTopKeys_AreListedAsOftenAsAskedFor(t *testing.T) {
	for query, want := range map[string]struct{ status, n int }{
		"": {200, defaultTopKeys}, "?n=3": {200, 3}, "?n=1000": {200, 1000}, "?n=0": {400, 0}, "?n=1001": {400, 0},
		"?n=-1": {400, 0}, "?n=x": {400, 0},
	} {
		asked := 0
		api := &API{Token: "hush", Log: slog.New(slog.DiscardHandler),
			TopKeys: func(n int) []metrics.TopKey { asked = n; return []metrics.TopKey{{Limit: "r", Key: "k", Rejected: 1}} }}
		w := ask(api.Handler(), "GET", "/api/v1/top-keys"+query, "",
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer hush") })
		if w.Code != want.status || asked != want.n {
			t.Errorf("%q: %d, asked for %d; want %d, %d", query, w.Code, asked, want.status, want.n)
		}
		if body := w.Body.String(); want.status == 200 && body != `{"top_keys":[{"limit":"r","key":"k","rejected":1}]}`+"\n" {
			t.Errorf("%q: %s", query, body)
		}
	}
}
