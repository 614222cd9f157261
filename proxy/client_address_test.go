package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy/route"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// clientProbe makes o limit each client apart, and returns where the client of the last request is found.
func clientProbe(o *Options) (client *string) {
	client = new(string)
	o.Routes = []Route{{Name: "x", Match: "/", Gate: route.Limit, SKU: "$remote_addr"}}
	o.Windows = windowFunc(func(_ int64, sku []byte) (time.Duration, bool) { *client = string(sku); return 0, true })
	return client
}

func TestClientAddress_IsTakenFromTrustedProxiesAlone(t *testing.T) {
	for _, c := range []struct {
		trusted      []netip.Prefix
		header, want string
	}{
		{nil, "X-Forwarded-For: 6.6.6.6", "127.0.0.1"},
		{loopback, "X-Forwarded-For: 6.6.6.6", "6.6.6.6"},
		{loopback, "X-Forwarded-For: 1.1.1.1, 6.6.6.6:1234", "6.6.6.6"},
		{loopback, "X-Forwarded-For: 6.6.6.6, 127.0.0.9", "6.6.6.6"},
		{loopback, "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 127.0.0.9", "6.6.6.6"},
		{loopback, "X-Forwarded-For: 6.6.6.6, nonsense", "127.0.0.1"},
		{loopback, "X-Forwarded-For: [2001:db8::1]:80", "2001:db8::1"},
		{loopback, "X-Forwarded-For: ::ffff:6.6.6.6", "6.6.6.6"},
		{loopback, "X-Forwarded-For: 127.0.0.2, 127.0.0.3", "127.0.0.2"},
		{loopback, "X_Forwarded_For: 6.6.6.6", "127.0.0.1"},
		{loopback, "A: b", "127.0.0.1"},
	} {
		o := options(&recorder{})
		o.Trusted = c.trusted
		client := clientProbe(&o)
		addr, _ := gateway(t, o)
		talk(t, addr, "GET / HTTP/1.1\r\nHost: s\r\n"+c.header+"\r\nConnection: close\r\n\r\n")
		if *client != c.want {
			t.Errorf("trusting %v, %q: client %q, want %q", c.trusted, c.header, *client, c.want)
		}
	}
}

// What a client says of its own address, in any header that some upstream believes, is forwarded from trusted proxies
// alone. What is about one connection, and "Proxy", which CGI takes for its own setting, is never forwarded, nor is a
// spelling that CGI takes for a field of the proxy's own.
func TestClientAddress_ClaimsAreForwardedFromTrustedProxiesAlone(t *testing.T) {
	claims := []string{"X-Real-IP", "X_Real_IP", "X-Client-IP", "X-Cluster-Client-IP", "True-Client-IP",
		"CF-Connecting-IP", "SCRIPT_NAME", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-User", "X-forwarded-",
		"Forwarded", "X-Shop-Client"}
	const never = "HTTP2-Settings: x\r\nProxy-Authorization: x\r\nProxy: x\r\nKeep-Alive: x\r\nTE: x\r\n" +
		"X_Forwarded_For: x\r\nx-forwarded_proto: x\r\nSluice_Sku: x\r\n"
	for _, trusted := range [][]netip.Prefix{nil, loopback} {
		to := &recorder{}
		o := options(to)
		o.ClientHeader, o.Trusted = "X-Shop-Client", trusted
		addr, _ := gateway(t, o)
		fields := never + strings.Join(claims, ": 6.6.6.6\r\n") + ": 6.6.6.6\r\nX-Other: y\r\n"
		talk(t, addr, "GET / HTTP/1.1\r\nHost: s\r\n"+fields+"\r\n")
		saw := strings.Join(to.all(), "")
		for _, name := range claims {
			if strings.Contains(saw, "\n"+name+": 6.6.6.6") != (trusted != nil) {
				t.Errorf("trusting %v: %s; the upstream saw %q", trusted, name, saw)
			}
		}
		if strings.Contains(saw, ": x\r") || !strings.Contains(saw, "X-Other: y") {
			t.Errorf("trusting %v: the upstream saw %q", trusted, saw)
		}
	}
}

func TestClientAddress_IsThatOfThePROXYHeaderOfATrustedPeer(t *testing.T) {
	const proxyHeader = "PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n"
	const raw = "GET / HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		start   string
		client  string // "" = the request is not served
		status  string // how the answer begins; "" = there is none
	}{
		"named":               {loopback, proxyHeader, "6.6.6.6", "HTTP/1.1 200"},
		"missing":             {loopback, "", "", ""},
		"untrusted":           {nil, proxyHeader, "", "HTTP/1.1 400"},
		"untrusted and plain": {nil, "", "127.0.0.1", "HTTP/1.1 200"},
	} {
		o := options(&recorder{})
		o.Trusted = c.trusted
		client := clientProbe(&o)
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		addr := serve(t, p, ServerOptions{ProxyProtocol: true, ReadHeaderTimeout: time.Minute})
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, c.start+raw)
		answer, _ := io.ReadAll(conn) // one without its PROXY header may be reset
		conn.Close()
		answered := strings.HasPrefix(string(answer), c.status) && (c.status == "") == (len(answer) == 0)
		if *client != c.client || !answered {
			t.Errorf("%s: client %q, want %q; answer %q", name, *client, c.client, answer)
		}
	}
}

func TestForwarded_SchemeIsThatOfTheClientsConnection(t *testing.T) {
	to := &recorder{}
	p, err := New(options(to))
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, p, ServerOptions{TLS: testkit.SelfSigned(t)})
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, pageRequest)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	told := strings.Contains(strings.Join(to.all(), ""), "X-Forwarded-Proto: https\r\n")
	if err != nil || resp.StatusCode != 200 || !told {
		t.Errorf("%v, %v, the upstream saw %q", resp, err, to.all())
	}
}
