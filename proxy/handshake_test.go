package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// slowLine is a connection over which each message takes longer than a connection waits before it is parked.
type slowLine struct{ net.Conn }

func (s slowLine) Write(p []byte) (int, error) {
	time.Sleep(2 * parkAfter)
	return s.Conn.Write(p)
}

func TestHandshakeOverASlowLineSucceeds(t *testing.T) {
	addr := serve(t, newProxy(t, options(&seen{})), ServerOptions{TLS: selfSigned(t), ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute})
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	c := tls.Client(slowLine{raw}, &tls.Config{InsecureSkipVerify: true})
	fmt.Fprint(c, order)
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestHandshakeThatDawdlesIsCutOff(t *testing.T) {
	addr := serve(t, newProxy(t, options(&seen{})), ServerOptions{TLS: selfSigned(t), ReadHeaderTimeout: 50 * time.Millisecond, IdleTimeout: time.Hour})
	for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, said)
		for err == nil { // an alert may come before the end
			_, err = c.Read(make([]byte, 64))
		}
		c.Close()
	}
}
