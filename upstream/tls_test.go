package upstream

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// tlsServer is net/http's server, whose certificate is for example.com.
func tlsServer(t *testing.T, tune func(s *httptest.Server)) (*httptest.Server, string) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Sni", r.TLS.ServerName)
		fmt.Fprintf(w, "%s %s %d", r.Proto, r.URL.Path, len(body))
	}))
	tune(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, pemOf(s)
}

func TestTransport_TLSConnectionIsVerifiedAndReused(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, roots := tlsServer(t, func(s *httptest.Server) {
			s.TLS = &tls.Config{MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}}
		})
		o := options(server.URL)
		o.TLS = TLS{CA: roots, ServerName: "example.com"}
		p := newPool(t, o)
		for i := range 3 {
			outcome, resp := sendOrder(p, "POST", fmt.Sprintf("/%d", i))
			if want := fmt.Sprintf("HTTP/1.1 /%d 2", i); outcome != Answered || string(resp.Body()) != want {
				t.Fatalf("outcome %d, body %q, want %q", outcome, resp.Body(), want)
			}
			if sni := string(resp.Header.Peek("X-Sni")); sni != "example.com" {
				t.Errorf("server name %q", sni)
			}
		}
		if st := p.Targets()[0]; st.Open != 1 {
			t.Errorf("connection was not reused: %+v", st)
		}
		big := newRequest("POST", "/big").withBody(make([]byte, 1000000))
		resp := new(fasthttp.Response)
		if o := p.Send(big, resp); o != Answered || !strings.HasSuffix(string(resp.Body()), " 1000000") {
			t.Errorf("large body: outcome %d, %q", o, resp.Body())
		}

		o.TLS = TLS{} // the system's roots do not know this server
		if outcome, _ := sendOrder(newPool(t, o), "POST", "/"); outcome != NotSent {
			t.Errorf("unknown authority: outcome %d", outcome)
		}
		o.TLS = TLS{CA: roots, ServerName: "other.example"}
		if outcome, _ := sendOrder(newPool(t, o), "POST", "/"); outcome != NotSent {
			t.Errorf("wrong name: outcome %d", outcome)
		}
	}
}

// Under TLS what the server said too much may be hidden in the TLS layer, whole or cut.
func TestTransport_TLSSurplusReachesNoRequest(t *testing.T) {
	cert, roots := certificate(t)
	for name, poison := range map[string]func(c *tls.Conn, raw net.Conn){
		"same record":  func(c *tls.Conn, _ net.Conn) { io.WriteString(c, ok("first")+evil) },
		"next record":  func(c *tls.Conn, _ net.Conn) { twoRecords(c, ok("first"), evil, 0) },
		"cut record":   func(c *tls.Conn, _ net.Conn) { twoRecords(c, ok("first"), evil, 10) },
		"cut header":   func(c *tls.Conn, _ net.Conn) { twoRecords(c, ok("first"), evil, len(evil)+40) },
		"close notify": func(c *tls.Conn, _ net.Conn) { io.WriteString(c, ok("first")); c.CloseWrite() },
		"plain bytes":  func(c *tls.Conn, raw net.Conn) { io.WriteString(c, ok("first")); io.WriteString(raw, evil) },
	} {
		t.Run(name, func(t *testing.T) {
			poisoned := make(chan struct{}, 1)
			server := newRawServer(t, func(v *visit) {
				raw := &joined{Conn: v.Conn}
				c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
				v.Conn, v.r = c, bufio.NewReader(c)
				if v.n > 0 {
					echo(v)
					return
				}
				v.request()
				poison(c, raw)
				poisoned <- struct{}{}
				v.waitClosed()
			})
			o := options("https://" + server.Addr().String())
			o.TLS = TLS{CA: roots, ServerName: "example.com"}
			p := newPool(t, o)
			if outcome, resp := sendOrder(p, "POST", "/first"); outcome != Answered || string(resp.Body()) != "first" {
				t.Fatalf("outcome %d, body %q", outcome, resp.Body())
			}
			<-poisoned
			mustAnswer(t, p, "/victim")
		})
	}
}

// joined is a connection that can collect writes, and leave out the end of them.
type joined struct {
	net.Conn
	collect bool
	held    []byte
}

func (j *joined) Write(p []byte) (int, error) {
	if j.collect {
		j.held = append(j.held, p...)
		return len(p), nil
	}
	return j.Conn.Write(p)
}

// twoRecords writes two TLS records in one packet, without the last cut bytes.
func twoRecords(c *tls.Conn, a, b string, cut int) {
	j := c.NetConn().(*joined)
	j.collect = true
	io.WriteString(c, a)
	first := len(j.held)
	io.WriteString(c, b)
	j.collect = false
	end := max(len(j.held)-cut, first+3) // at least a part of the second one's header
	j.Conn.Write(j.held[:end])
}

func certificate(t *testing.T) (tls.Certificate, string) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0], pemOf(s)
}

// pemOf is the certificate of s, which is its own CA.
func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// What is wrong with TLS is logged with its way out, counted by cause, and shown as the target's state.
func TestTarget_TLSFaultIsNamed(t *testing.T) {
	server, roots := tlsServer(t, func(*httptest.Server) {})
	plain := httptest.NewServer(nil)
	defer plain.Close()
	old := expiredServer(t)
	right := TLS{CA: roots, ServerName: "example.com"}
	for name, c := range map[string]struct {
		url        string
		tls        TLS
		cause, fix string // of the fault; "" = there is none
	}{
		"good CA":       {server.URL, right, "", ""},
		"unknown CA":    {server.URL, TLS{ServerName: "example.com"}, "certificate", "upstream.tls.ca_file"},
		"wrong name":    {server.URL, TLS{CA: roots, ServerName: "other.example"}, "certificate", "upstream.tls.server_name"},
		"expired":       {old.URL, TLS{CA: pemOf(old), ServerName: "example.com"}, "certificate", "renew the certificate"},
		"speaks no TLS": {strings.Replace(plain.URL, "http:", "https:", 1), right, "tls", "write http://"},
	} {
		var log bytes.Buffer
		o := options(c.url)
		o.TLS, o.Logger = c.tls, slog.New(slog.NewTextHandler(&log, nil))
		p := newPool(t, o)
		outcome, _ := sendOrder(p, "GET", "/")
		state, text := p.Targets()[0].Fault, log.String()
		if c.cause == "" {
			if outcome != Answered || state != "" || text != "" {
				t.Errorf("%s: outcome %v, fault %q, log %q", name, outcome, state, text)
			}
			continue
		}
		if outcome != NotSent || !strings.Contains(state, c.fix) || !strings.Contains(text, c.fix) {
			t.Errorf("%s: outcome %v, fault %q, log %q", name, outcome, state, text)
		}
		count := fmt.Sprintf(`sluice_upstream_connect_errors_total{cause=%q,target=%q} 1`, c.cause, c.url)
		if !strings.Contains(testkit.Scrape(t, p), count) {
			t.Errorf("%s: no %s", name, count)
		}
		_, _ = sendOrder(p, "GET", "/")
		if n := strings.Count(log.String(), "cannot connect"); n != 1 {
			t.Errorf("%s: logged %d times", name, n)
		}
	}
}

// An http:// target whose port wants TLS may answer with an alert alone.
func TestTarget_PlainRequestToTLSPortIsNamed(t *testing.T) {
	server := newRawServer(t, func(c *visit) {
		_, _ = c.Read(make([]byte, 1000))
		_, _ = c.Write([]byte{21, 3, 1, 0, 2, 2, 70})
		c.Close()
	})
	var log bytes.Buffer
	o := options(server.url())
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	outcome, _ := sendOrder(newPool(t, o), "GET", "/")
	if outcome != Broken || !strings.Contains(log.String(), "write https:// in upstream.targets") {
		t.Errorf("outcome %v, log %q", outcome, log.String())
	}
}

// expiredServer has a certificate for example.com that has expired.
func expiredServer(t *testing.T) *httptest.Server {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server, _ := tlsServer(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	})
	return server
}

// Options that change are those of the next exchange; connections stay unless they were verified by other rules.
func TestPool_ReconfigureChangesWhatIsInForce(t *testing.T) {
	server, roots := tlsServer(t, func(*httptest.Server) {})
	o := options(server.URL)
	o.TLS = TLS{CA: roots, ServerName: "example.com"}
	p := newPool(t, o)
	serves(t, p)
	o.MaxConns, o.ResponseTimeout, o.Policy = 7, time.Second, "first"
	if err := reconfigure(p, o); err != nil {
		t.Fatal(err)
	}
	target := p.targets.Load().all[0]
	if s := target.settings.Load(); s.maxConns != 7 || s.response != time.Second || p.Targets()[0].Idle != 1 {
		t.Errorf("in force: %+v, %+v", s, p.Targets()[0])
	}
	o.TLS.ServerName = "other.example"
	if err := reconfigure(p, o); err != nil || p.Targets()[0].Idle != 0 {
		t.Errorf("a connection by the rules before stays: %v, %+v", err, p.Targets()[0])
	}
	if outcome, _ := sendOrder(p, "GET", "/2"); outcome != NotSent {
		t.Errorf("the new rules do not hold: %v", outcome)
	}
	o.TLS = TLS{CA: "nonsense"}
	if err := reconfigure(p, o); err == nil {
		t.Error("a CA without a certificate was taken")
	}
	o.TLS, o.Health = TLS{CA: roots, ServerName: "example.com"}, Health{Path: "/", Interval: time.Millisecond,
		Timeout: time.Nanosecond, Fails: 1, Passes: 1}
	if err := reconfigure(p, o); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the check fails", func() bool { return !p.Targets()[0].Healthy })
	o.Health = Health{}
	if err := reconfigure(p, o); err != nil || !p.Targets()[0].Healthy {
		t.Errorf("without checks the target is down: %v", err)
	}
	serves(t, p)
}

func serves(t *testing.T, p *Pool) {
	t.Helper()
	if outcome, _ := sendOrder(p, "GET", "/"); outcome != Answered {
		t.Errorf("outcome %v, want Answered", outcome)
	}
}
