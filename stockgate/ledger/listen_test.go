package ledger

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// tlsFront speaks TLS before a Redis, until it goes away: then it ends every connection, and no handshake succeeds.
type tlsFront struct {
	net.Listener
	to    string
	away  atomic.Bool
	tried atomic.Int64 // handshakes since then
	mu    sync.Mutex
	all   []net.Conn
}

func openTLSFront(t *testing.T, to string) *tlsFront {
	h := httptest.NewTLSServer(http.NotFoundHandler())
	defer h.Close()
	f := &tlsFront{to: to}
	c := &tls.Config{Certificates: h.TLS.Certificates, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if f.away.Load() {
			f.tried.Add(1)
			return nil, errors.New("away")
		}
		return nil, nil //nolint:nilnil // the configuration as it is
	}}
	f.Listener = testkit.Must[net.Listener](t)(tls.Listen("tcp", "127.0.0.1:0", c))
	t.Cleanup(func() { f.Close(); f.leave() })
	go func() {
		for {
			in, err := f.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", f.to)
			if err != nil {
				in.Close()
				continue
			}
			f.mu.Lock()
			f.all = append(f.all, in, out)
			f.mu.Unlock()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
		}
	}()
	return f
}

func (f *tlsFront) leave() {
	f.away.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.all {
		c.Close()
	}
}

// A Redis that is reached by TLS is away for a moment, and the listener ends, as at a stop.
func TestListen_EndsWhileARedisBehindTLSIsAway(t *testing.T) {
	r := redistest.Start(t)
	front := openTLSFront(t, r.Addr)
	o := optionsFor(r, 2)
	o.Addresses = []string{front.Addr().String()}
	o.TLS = &tls.Config{InsecureSkipVerify: true}
	o.BreakerPause = time.Millisecond
	s := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { s.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var began atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Listen(ctx, func(string, StockVersion) {}, func() { began.Store(true) })
	}()
	testkit.Eventually(t, "it listens", began.Load)
	front.leave()
	testkit.Eventually(t, "it has tried again", func() bool { return front.tried.Load() > 2 })
	cancel()
	<-ended
}
