package admin

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func bearing(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func TestAViewerLooksAndChangesNothing(t *testing.T) {
	store := &shelf{left: 3}
	h := (&API{Store: store, Token: "boss", ViewerToken: "guest", Log: slog.New(slog.DiscardHandler)}).Handler()
	for _, c := range []struct {
		token, method, path string
		want                int
	}{
		{"guest", "GET", "/api/v1/stock/1001", 200}, {"guest", "POST", "/api/v1/stock/1001", 403}, {"guest", "DELETE", "/api/v1/overrides/1", 403},
		{"guest", "GET", "/debug/pprof/", 403}, {"boss", "GET", "/debug/pprof/", 200}, {"boss", "POST", "/api/v1/stock/1001", 200}, {"", "GET", "/api/v1/stock", 401},
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

// Guessing is limited, of each address; nobody is locked out by what others guess, also who comes for the first time; the record
// has no flood; and no token is told.
func TestTokensCannotBeGuessedForLong(t *testing.T) {
	var log bytes.Buffer
	h := (&API{Store: &shelf{}, Token: "boss", Log: slog.New(slog.NewTextHandler(&log, nil))}).Handler()
	from := func(address, token string) int {
		return ask(h, "GET", "/api/v1/stock", "", func(r *http.Request) {
			bearing(token)(r)
			r.RemoteAddr = address
		}).Code
	}
	const addresses, guesses = 40, 30
	refused := 0
	for i := range addresses * guesses {
		switch code := from(fmt.Sprintf("192.0.2.%d:1", i%addresses), fmt.Sprintf("guess-%d", i)); code {
		case 401:
		case 429:
			refused++
		default:
			t.Fatalf("a guess: %d", code)
		}
	}
	// The minute may turn once meanwhile.
	if least := addresses * (guesses - 2*wrongOfOne); refused < least {
		t.Errorf("%d of %d guesses were not looked at, want at least %d", refused, addresses*guesses, least)
	}
	if code := from("192.0.2.200:1", "boss"); code != 200 {
		t.Errorf("an operator who comes for the first time is locked out by others: %d", code)
	}
	if strings.Contains(log.String(), "guess") || strings.Contains(log.String(), "boss") {
		t.Error("a token is in the log")
	}
	if lines := strings.Count(log.String(), "token.refuse"); lines == 0 || lines > 2*wrongOfAll {
		t.Errorf("%d lines of the log", lines)
	}
	audit := ask(h, "GET", "/api/v1/audit", "", func(r *http.Request) { bearing("boss")(r); r.RemoteAddr = "192.0.2.200:1" })
	if !strings.Contains(audit.Body.String(), `"what":"token.refuse"`) || strings.Contains(audit.Body.String(), "guess") {
		t.Errorf("audit: %.300s", audit.Body)
	}
}

func TestTheDoorShutsForTheRestOfAMinute(t *testing.T) {
	d, client, other := NewDoor(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	at := time.Unix(600, 0)
	for range wrongOfOne {
		if d.shut(client, at) != 0 {
			t.Fatal("shut too early")
		}
		d.refused(client, at)
	}
	if wait := d.shut(client, at.Add(20*time.Second)); wait != 40*time.Second {
		t.Errorf("wait %v, want 40s", wait)
	}
	if d.shut(other, at) != 0 || d.shut(client, at.Add(time.Minute)) != 0 {
		t.Error("another is shut out, or for longer than the minute")
	}
	if got := clientOf("[2001:db8::1:2:3:4]:5"); got != netip.MustParseAddr("2001:db8::") {
		t.Errorf("an IPv6 client is %v, not its /64", got)
	}
}

// Who guesses does not wipe out what was done.
func TestRefusalsDoNotPushDeedsOut(t *testing.T) {
	trail := NewTrail(slog.New(slog.DiscardHandler))
	trail.Note(Deed{What: "config.reload"}, "")
	for range 10 * keptRefusals {
		trail.Refused("192.0.2.1:1")
	}
	all := trail.since(0, maxList)
	if len(all) > keptRefusals+1 || all[0].What != "config.reload" {
		t.Errorf("%d deeds, the oldest %+v", len(all), all[0])
	}
	for range 2 * keptDeeds {
		trail.Note(Deed{What: "stock.change"}, "")
	}
	if n := len(trail.since(0, maxList)); n > keptDeeds+keptRefusals {
		t.Errorf("%d deeds are kept", n)
	}
}
