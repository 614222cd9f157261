package upstream

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// aboutAs lasts for about half of within, for about all of it, or not at all.
func aboutAs(within time.Duration) {
	jitter := time.Duration(rand.IntN(2000)-1000) * time.Microsecond
	switch rand.IntN(3) {
	case 0:
		time.Sleep(within/2 + jitter) // a slow dial
	case 1:
		time.Sleep(within + jitter) // one that may be too slow
	}
}

// Orders and pages meet dials that are as slow as half of their time, which is when they take what others put back, or
// as all of it, in the handshake or before, and targets that are removed meanwhile: whatever comes first, each
// connection has one owner, and is counted once.
func TestPool_SlowDialsLeaveNoConnectionUncounted(t *testing.T) { dialSlowly(t, 8) }

func TestPool_ManySlowDialsLeaveNoConnectionUncounted(t *testing.T) {
	testkit.Nightly(t, "it takes ten times as long")
	dialSlowly(t, 80)
}

// dialSlowly has each of 16 clients send so many requests.
func dialSlowly(t *testing.T, requests int) {
	const within = 30 * time.Millisecond
	cert, roots := certificate(t)
	for scheme, serve := range map[string]func(v *visit){
		"http": func(v *visit) { moods(v, 20*time.Millisecond) },
		"https": func(v *visit) {
			aboutAs(within)
			c := tls.Server(v.Conn, &tls.Config{Certificates: []tls.Certificate{cert}})
			echo(&visit{Conn: c, r: bufio.NewReader(c), n: v.n, server: v.server, raw: v.raw, rand: v.rand})
		},
	} {
		t.Run(scheme, func(t *testing.T) {
			shops := [2]*rawServer{newRawServer(t, serve), newRawServer(t, serve)}
			urls := [2]string{scheme + "://" + shops[0].Addr().String(), scheme + "://" + shops[1].Addr().String()}
			o := options(urls[0])
			o.ConnectTimeout, o.ResponseTimeout, o.Timeout, o.MaxConns = within, 50*time.Millisecond, 200*time.Millisecond, 16
			if scheme == "https" {
				o.TLS = TLS{CA: roots, ServerName: "example.com"}
			} else {
				o.Wrap = func(c net.Conn) net.Conn { aboutAs(within); return c }
			}
			p := newPool(t, o)
			var crowd, all sync.WaitGroup
			var outcomes [NumOutcomes]atomic.Int64
			var over atomic.Bool
			targets := map[*target]bool{p.targets.Load().all[0]: true}
			all.Go(func() {
				for !over.Load() {
					time.Sleep(30 * time.Millisecond) // so that requests meet each target
					if err := replace(p, urls[rand.IntN(2):][:1]); err != nil {
						t.Error(err)
					}
					targets[p.targets.Load().all[0]] = true
				}
			})
			for w := range 16 {
				crowd.Go(func() {
					for i := range requests {
						target := fmt.Sprintf("/%d/%d", w, i)
						out, resp := newOrder("POST", target), new(fasthttp.Response)
						out.Order = w%2 == 0
						outcome := p.Send(out, resp)
						outcomes[outcome].Add(1)
						if outcome == Answered && string(resp.Body()) != target {
							t.Errorf("%s got %q", target, resp.Body())
						}
						if n := shops[0].count(target) + shops[1].count(target); n > 1 || n > 0 && outcome == NotSent {
							t.Errorf("%s came %d times; outcome %v", target, n, outcome)
						}
						resp.CloseBodyStream()
					}
				})
			}
			crowd.Wait()
			over.Store(true)
			all.Wait()
			for one := range targets {
				testkit.Eventually(t, "dials that were left have ended, and all is counted back", func() bool {
					one.mu.Lock()
					defer one.mu.Unlock()
					return one.open == len(one.idle) && one.orders == 0 && one.pages == 0 && len(one.waiting) == 0 &&
						one.counters.inFlight.Load() == 0
				})
			}
			t.Logf("%d not sent, %d answered", outcomes[NotSent].Load(), outcomes[Answered].Load()) // a slow machine is no fault
		})
	}
}
