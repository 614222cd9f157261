package proxy

import (
	"strings"
	"testing"
)

// Of a field that stands twice where the proxy looks for one value, the first counts, and is the only one that the
// upstream sees: it cannot read another.
func TestHeaders_FirstOfTwoFieldsCounts(t *testing.T) {
	to := &recorder{}
	o := options(to)
	o.Trusted = prefixes("127.0.0.0/8")
	addr, _ := gateway(t, o)
	resp, _ := talk(t, addr, "GET / HTTP/1.1\r\nHost: shop\r\nx-request-ID: first\r\nX-Request-Id: second\r\n"+
		"x-forwarded-proto: https\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Forwarded-Host: b\r\n\r\n")
	saw := strings.Join(to.all(), "")
	for _, line := range []string{"X-Request-Id: first\r\n", "X-Forwarded-Proto: https\r\n", "X-Forwarded-Host: a\r\n"} {
		name, _, _ := strings.Cut(line, ":")
		if strings.Count(strings.ToLower(saw), strings.ToLower(name)) != 1 || !strings.Contains(saw, line) {
			t.Errorf("the upstream saw %q, want one %q", saw, line)
		}
	}
	if id := resp.Header.Get("X-Request-Id"); id != "first" {
		t.Errorf("request ID %q", id)
	}
}

// Fields that the proxy does not look at arrive in their order, repeated ones included.
func TestHeaders_FieldsOfOneNameArriveInOrder(t *testing.T) {
	const fields = "X-One: 2\r\nCookie: b=2\r\nAccept: a\r\nx-one: 1\r\nCookie: b=1\r\nX-One: 2\r\nAccept: b\r\n" +
		"Content-Encoding: x\r\nContent-Encoding: y\r\n"
	for _, raw := range []string{
		"GET /page HTTP/1.1\r\nHost: shop\r\n" + fields + "\r\n",
		"GET /search/ HTTP/1.1\r\nHost: shop\r\n" + fields + "\r\n",
		orderWith("Cookie", fields+"Cookie"),
	} {
		to := &recorder{}
		addr, _ := gateway(t, options(to))
		resp, body := talk(t, addr, raw)
		if saw := to.all(); resp.StatusCode != 200 || len(saw) != 1 || !strings.Contains(saw[0], "\r\n"+fields) {
			t.Errorf("%d %s; the upstream saw %q, want %q", resp.StatusCode, body, saw, fields)
		}
	}
}

// What CGI folds into a field of the proxy's own is that field, whichever punctuation it is written with.
func TestHeaders_NamesThatServersFoldDoNotTravel(t *testing.T) {
	to := &recorder{}
	o, _ := reserving(to)
	addr, _ := gateway(t, o)
	raw := strings.Replace(buying, "\r\n\r\n",
		"\r\nSluice.Quantity: 99\r\nX.Forwarded.For: 6.6.6.6\r\nX~Real~IP: 6.6.6.6\r\n\r\n", 1)
	talk(t, addr, raw)
	twice := strings.Replace(buying, "\r\n\r\n", "\r\nIdempotency.Key: other\r\n\r\n", 1)
	if resp, body := talk(t, addr, twice); resp.StatusCode != 400 {
		t.Errorf("two keys: %d %s", resp.StatusCode, body)
	}
	got := to.all()
	if len(got) != 1 {
		t.Fatalf("%q", got)
	}
	for _, name := range []string{"Sluice.Quantity", "X.Forwarded.For", "X~Real~IP"} {
		if strings.Contains(got[0], name+":") {
			t.Errorf("%s reaches the upstream:\n%s", name, got[0])
		}
	}
}
