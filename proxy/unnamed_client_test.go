package proxy

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A client behind a PROXY header that names none could otherwise name itself, since the proxy is trusted.
func TestClientAddress_OfAnUnnamedClientIsTheProxys(t *testing.T) {
	for header, want := range map[string]string{
		"PROXY TCP4 203.0.113.7 127.0.0.1 1234 80\r\n":    "203.0.113.7",
		"PROXY UNKNOWN\r\n":                               "127.0.0.1",
		"PROXY UNKNOWN 203.0.113.7 127.0.0.1 1234 80\r\n": "127.0.0.1",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00":          "127.0.0.1",
	} {
		up := &recorder{}
		o := options(up)
		o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		addr := serve(t, p, ServerOptions{ProxyProtocol: true, ReadHeaderTimeout: time.Minute})
		talk(t, addr, header+"GET /page HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 6.6.6.6\r\n"+
			"X-Forwarded-Proto: https\r\nConnection: close\r\n\r\n")
		sent := up.all()
		if len(sent) != 1 || !strings.Contains(sent[0], "X-Forwarded-For: "+want+"\r\n") ||
			strings.Contains(sent[0], "6.6.6.6") || strings.Contains(sent[0], "https") {
			t.Errorf("%q: the upstream got %q, want the client %s", header, sent, want)
		}
	}
}

func TestMethodNotAllowed_SaysWhatIs(t *testing.T) {
	addr, _ := gateway(t, options(&recorder{}))
	resp, _ := talk(t, addr, "TRACE /page HTTP/1.1\r\nHost: shop\r\n\r\n")
	allow := resp.Header.Get("Allow")
	if resp.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(allow, "GET, HEAD, POST") {
		t.Errorf("%d, Allow %q", resp.StatusCode, allow)
	}
}
