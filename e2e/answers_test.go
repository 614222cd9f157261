package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// spoken is an answer of a shop, as it stands on the wire, and what it makes of an order.
type spoken struct{ answer, order string }

// inJSON is a good answer with a JSON body.
func inJSON(body string) string { return withBody("200 OK\r\nContent-Type: application/json", body) }

// withBody is an answer of a status, and perhaps header lines, with a body.
func withBody(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// compressed is body in gzip.
func compressed(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, body); err != nil || w.Close() != nil {
		t.Fatal("gzip fails")
	}
	return b.String()
}

// ends answers, and ends the connection, which cuts an answer that is not whole. The gate hears that before: it would
// send another order there.
func ends(c net.Conn, answer string) (stays bool) {
	_, _ = io.WriteString(c, strings.Replace(answer, "\r\n", "\r\nConnection: close\r\n", 1))
	return false
}

// outcomes plays each answer to an order of its own. It checks the outcomes in the access log, and that the ledger has
// sold, held and released as many.
func outcomes(t *testing.T, settings string, answers []spoken) *running {
	t.Helper()
	redis := redistest.Start(t)
	shop := misbehave(t, func(c net.Conn, r *http.Request) bool {
		uid, err := r.Cookie("uid")
		if err != nil {
			return false
		}
		i, _ := strconv.Atoi(uid.Value)
		return ends(c, answers[i].answer)
	})
	g, log := logged(t, "upstream.targets = "+quoted(shop.url), redisAt(redis), boundless, settings, reserveRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "100")
	want := account{total: 100}
	for i, s := range answers {
		b := &buyer{user: strconv.Itoa(i)}
		b.buy(g.front)
		b.leave()
		switch s.order {
		case "confirmed":
			want.sold++
		case "unknown":
			want.held++
		}
	}
	var orders []string
	soon(t, "all orders are logged", func() bool {
		orders = nil
		for _, e := range log.entries() {
			if e.Order != "" {
				orders = append(orders, e.Order)
			}
		}
		return len(orders) == len(answers)
	})
	for i, s := range answers {
		if orders[i] != s.order {
			t.Errorf("%q: the order is %s, want %s", s.answer, orders[i], s.order)
		}
	}
	if !t.Failed() {
		soon(t, "the ledger says the same", func() bool { return ledgerOf(t, redis, "1001") == want })
	}
	return g
}

func TestAnswers_NumberConfirmsAsANumber(t *testing.T) {
	t.Parallel()
	var all []spoken
	add := func(order string, bodies ...string) {
		for _, b := range bodies {
			all = append(all, spoken{inJSON(b), order})
		}
	}
	add("confirmed", `{"code":200}`, `{"code":200.0}`, `{"code":200.000}`, `{"code":2e2}`, `{"code":2.0E+2}`,
		`{"code":20000e-2}`, `{"code":0.2e0003}`, `{ "code" : 200 }`, `{"code":200,"code":200}`,
		`{"code":9007199254740993}`, `{"code":9007199254740993.0}`, `{"code":-0}`, `{"code":0e9}`)
	add("released", `{"code":500}`, `{"code":-200}`, `{"code":200.5}`, `{"code":2e3}`, `{"code":1e400}`,
		`{"code":9007199254740992}`, `{"code":200.00000000000000000001}`, `{"code":2e99999999999}`)
	add("unknown", `{"code":"200"}`, `{"code":null}`, `{"code":true}`, `{"code":[200]}`, `{"code":{"code":200}}`, `{}`,
		`{"Code":200}`, `{"data":{"code":200}}`, `[{"code":200}]`, `200`, `"200"`, `null`, ``, `<html>200</html>`,
		`{"code":500,"code":200}`, `{"code":200,"code":500}`, `{"code":500,"CODE":200}`, `{"code":500`, `{"code":500}}`,
		`{"code":0500}`, `{"code":NaN}`, `{"code":"{\"code\":500}"}`, "\xef\xbb\xbf"+`{"code":500}`,
		strings.Repeat(`{"a":`, 20_000)+`{"code":500}`)
	all = append(all,
		spoken{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"code\":500}", "unknown"},
		spoken{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{\"code\":500}\r\n", "unknown"},
		spoken{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{\"code\":200}\r\n0\r\n\r\n", "confirmed"},
		spoken{"HTTP/1.1 200 OK\r\n\r\n{\"code\":200}", "confirmed"},
		spoken{"HTTP/1.1 204 No Content\r\n\r\n", "unknown"},
		spoken{withBody("500 No", `{"code":200}`), "unknown"},
		spoken{withBody("409 Conflict", `{"code":200}`), "released"})
	outcomes(t, `stock.reserve.confirm_json = { path = "code", values = [200, 9007199254740993, 0] }`, all)
}

// The status or the shop's own word decides without the body; a word that contradicts another decides nothing.
func TestAnswers_StatusAndWordThatAreNotCertainReleaseNothing(t *testing.T) {
	t.Parallel()
	word := func(status string, words ...string) string {
		for _, w := range words {
			status += "\r\nSluice-Order: " + w
		}
		return withBody(status, "")
	}
	g := outcomes(t, `stock.reserve.release_on = ["409"]`, []spoken{
		{word("200 OK"), "confirmed"},
		{word("409 Conflict"), "released"},
		{word("404 Not Found"), "unknown"},
		{word("302 Found"), "unknown"},
		{word("200 OK", "released"), "released"},
		{word("500 No", "confirmed"), "confirmed"},
		{word("200 OK", "Released"), "unknown"},
		{word("409 Conflict", "confirmed, released"), "unknown"},
		{word("409 Conflict", "released", "confirmed"), "unknown"},
		{word("409 Conflict", "sold-out", "confirmed"), "unknown"},
		{"HTTP/1.1 409 Conflict\r\nContent-Length: 100\r\n\r\nno", "unknown"},
		{"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n", "unknown"},
		{"HTTP/1.1 409 Confl", "unknown"},
		{"", "unknown"},
	})
	g.wantMetric(0, "sluice_shop_sold_out_total", `order="held"`)
}

// A browser says Accept-Encoding with each request. Where the body decides the shop does not hear it.
func TestAnswers_CompressedBodyIsNotAskedForAndDecidesNothing(t *testing.T) {
	t.Parallel()
	const settings = `stock.reserve.confirm_json = { path = "code", values = [0] }`
	redis := redistest.Start(t)
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		body := `{"code":0}`
		if strings.Contains(r.Header.Get("Accept-Encoding")+r.Header.Get("Accept_encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			body = compressed(t, body)
		}
		_, _ = io.WriteString(w, body)
	})
	g := gate(t, shop.setting(), redisAt(redis), unlimited, settings, reserveRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "10")
	for user, line := range []string{"Accept-Encoding: gzip", "accept-encoding: br, gzip", "Accept_Encoding: gzip"} {
		g.raw(t, head("POST /api/seckill/1001/order HTTP/1.1", host, noBody, "Cookie: uid="+strconv.Itoa(user), line)).
			must(t, 200, "")
	}
	soon(t, "all are sold", func() bool { return ledgerOf(t, redis, "1001") == account{10, 0, 3} })
	if a := g.raw(t, head(toGet, host, "Accept-Encoding: gzip")); a.header.Get("Content-Encoding") != "gzip" {
		t.Error("a page is not compressed any more")
	}
	g.wantMetric(0, "sluice_upstream_compressed_responses_total")

	g = outcomes(t, settings, []spoken{
		{withBody("200 OK\r\nContent-Encoding: gzip", compressed(t, `{"code":500}`)), "unknown"},
		{withBody("200 OK\r\nContent-Encoding: gzip", compressed(t, `{"code":0}`)), "unknown"},
		{withBody("200 OK\r\nContent-Encoding: br", "\x8b\x04\x80{\"code\":0}\x03"), "unknown"},
		{withBody("200 OK\r\nContent-Encoding: br", `{"code":500}`), "unknown"},
		{withBody("200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: gzip", `{"code":500}`), "unknown"},
		{withBody("200 OK\r\nContent-Encoding: identity", `{"code":0}`), "confirmed"},
		{withBody("200 OK\r\nContent-Encoding: UTF-8", `{"code":500}`), "released"},
		{withBody("409 Conflict\r\nContent-Encoding: gzip", compressed(t, `{"code":0}`)), "released"},
	})
	g.wantMetric(5, "sluice_upstream_compressed_responses_total")
	if n := strings.Count(g.log.String(), "compresses a response"); n != 1 {
		t.Errorf("it is logged %d times, want once", n)
	}
}

// A part of a response is handed on while the rest is awaited: the log tells what became of all of it.
func TestAnswers_BodyIsReadToItsEndOrLoggedAsBroken(t *testing.T) {
	t.Parallel()
	const inChunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	large := strings.Repeat("x", 100_000)
	answers := []struct{ answer, body, outcome string }{
		{inChunks + "5 \r\nhello\r\n0 \r\n\r\n", "hello", "answered"},
		{inChunks + "5 \t   \r\nhello\r\n0\t\r\n\r\n", "hello", "answered"},
		{inChunks + "0005  \r\nhello\r\n6 ;a=b\r\n world\r\n0\r\nA: b\r\n\r\n", "hello world", "answered"},
		{withBody("200 OK", large), large, "answered"},
		{"HTTP/1.1 200 OK\r\n\r\n" + large, large, "answered"},
		{inChunks + "5\r\nhello\r\n", "hello", "broken"},
		{inChunks + "5\r\nhello\r\n5 5\r\nhello\r\n0\r\n\r\n", "hello", "broken"},
		{inChunks + "5\r\nhello\r\n \r\n\r\n", "hello", "broken"},
		{inChunks + "5\r\nhello\r\n 5\r\nhello\r\n0\r\n\r\n", "hello", "broken"},
		{inChunks + "5\r\nhello\r\n0x5\r\nhello\r\n0\r\n\r\n", "hello", "broken"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n" + large, large, "broken"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello", "", "broken"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + large, large, "broken"}, // streamed
	}
	shop := misbehave(t, func(c net.Conn, r *http.Request) bool {
		i, _ := strconv.Atoi(r.URL.Query().Get("n"))
		return ends(c, answers[i].answer)
	})
	g, log := logged(t, "upstream.targets = "+quoted(shop.url), unlimited)
	for i, a := range answers {
		id := "n" + strconv.Itoa(i)
		r, err := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("http://%s/page?n=%d", g.front, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", id)
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if whole := err == nil && resp.StatusCode == 200; whole != (a.outcome == "answered") {
			t.Errorf("%.80q: answered %d, error %v", a.answer, resp.StatusCode, err)
		}
		if resp.StatusCode == 200 && string(body) != a.body {
			t.Errorf("%.80q: %d bytes of body, want %d", a.answer, len(body), len(a.body))
		}
		soon(t, id+" is logged", func() bool { return len(outcomesOf(log, id)) > 0 })
		if got := outcomesOf(log, id); len(got) != 1 || got[0] != a.outcome {
			t.Errorf("%.80q: logged as %v, want %s once", a.answer, got, a.outcome)
		}
	}
	g.logs(t, "a response of the upstream broke off")
}

// outcomesOf are the outcomes in the lines of one request.
func outcomesOf(log *journal, id string) (all []string) {
	for _, e := range log.entries() {
		if e.RequestID == id {
			all = append(all, e.Outcome)
		}
	}
	return all
}

// A client that leaves is no fault of the shop's.
func TestAnswers_ClientThatLeavesBreaksNothing(t *testing.T) {
	t.Parallel()
	shop := misbehave(t, func(c net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for {
			if _, err := io.WriteString(c, "5\r\nhello\r\n"); err != nil {
				return false
			}
		}
	})
	g, log := logged(t, "upstream.targets = "+quoted(shop.url), unlimited, "server.body_memory = \"1MiB\"")
	c := dial(t, g.front)
	_, _ = io.WriteString(c, head(toGet, host, "X-Request-Id: gone"))
	if _, err := io.ReadFull(c, make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	soon(t, "it is logged", func() bool { return len(outcomesOf(log, "gone")) > 0 })
	if got := outcomesOf(log, "gone"); len(got) != 1 || got[0] != "answered" {
		t.Errorf("logged as %v, want answered once", got)
	}
}

func TestAnswers_StatusOfSluiceHasItsOwnReasonPhrase(t *testing.T) {
	t.Parallel()
	shop := misbehave(t, func(c net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(c, withBody("200 OK\r\nEtag: \"a\"", "page"))
		return true
	})
	g := gate(t, "upstream.targets = "+quoted(shop.url), unlimited, cachedRoutes)
	for _, c := range []struct{ request, line string }{
		{head(toGet, host), "HTTP/1.1 200 OK"},
		{head(toGet, host), "HTTP/1.1 200 OK"},
		{head(toGet, host, `If-None-Match: "a"`), "HTTP/1.1 304 Not Modified"},
		{head("HEAD /a HTTP/1.1", host, `If-None-Match: W/"a", "b"`), "HTTP/1.1 304 Not Modified"},
		{head(toGet, host, `If-None-Match: "b"`), "HTTP/1.1 200 OK"},
		{head("GET /a HTTP/1.1"), "HTTP/1.1 400 Bad Request"},
	} {
		client := dial(t, g.front)
		_, _ = io.WriteString(client, c.request)
		line, err := bufio.NewReader(client).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != c.line {
			t.Errorf("%q: %q, %v, want %q", c.request, line, err, c.line)
		}
	}
}
