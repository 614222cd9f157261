package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// The gate ends a connection with an answer at a drain, and with the last of max_requests. Who has sent on behind that request, or does
// before he has read to the end, gets the answer whole on each kind of connection, whenever his bytes come: closing over what was not
// read would reset it away (RFC 9112, section 9.6).
func TestWhatComesBehindTheLastRequestResetsNoAnswerAway(t *testing.T) {
	const next, size = "GET /2 HTTP/1.1\r\nHost: s\r\n\r\n", 300_000
	for name, dial := range map[string]func(addr string) (net.Conn, error){
		"plain": func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) },
		"TLS": func(addr string) (net.Conn, error) {
			return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		},
		"PROXY protocol": func(addr string) (net.Conn, error) {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				_, err = io.WriteString(c, "PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n")
			}
			return c, err
		},
	} {
		for _, ending := range []string{"drain", "max_requests"} {
			t.Run(name+" "+ending, func(t *testing.T) {
				asked, say := make(chan bool), make(chan bool)
				o := options(shopFunc(func(_ *Outgoing, resp *fasthttp.Response) Outcome {
					asked <- true
					<-say
					resp.SetBodyString(strings.Repeat("x", size))
					return Answered
				}))
				so := ServerOptions{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, WriteTimeout: time.Minute}
				switch name {
				case "TLS":
					so.TLS = selfSigned(t)
				case "PROXY protocol":
					so.ProxyProtocol = true
					o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				}
				if ending == "max_requests" {
					o.MaxRequests = 1
				}
				s, addr := serveWith(t, newProxy(t, o), so)
				if ending == "drain" {
					s.Announce()
				}
				for i := range 12 {
					c, err := dial(addr)
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					_ = c.SetDeadline(time.Now().Add(time.Minute))
					if tcp, plain := c.(*net.TCPConn); plain {
						_ = tcp.SetReadBuffer(32 << 10) // most of the answer waits at the gate's side
					}
					_, _ = io.WriteString(c, "GET /1 HTTP/1.1\r\nHost: s\r\n\r\n")
					<-asked
					if i%2 == 0 {
						_, _ = io.WriteString(c, next)
						time.Sleep(2 * time.Millisecond)
					}
					say <- true
					in := bufio.NewReader(c)
					resp, err := http.ReadResponse(in, nil)
					if err != nil || !resp.Close {
						t.Fatalf("connection %d: %v", i, err)
					}
					if i%2 == 1 {
						time.Sleep(2 * time.Millisecond)
						_, _ = io.WriteString(c, next)
					}
					if got, err := io.ReadAll(resp.Body); err != nil || len(got) != size {
						t.Errorf("connection %d: %d bytes: %v", i, len(got), err)
					}
				}
			})
		}
	}
}
