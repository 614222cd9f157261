package server

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// slowLine is a connection over which each message takes a while.
type slowLine struct{ net.Conn }

func (s slowLine) Write(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond) // longer than IdleTimeout
	return s.Conn.Write(p)
}

func TestHandshake_OverASlowLineSucceeds(t *testing.T) {
	o := long
	o.TLS, o.IdleTimeout = testkit.SelfSigned(t), 10*time.Millisecond
	_, addr := engine(hidden).start(t, &handler{}, o)
	raw := connect(t, addr)
	c := clientOf(t, tls.Client(slowLine{raw.Conn}, &tls.Config{InsecureSkipVerify: true}))
	c.send(get())
	c.expect(200, "GET /a ")
}

func TestHandshake_ThatIsSlowIsCutOff(t *testing.T) {
	h := &handler{}
	o := Options{TLS: testkit.SelfSigned(t), ReadHeaderTimeout: 50 * time.Millisecond, IdleTimeout: time.Hour}
	_, addr := engine(hidden).start(t, h, o)
	for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
		c := connect(t, addr)
		c.send(said)
		var err error
		for err == nil { // an alert may come before the end
			_, err = c.Read(make([]byte, 64))
		}
	}
	testkit.Eventually(t, "both are closed", func() bool { return h.closed.Load() == 2 })
}
