package admin

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func bearing(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func TestAdmin_ViewerLooksAndChangesNothing(t *testing.T) {
	store := &shelf{left: 3}
	h := (&API{Store: store, Token: "boss", ViewerToken: "guest", Log: slog.New(slog.DiscardHandler)}).Handler()
	for _, c := range []struct {
		token, method, path string
		want                int
	}{
		{"guest", "GET", "/api/v1/stock/1001", 200}, {"guest", "POST", "/api/v1/stock/1001", 403},
		{"guest", "DELETE", "/api/v1/overrides/1", 403},
		{"guest", "GET", "/debug/pprof/", 403}, {"boss", "GET", "/debug/pprof/", 200},
		{"boss", "POST", "/api/v1/stock/1001", 200}, {"", "GET", "/api/v1/stock", 401},
	} {
		if w := ask(h, c.method, c.path, `{"set": 4}`, bearing(c.token)); w.Code != c.want {
			t.Errorf("%s %s with %q: %d %s, want %d", c.method, c.path, c.token, w.Code, w.Body, c.want)
		}
	}
	without := (&API{Store: store, Token: "boss", Log: slog.New(slog.DiscardHandler)}).Handler()
	if w := ask(without, "GET", "/api/v1/stock", "", bearing("")); w.Code != 401 {
		t.Errorf("no viewer token is configured, and none is taken for it: %d", w.Code)
	}
}

// The right token is taken at once, whatever was sent before from its own address or from others. Wrong ones are
// answered late, counted and put on record, the record has no flood, and no token is told.
func TestWrongTokens_AreSlowedAndNeverLockTheRightOneOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		door := NewLoginThrottle()
		h := (&API{Store: &shelf{}, Token: "boss", Login: door, Log: slog.New(slog.NewTextHandler(&log, nil))}).Handler()
		from := func(address, token string) (code int, took time.Duration, after string) {
			start := time.Now()
			w := ask(h, "GET", "/api/v1/stock", "", func(r *http.Request) {
				bearing(token)(r)
				r.RemoteAddr = address
			})
			return w.Code, time.Since(start), w.Header().Get("Retry-After")
		}
		const addresses, guesses = 40, 15
		for i := range guesses {
			for a := range addresses {
				address := fmt.Sprintf("192.0.2.%d:1", a)
				want, pause := 401, time.Duration(0)
				if i >= wrongPerClient {
					want, pause = 429, wrongPause
				}
				code, took, after := from(address, fmt.Sprintf("guess-%d", i))
				if code != want || took != pause || (after != "") != (want == 429) {
					t.Fatalf("guess %d of %s: %d after %v, Retry-After %q; want %d after %v", i, address, code, took, after, want,
						pause)
				}
				if code, took, _ := from(address, "boss"); code != 200 || took != 0 {
					t.Fatalf("the right token after guess %d: %d after %v", i, code, took)
				}
			}
		}
		if n := door.total.Load(); n != addresses*guesses {
			t.Errorf("%d wrong tokens are counted, want %d", n, addresses*guesses)
		}
		if strings.Contains(log.String(), "guess") || strings.Contains(log.String(), "boss") {
			t.Error("a token is in the log")
		}
		if lines := strings.Count(log.String(), "token.reject"); lines != wrongOnRecord {
			t.Errorf("%d lines of the log", lines)
		}
		audit := ask(h, "GET", "/api/v1/audit", "", bearing("boss"))
		if !strings.Contains(audit.Body.String(), `"what":"token.reject"`) || strings.Contains(audit.Body.String(), "guess") {
			t.Errorf("audit: %.300s", audit.Body)
		}
		time.Sleep(time.Minute) // of synctest
		if code, took, _ := from("192.0.2.1:1", "guess"); code != 401 || took != 0 {
			t.Errorf("a minute later: %d after %v", code, took)
		}
	})
}

// Who guesses does not wipe out what was done.
func TestAdmin_RejectionsDoNotPushAuditEntriesOut(t *testing.T) {
	trail := NewAuditLog(slog.New(slog.DiscardHandler))
	trail.Record(AuditEntry{What: "config.reload"}, "")
	for range 10 * keptRejections {
		trail.rejected("192.0.2.1:1")
	}
	all := trail.since(0, maxList)
	if len(all) > keptRejections+1 || all[0].What != "config.reload" {
		t.Errorf("%d deeds, the oldest %+v", len(all), all[0])
	}
	for range 2 * keptDeeds {
		trail.Record(AuditEntry{What: "stock.change"}, "")
	}
	if n := len(trail.since(0, maxList)); n > keptDeeds+keptRejections {
		t.Errorf("%d deeds are kept", n)
	}
}
