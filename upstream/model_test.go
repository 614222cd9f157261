package upstream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// moody is a shop of every mood: early, late, in pieces, closing and resetting at any moment, speaking without being asked.
func moody(v *visit) { moods(v, 60*time.Millisecond) }

func moods(v *visit, late time.Duration) {
	for {
		switch rand.IntN(60) {
		case 0:
			v.reset()
			return
		case 1:
			return
		case 2:
			time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			return
		}
		head, _, err := v.request()
		if err != nil {
			return
		}
		target := targetOf(head)
		switch rand.IntN(40) {
		case 0:
			v.reset()
			return
		case 1:
			return
		case 2:
			time.Sleep(late)
		case 3:
			v.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + target)
			return
		}
		answer := ok(target)
		switch rand.IntN(5) {
		case 0:
			answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(target), target)
		case 1:
			pad := strings.Repeat("X-Pad: "+strings.Repeat("p", 500)+"\r\n", rand.IntN(20))
			answer = strings.Replace(answer, "\r\n", "\r\n"+pad, 1)
		}
		for range rand.IntN(3) {
			if rand.IntN(3) == 0 {
				answer = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer
			}
		}
		for len(answer) > 0 {
			n := len(answer)
			if rand.IntN(3) == 0 {
				n = 1 + rand.IntN(n)
			}
			v.say(answer[:n])
			if answer = answer[n:]; rand.IntN(5) == 0 {
				time.Sleep(time.Duration(rand.IntN(800)) * time.Microsecond)
			}
		}
		switch rand.IntN(30) {
		case 0:
			v.reset()
			return
		case 1:
			return
		case 2:
			time.Sleep(2 * time.Millisecond)
			v.reset()
			return
		}
	}
}

func TestMoodyShopNeverSeesAnOrderTwiceAndAnswersItsOwn(t *testing.T) {
	shop := newRawShop(t, moody)
	o := options(shop.url())
	o.ResponseTimeout, o.Timeout = 50*time.Millisecond, 200*time.Millisecond
	p := newPool(t, o)
	var all sync.WaitGroup
	var outcomes [4]atomic.Int64
	for w := range 12 {
		all.Go(func() {
			for i := range 100 {
				target := fmt.Sprintf("/%d/%d", w, i)
				out := orderFor("POST", target)
				if size := rand.IntN(4); size > 1 {
					out.Body = []byte(strings.Repeat("b", []int{1, 1, 3000, 100_000}[size]))
					out.Fields = fmt.Appendf(nil, "Content-Length: %d\r\n", len(out.Body))
				}
				resp := new(fasthttp.Response)
				outcome := p.Send(out, resp)
				outcomes[outcome].Add(1)
				var body string
				if outcome == proxy.Answered {
					body = string(resp.Body())
				}
				if outcome == proxy.Answered && body != target {
					t.Errorf("%s got %q", target, body)
				}
				if outcome == proxy.NotSent && shop.count(target) != 0 {
					t.Errorf("%s came, and is reported as not sent", target)
				}
				if n := shop.count(target); n > 1 {
					t.Errorf("%s came %d times", target, n)
				}
				resp.CloseBodyStream()
			}
		})
	}
	all.Wait()
	if outcomes[proxy.Answered].Load() == 0 || outcomes[proxy.Broken].Load() == 0 {
		t.Errorf("the shop was of one mood: %v", &outcomes)
	}
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle {
		t.Errorf("%+v", st)
	}
}
