package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// fewer is a limit of open connections.
type fewer struct {
	mu   sync.Mutex
	left int
}

func (f *fewer) Open(netip.Addr, bool) Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return IPConns
	}
	f.left--
	return Admitted
}

func (f *fewer) Close(netip.Addr, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left++
}

func newProxy(t *testing.T, o Options) *Proxy {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConnectionOverTheLimitHearsAWholeRefusalAndIsClosed(t *testing.T) {
	limit := &fewer{left: 1}
	addr := serve(t, newProxy(t, options(&seen{})), ServerOptions{Connections: limit})
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(first, order)
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		resp, body := talk(t, addr, order)
		if resp.StatusCode != 429 || resp.Header.Get("X-Sluice-Reason") != "ip_conns" || !resp.Close || !strings.Contains(body, "ip_conns") {
			t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
		}
	}
	first.Close()
	for range 100 { // the place is free once the gate has seen the end
		if resp, _ := talk(t, addr, order); resp.StatusCode == 200 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a closed connection still counts")
}

func TestBodyIsAskedForOnlyAfterAdmission(t *testing.T) {
	o := options(&seen{})
	o.Stock.(*shelf).closed["gone"] = SoldOut
	addr, _ := gate(t, o)
	head := "POST /api/seckill/%s/order HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	for sku, want := range map[string]string{"gone": "HTTP/1.1 409", "1001": "HTTP/1.1 100"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, head, sku)
		br := bufio.NewReader(c)
		line, err := br.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s: %q, %v; want %s", sku, line, err, want)
		}
		if sku == "gone" {
			continue
		}
		io.WriteString(c, "hi")
		br.ReadString('\n') // the empty line
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("after the body: %v, %v", resp, err)
		}
	}
}

func dial(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestForwardedAddressCountsFromTrustedProxiesAlone(t *testing.T) {
	for _, tt := range []struct {
		trusted, header, want string
	}{
		{"", "X-Forwarded-For: 6.6.6.6", "127.0.0.1"},
		{"127.0.0.0/8", "X-Forwarded-For: 6.6.6.6", "6.6.6.6"},
		{"127.0.0.0/8", "X-Forwarded-For: 1.1.1.1, 6.6.6.6:1234", "6.6.6.6"},
		{"127.0.0.0/8", "X-Forwarded-For: 6.6.6.6, 127.0.0.9", "6.6.6.6"},
		{"127.0.0.0/8", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 127.0.0.9", "6.6.6.6"},
		{"127.0.0.0/8", "X-Forwarded-For: 6.6.6.6, nonsense", "127.0.0.1"},
		{"127.0.0.0/8", "X-Forwarded-For: [2001:db8::1]:80", "2001:db8::1"},
		{"127.0.0.0/8", "X-Forwarded-For: ::ffff:6.6.6.6", "6.6.6.6"},
		{"127.0.0.0/8", "X-Forwarded-For: 127.0.0.2, 127.0.0.3", "127.0.0.2"},
		{"127.0.0.0/8", "A: b", "127.0.0.1"},
	} {
		var got string
		o := options(&seen{})
		o.Routes = []Route{{Name: "x", Match: "/", Gate: Limit, SKU: "$remote_addr"}}
		o.Windows = windowsFunc(func(_ int64, sku []byte) (time.Duration, bool) { got = string(sku); return 0, true })
		if tt.trusted != "" {
			o.Trusted = []netip.Prefix{netip.MustParsePrefix(tt.trusted)}
		}
		addr, _ := gate(t, o)
		talk(t, addr, "GET / HTTP/1.1\r\nHost: s\r\n"+tt.header+"\r\nConnection: close\r\n\r\n")
		if got != tt.want {
			t.Errorf("trusting %q, %q: client %q, want %q", tt.trusted, tt.header, got, tt.want)
		}
	}
}

// What a client says of its own address, in whichever header some shop believes it, reaches the shop from trusted
// proxies alone; what is about one connection, and "Proxy", which CGI takes for its own setting, never does.
func TestNobodySpeaksOfHisOwnAddress(t *testing.T) {
	spoken := []string{"X-Real-IP", "X-Client-IP", "X-Cluster-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-Forwarded-Port", "X-Forwarded-Prefix",
		"X-Forwarded-User", "X-forwarded-", "Forwarded", "X-Shop-Client"}
	const never = "HTTP2-Settings: x\r\nProxy-Authorization: x\r\nProxy: x\r\nKeep-Alive: x\r\nTE: x\r\n"
	for _, trusted := range []bool{false, true} {
		shop := &seen{}
		o := options(shop)
		o.ClientHeader = "X-Shop-Client"
		if trusted {
			o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		addr, _ := gate(t, o)
		talk(t, addr, "GET / HTTP/1.1\r\nHost: s\r\n"+never+strings.Join(spoken, ": 6.6.6.6\r\n")+": 6.6.6.6\r\nX-Other: y\r\n\r\n")
		saw := strings.Join(shop.all(), "")
		for _, name := range spoken {
			if strings.Contains(saw, "\n"+name+": 6.6.6.6") != trusted {
				t.Errorf("trusted %v: %s; shop saw %q", trusted, name, saw)
			}
		}
		if strings.Contains(saw, ": x\r") || !strings.Contains(saw, "X-Other: y") {
			t.Errorf("shop saw %q", saw)
		}
	}
}

func TestTLSShopperIsToldToTheShop(t *testing.T) {
	shop := &seen{}
	addr := serve(t, newProxy(t, options(shop)), ServerOptions{TLS: selfSigned(t)})
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, order)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(strings.Join(shop.all(), ""), "X-Forwarded-Proto: https\r\n") {
		t.Errorf("%v, %v, shop saw %q", resp, err, shop.all())
	}
}

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"shop"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func TestHeadAndBodyThatDawdleAreToldTooSlow(t *testing.T) {
	for _, part := range []string{"GET / HT", strings.TrimSuffix(order, "i")} {
		p := newProxy(t, options(&seen{}))
		addr := serve(t, p, ServerOptions{IdleTimeout: time.Minute, ReadHeaderTimeout: 50 * time.Millisecond, ReadTimeout: 50 * time.Millisecond})
		if resp, body := talk(t, addr, part); resp.StatusCode != 408 || !resp.Close {
			t.Errorf("%q: %d %q", part, resp.StatusCode, body)
		}
	}
}
