package server

import (
	"io"
	"net"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// brokenBody is a body stream that breaks off.
type brokenBody struct{}

func (brokenBody) Read(p []byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A complete answer that is still on its way is not lost when that to a later request breaks off, however many requests
// have come behind it.
func TestServer_CompleteAnswerIsNotResetAwayByALaterOne(t *testing.T) {
	const size = 100_000 // less than maxUnsent
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{handle: func(x *served) {
			if string(x.Request.Path) == "/whole" {
				x.Forwarded.SetBodyString(strings.Repeat("w", size))
			} else {
				x.Forwarded.SetBodyStream(brokenBody{}, -1)
			}
		}}
		s, addr := e.start(t, h, long)
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_ = nc.(*net.TCPConn).SetReadBuffer(4 << 10) // most of the answer waits at the server's side
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(nc, "GET /whole HTTP/1.1\r\nHost: s\r\n\r\nGET /broken HTTP/1.1\r\nHost: s\r\n\r\n"+
				strings.Repeat("GET /more HTTP/1.1\r\nHost: s\r\n\r\n", 20_000))
			sent <- err
		}()
		if err := <-sent; err != nil { // the server reads what it does not answer
			t.Fatal(err)
		}
		testkit.Eventually(t, "the server lingers", func() bool { return s.inPhase(phaseLingering) == 1 })
		got, err := io.ReadAll(nc)
		if n := strings.Count(string(got), "w"); n != size || err != nil {
			t.Errorf("%d bytes of the complete answer, %v", n, err)
		}
	})
}
