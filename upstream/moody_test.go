package upstream

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// moody is an upstream of every mood: early, late, in pieces, closing and resetting at any moment, writing unasked.
func moody(v *visit) { moods(v, 60*time.Millisecond) }

func moods(v *visit, late time.Duration) {
	for {
		if endsAtRandom(v, 60) {
			return
		}
		head, _, err := v.request()
		if err != nil {
			return
		}
		target := targetOf(head)
		switch v.rand.IntN(40) {
		case 0:
			v.reset()
			return
		case 1:
			return
		case 2:
			time.Sleep(late) // the model is slow at random
		case 3:
			v.reply("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + target)
			return
		case 4:
			v.reply(ok(target) + ok("surplus"))
			v.waitClosed()
			return
		case 5:
			v.reply("HTTP/1.1 200 OK\r\n\r\n" + target)
			return
		}
		v.replyInPieces(moodyResponse(v, target))
		if endsAtRandom(v, 30) {
			return
		}
	}
}

func endsAtRandom(v *visit, one int) bool {
	switch v.rand.IntN(one) {
	case 0:
		v.reset()
		return true
	case 1:
		return true
	case 2:
		time.Sleep(time.Duration(v.rand.IntN(2000)) * time.Microsecond) // it ends at any moment
		return true
	}
	return false
}

func moodyResponse(v *visit, target string) string {
	response := ok(target)
	switch v.rand.IntN(5) {
	case 0:
		response = fmt.Sprintf(chunkedHead+"%x\r\n%s\r\n0\r\n\r\n", len(target), target)
	case 1:
		pad := strings.Repeat("X-Pad: "+strings.Repeat("p", 500)+"\r\n", v.rand.IntN(20))
		response = strings.Replace(response, "\r\n", "\r\n"+pad, 1)
	}
	if v.rand.IntN(3) == 0 {
		response = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + response
	}
	return response
}

func (v *visit) replyInPieces(s string) {
	for len(s) > 0 {
		n := len(s)
		if v.rand.IntN(3) == 0 {
			n = 1 + v.rand.IntN(n)
		}
		v.reply(s[:n])
		if s = s[n:]; v.rand.IntN(5) == 0 {
			time.Sleep(time.Duration(v.rand.IntN(800)) * time.Microsecond) // a piece of its own
		}
	}
}

// An upstream that closes just as orders arrive cannot be told from one that has accepted them. Some outcomes are
// unknown then, but no order comes twice, each response goes to its own request, and every connection is given back.
func TestTransport_MoodyUpstreamNeverReadsAnOrderTwice(t *testing.T) {
	for name, wrapper := range map[string]func(net.Conn) net.Conn{"tcp": nil, "wrapped": wrap} {
		t.Run(name, func(t *testing.T) {
			servers := [2]*rawServer{newRawServer(t, moody), newRawServer(t, moody)}
			o := options(servers[0].url(), servers[1].url())
			o.ResponseTimeout, o.Timeout, o.Wrap = 50*time.Millisecond, 200*time.Millisecond, wrapper
			p := newPool(t, o)
			var all sync.WaitGroup
			var outcomes [NumOutcomes]atomic.Int64
			for w := range 12 {
				all.Go(func() {
					for i := range 60 {
						target := fmt.Sprintf("/%d/%d", w, i)
						outcome, body := sendAndRead(p, moodyRequest(i, target))
						outcomes[outcome].Add(1)
						n := servers[0].count(target) + servers[1].count(target)
						switch {
						case n > 1:
							t.Errorf("%s came %d times", target, n)
						case outcome == Answered && body != target:
							t.Errorf("%s got %q", target, body)
						case outcome == NotSent && n != 0:
							t.Errorf("%s came, and is reported as not sent", target)
						}
					}
				})
			}
			all.Wait()
			if outcomes[Answered].Load() == 0 || outcomes[Broken].Load() == 0 {
				t.Errorf("the upstreams were of one mood: %v", &outcomes)
			}
			for _, st := range p.Targets() {
				if st.InFlight != 0 || st.Open != st.Idle {
					t.Errorf("%+v", st)
				}
			}
		})
	}
}

// moodyRequest is the i-th request: of any method, with a body of any size, order or page.
func moodyRequest(i int, target string) *Request {
	switch size := []int{2, 3000, 100_000}[i%3]; i % 4 {
	case 0:
		return newPage(target)
	case 1:
		r := newRequest("POST", target)
		r.Whole = false
		return r.withStream(io.LimitReader(zeros{}, int64(size)), -1)
	default:
		r := newRequest([]string{"POST", "PUT", "PATCH", "DELETE"}[i%4], target)
		r.Order, r.Whole = false, i%2 == 0
		return r.withBody(make([]byte, size))
	}
}
