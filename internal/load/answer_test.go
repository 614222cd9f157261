package load

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func read(t *testing.T, raw string) answer {
	t.Helper()
	var resp fasthttp.Response
	if err := resp.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
		t.Fatal(err)
	}
	return readAnswer(&resp)
}

// answerOf is the raw answer with these header lines.
func answerOf(status, fields, body string) string {
	return "HTTP/1.1 " + status + "\r\n" + fields + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// kindOf is how an answer is counted.
func kindOf(a answer) string {
	n := Counts{Rejected: map[string]int64{}, Unknown: map[string]int64{}, Status: map[int]int64{}}
	n.add(a)
	switch {
	case n.Accepted == 1 && n.Admitted+int64(len(n.Rejected)+len(n.Unknown)) == 0:
		return "accepted"
	case n.Admitted == 1 && len(n.Rejected)+len(n.Unknown) == 0:
		return "admitted"
	case n.Admitted == 0 && n.Rejected[a.reason] == 1 && len(n.Unknown) == 0:
		return "rejected"
	case n.Admitted == 0 && n.Unknown[a.reason] == 1 && len(n.Rejected) == 0:
		return "unknown"
	}
	return fmt.Sprintf("%+v", n)
}

func TestCrowd_AnswersDecideWhetherAShopperGoesHome(t *testing.T) {
	const window, gone, dup = "X-Sluice-Reason: window\r\n", "X-Sluice-Reason: sold_out\r\n",
		"X-Sluice-Reason: duplicate\r\n"
	for _, c := range []struct {
		raw   string
		kind  string // how it is counted
		home  Ending
		final bool
	}{
		{answerOf("200 OK", "", `{"code":0}`), "admitted", Bought, true},
		{answerOf("202 Accepted", "", `{"code":0}`), "admitted", Bought, true}, // of a shop that queues by itself
		{answerOf("202 Accepted", "Link: </orders/7>; rel=\"status\"\r\n", `{"code":0}`), "admitted", Bought, true},
		{answerOf("202 Accepted", "Retry-After: 5\r\nLink: </.sluice/orders/a?sku=1>; rel=\"status\"\r\n",
			`{"serial":"a","state":"queued"}`), "accepted", 0, false},
		{answerOf("409 Conflict", "", `{"code":40901}`), "admitted", SoldOut, true},
		{answerOf("409 Conflict", "", `{"code":40902}`), "admitted", HadOne, true},
		{answerOf("409 Conflict", "", `<html>`), "admitted", Rejected, true},
		{answerOf("404 Not Found", "", ``), "admitted", Rejected, true},
		{answerOf("402 Payment Required", "", `{"code":40200}`), "admitted", Rejected, true},
		{answerOf("500 Internal Server Error", "", `{"code":50000}`), "admitted", 0, false}, // there may be an order
		{answerOf("503 Service Unavailable", "", ``), "admitted", 0, false},
		{answerOf("200 OK", "X-Sluice-Reason: confirmed\r\n", ``), "rejected", HadOne, true},
		{answerOf("409 Conflict", "X-Sluice-Reason: in_progress\r\n", ``), "rejected", 0, false},
		{answerOf("409 Conflict", "X-Sluice-Reason: released\r\n", ``), "rejected", Rejected, true},
		{answerOf("429 Too Many Requests", window, ``), "rejected", 0, false},
		{answerOf("200 OK", window+"Retry-After: 1\r\n", `{"code":42900}`), "rejected", 0, false}, // an envelope
		{answerOf("200 OK", gone, `{"code":40901}`), "rejected", SoldOut, true},
		{answerOf("409 Conflict", gone, ``), "rejected", SoldOut, true},
		{answerOf("409 Conflict", dup, ``), "rejected", HadOne, true},
		{answerOf("400 Bad Request", "X-Sluice-Reason: bad_request\r\n", ``), "rejected", Rejected, true},
		{answerOf("200 OK", "X-Sluice-Reason: unheard_of\r\n", ``), "rejected", Rejected, true}, // no order, whatever it is
		{answerOf("504 Gateway Timeout", "X-Sluice-Reason: upstream_timeout\r\n", ``), "unknown", 0, false},
		{answerOf("502 Bad Gateway", "X-Sluice-Reason: upstream_error\r\n", ``), "unknown", 0, false},
	} {
		a := read(t, c.raw)
		if home, final := a.ends(); kindOf(a) != c.kind || home != c.home || final != c.final {
			t.Errorf("%q: %s, home %d, final %v; want %s, %d, %v", c.raw, kindOf(a), home, final, c.kind, c.home, c.final)
		}
	}
}

func TestCrowd_RetryAfterIsWholeSecondsOrNothing(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, "-1": 0, "1.5": 0, "Fri, 31 Dec 1999 23:59:59 GMT": 0,
		"3600": maxWait, "99999999999999999999": 0,
	} {
		if got := read(t, answerOf("429 Too Many Requests", "Retry-After: "+said+"\r\n", "")).wait; got != want {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
}

func TestCrowd_ReasonsOfAFrontAreBounded(t *testing.T) {
	n := Counts{Rejected: map[string]int64{}, Unknown: map[string]int64{}, Status: map[int]int64{}}
	for i := range 10_000 {
		word := []byte{'a' + byte(i%26), 'a' + byte(i/26%26), 'a' + byte(i/676%26)}
		n.add(answer{status: 429, reason: readable(word)})
	}
	sum := int64(0)
	for _, one := range n.Rejected {
		sum += one
	}
	if len(n.Rejected) > maxReasons+1 || sum != 10_000 {
		t.Errorf("%d reasons for %d rejections, want at most %d for 10000", len(n.Rejected), sum, maxReasons+1)
	}
	for _, word := range []string{"a b", "\x1b[2J", "Window", strings.Repeat("a", 25)} {
		if got := readable([]byte(word)); got != "other" {
			t.Errorf("%q is kept as %q", word, got)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(answerOf("429 Too Many Requests", "Retry-After: 2\r\nX-Sluice-Reason: window\r\n", "")))
	f.Add([]byte(answerOf("409 Conflict", "", `{"code":40901}`)))
	f.Add([]byte(answerOf("409 Conflict",
		"X-Sluice-Reason: in_progress\r\nLink: </.sluice/orders/a?sku=1>; rel=\"status\"\r\n", "")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var resp fasthttp.Response
		if resp.ReadLimitBody(bufio.NewReader(bytes.NewReader(raw)), maxAnswerSize) != nil {
			return
		}
		a := readAnswer(&resp)
		kind := kindOf(a)
		if a.wait < 0 || a.wait > maxWait || len(a.reason) > 24 ||
			(kind == "rejected" || kind == "unknown") != (a.reason != "") {
			t.Errorf("%q is understood as %+v", raw, a)
		}
		if home, final := a.ends(); final && home == Bought && kind != "admitted" {
			t.Errorf("%q counts as an order that the shop never made", raw)
		}
	})
}
