package admin

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"sluice/proxy/metrics"
)

// Without a token a caller must be on this machine, and must call it by its own name.
func TestAPI_WithoutATokenOnlyThisMachineIsAnswered(t *testing.T) {
	api := &API{Log: slog.New(slog.DiscardHandler)}
	handler := api.Handler()
	tcp, unix := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8090}, &net.UnixAddr{Net: "unix", Name: "/run/admin.sock"}
	for _, c := range []struct {
		name, from, host string
		at               net.Addr
		origin           string
		status           int // 404: let in, and no stock is kept
	}{
		{"loopback", "127.0.0.1:5", "127.0.0.1:8090", tcp, "", 404},
		{"IPv6 loopback", "[::1]:5", "[::1]:8090", tcp, "", 404},
		{"by name", "127.0.0.1:5", "localhost:8090", tcp, "", 404},
		{"unix socket", "@", "localhost", unix, "", 404},
		{"another machine", "192.0.2.1:5", "127.0.0.1:8090", tcp, "", 403},
		{"another name, rebound", "127.0.0.1:5", "evil.example:8090", tcp, "", 403},
		{"a name that begins like ours", "127.0.0.1:5", "127.0.0.1.evil.example", tcp, "", 403},
		{"a page of another origin", "127.0.0.1:5", "127.0.0.1:8090", tcp, "http://evil.example", 403},
		{"unix socket by another name", "@", "evil.example", unix, "", 403},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://"+c.host+"/api/v1/stock/1001", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.at))
		r.RemoteAddr = c.from
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, w.Code, w.Body, c.status)
		}
	}
}

func TestAPI_WithATokenNoRequestIsAnsweredWithoutIt(t *testing.T) {
	api := &API{Token: "hush", Log: slog.New(slog.DiscardHandler)}
	handler := api.Handler()
	for given, want := range map[string]int{"": 401, "Bearer": 401, "Bearer ": 401, "Bearer hus": 401, "Bearer hush2": 401,
		"hush": 401, "Basic hush": 401, "Bearer hush": 404, "bearer hush": 404} {
		r := httptest.NewRequest(http.MethodGet, "http://gate.example/api/v1/stock", nil)
		r.RemoteAddr = "127.0.0.1:5"
		r.Header.Set("Authorization", given)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
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
		r := httptest.NewRequest(http.MethodGet, "http://gate.example/api/v1/top-keys"+query, nil)
		r.Header.Set("Authorization", "Bearer hush")
		w := httptest.NewRecorder()
		api.Handler().ServeHTTP(w, r)
		if w.Code != want.status || asked != want.n {
			t.Errorf("%q: %d, asked for %d; want %d, %d", query, w.Code, asked, want.status, want.n)
		}
		if body := w.Body.String(); want.status == 200 && body != `{"top_keys":[{"limit":"r","key":"k","rejected":1}]}`+"\n" {
			t.Errorf("%q: %s", query, body)
		}
	}
}
