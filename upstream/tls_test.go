package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// tlsServer is net/http's server, whose certificate is for example.com.
func tlsServer(t *testing.T, tune func(s *httptest.Server)) (*httptest.Server, *x509.CertPool) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Sni", r.TLS.ServerName)
		fmt.Fprintf(w, "%s %s %d", r.Proto, r.URL.Path, len(body))
	}))
	tune(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

func TestTransport_TLSConnectionIsVerifiedAndReused(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, roots := tlsServer(t, func(s *httptest.Server) {
			s.TLS = &tls.Config{MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}}
		})
		o := options(server.URL)
		o.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
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

		o.TLS = nil // the system's roots do not know this server
		if outcome, _ := sendOrder(newPool(t, o), "POST", "/"); outcome != NotSent {
			t.Errorf("unknown authority: outcome %d", outcome)
		}
		o.TLS = &tls.Config{RootCAs: roots, ServerName: "other.example"}
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
			o.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
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

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates[0], roots
}
