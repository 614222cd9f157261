package demo

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func read(t *testing.T, raw string) reply {
	t.Helper()
	var resp fasthttp.Response
	if err := resp.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
		t.Fatal(err)
	}
	return understand(&resp)
}

// answerOf is the raw answer with these header lines.
func answerOf(status, fields, body string) string {
	return "HTTP/1.1 " + status + "\r\n" + fields + "Content-Length: " + count(int64(len(body))) + "\r\n\r\n" + body
}

func TestAnswersDecideWhetherAShopperGoesHome(t *testing.T) {
	const window, gone, dup = "X-Sluice-Reason: window\r\n", "X-Sluice-Reason: sold_out\r\n",
		"X-Sluice-Reason: duplicate\r\n"
	for _, c := range []struct {
		raw   string
		kind  kind
		home  ending
		final bool
	}{
		{answerOf("200 OK", "", `{"code":0}`), admitted, bought, true},
		{answerOf("409 Conflict", "", `{"code":40901}`), admitted, toldSoldOut, true},
		{answerOf("409 Conflict", "", `{"code":40902}`), admitted, hadOne, true},
		{answerOf("409 Conflict", "", `<html>`), admitted, turnedAway, true},
		{answerOf("404 Not Found", "", ``), admitted, turnedAway, true},
		{answerOf("402 Payment Required", "", `{"code":40200}`), admitted, turnedAway, true},
		{answerOf("500 Internal Server Error", "", `{"code":50000}`), admitted, 0, false}, // there may be an order
		{answerOf("503 Service Unavailable", "", ``), admitted, 0, false},
		{answerOf("200 OK", "X-Sluice-Reason: confirmed\r\n", ``), rejected, hadOne, true},
		{answerOf("409 Conflict", "X-Sluice-Reason: in_progress\r\n", ``), rejected, 0, false},
		{answerOf("409 Conflict", "X-Sluice-Reason: released\r\n", ``), rejected, turnedAway, true},
		{answerOf("429 Too Many Requests", window, ``), rejected, 0, false},
		{answerOf("200 OK", window+"Retry-After: 1\r\n", `{"code":42900}`), rejected, 0, false}, // an envelope
		{answerOf("200 OK", gone, `{"code":40901}`), rejected, toldSoldOut, true},
		{answerOf("409 Conflict", gone, ``), rejected, toldSoldOut, true},
		{answerOf("409 Conflict", dup, ``), rejected, hadOne, true},
		{answerOf("400 Bad Request", "X-Sluice-Reason: bad_request\r\n", ``), rejected, turnedAway, true},
		{answerOf("200 OK", "X-Sluice-Reason: unheard_of\r\n", ``), rejected, turnedAway, true}, // no order, whatever it is
		{answerOf("504 Gateway Timeout", "X-Sluice-Reason: upstream_timeout\r\n", ``), unknown, 0, false},
		{answerOf("502 Bad Gateway", "X-Sluice-Reason: upstream_error\r\n", ``), unknown, 0, false},
	} {
		a := read(t, c.raw)
		if home, final := a.settles(); a.kind != c.kind || home != c.home || final != c.final {
			t.Errorf("%q: kind %d, home %d, final %v; want %d, %d, %v", c.raw, a.kind, home, final, c.kind, c.home, c.final)
		}
	}
}

func TestRetryAfterIsWholeSecondsOrNothing(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, "-1": 0, "1.5": 0, "Fri, 31 Dec 1999 23:59:59 GMT": 0,
		"3600": longestWait, "99999999999999999999": 0,
	} {
		if got := retryAfter([]byte(said)); got != want {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
}

func TestReasonsOfAFrontAreBounded(t *testing.T) {
	tl := newTally()
	for i := range 10_000 {
		word := []byte{'a' + byte(i%26), 'a' + byte(i/26%26), 'a' + byte(i/676%26)}
		tl.count(reply{kind: rejected, status: 429, reason: readable(word)}, time.Millisecond)
	}
	r := tl.read()
	if len(r.Rejected) > mostReasons+1 || r.RejectedInAll() != 10_000 {
		t.Errorf("%d reasons for %d rejections, want at most %d for 10000", len(r.Rejected), r.RejectedInAll(), mostReasons+1)
	}
	for _, word := range []string{"a b", "\x1b[2J", "Window", strings.Repeat("a", 25)} {
		if got := readable([]byte(word)); got != "other" {
			t.Errorf("%q is kept as %q", word, got)
		}
	}
}

func FuzzUnderstand(f *testing.F) {
	f.Add([]byte(answerOf("429 Too Many Requests", "Retry-After: 2\r\nX-Sluice-Reason: window\r\n", "")))
	f.Add([]byte(answerOf("409 Conflict", "", `{"code":40901}`)))
	f.Add([]byte(answerOf("409 Conflict",
		"X-Sluice-Reason: in_progress\r\nLink: </.sluice/orders/a?sku=1>; rel=\"status\"\r\n", "")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var resp fasthttp.Response
		if resp.ReadLimitBody(bufio.NewReader(bytes.NewReader(raw)), maxAnswer) != nil {
			return
		}
		a := understand(&resp)
		if a.wait < 0 || a.wait > longestWait || len(a.reason) > 24 ||
			(a.kind == rejected || a.kind == unknown) != (a.reason != "") {
			t.Errorf("%q is understood as %+v", raw, a)
		}
		if home, final := a.settles(); final && home == bought && a.kind != admitted {
			t.Errorf("%q counts as an order that the shop never made", raw)
		}
	})
}
