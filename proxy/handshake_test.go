package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// dawdler sends each flight of a handshake later than a connection is parked: a shopper far away, on a telephone.
type dawdler struct {
	net.Conn
	left int
}

func (d *dawdler) Write(p []byte) (int, error) {
	if d.left > 0 {
		d.left--
		time.Sleep(2 * parkAfter)
	}
	return d.Conn.Write(p)
}

func TestSlowTLSShopperIsServed(t *testing.T) {
	addr := serve(t, newProxy(t, options(&seen{})), ServerOptions{TLS: selfSigned(t), ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		raw, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		c := tls.Client(&dawdler{raw, 3}, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if _, err := io.WriteString(c, order); err != nil {
			t.Errorf("%s: %v", tls.VersionName(version), err)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %v, %v", tls.VersionName(version), resp, err)
		}
	}
}

// A connection that never shakes hands is ended, and waited for by nobody.
func TestHandshakeHasItsTime(t *testing.T) {
	addr := serve(t, newProxy(t, options(&seen{})), ServerOptions{TLS: selfSigned(t), ReadHeaderTimeout: 50 * time.Millisecond, IdleTimeout: time.Minute})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("%d bytes, %v: want the connection closed", n, err)
	}
}
