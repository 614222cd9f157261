//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// All who wait for news of the room hear the end as news: none of them has to ask again for it. SLUICE_PARKED=15000 has
// so many wait; the log tells what they cost, and how long the news takes.
func TestRoom_AllWhoWaitForNewsHearTheEnd(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	t.Parallel()
	n := 200
	if many, err := strconv.Atoi(os.Getenv("SLUICE_PARKED")); err == nil {
		n = many
	}
	begins := time.Now().Add(30 * time.Minute)
	gates, _ := roomGatesOn(t, redistest.Start(t), 1, begins, "", fmt.Sprint("max_parked = ", n))
	g := gates[0]
	soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
	buyers, empty := crowdJoins(t, gates, 20), g.resident()
	waiters := make([]*waiter, n)
	atATime(n, func(i int) {
		waiters[i] = &waiter{t: t, g: g, user: fmt.Sprint("waits", i), from: net.IPv4(127, 0, 2, byte(1+i%200))}
		waiters[i].ask("POST", "/join", "")
	})
	beginsAt(t, gates, begins, time.Now().Add(300*time.Millisecond))
	soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Serving > 0 })
	atATime(n, func(i int) { waiters[i].ask("GET", "/me", "") })

	connected := g.resident()
	var waits sync.WaitGroup
	for _, w := range waiters {
		waits.Go(func() { w.hearsTheEnd() })
	}
	soon(t, "all are parked", func() bool { return g.metric("sluice_room_parked", "room", "rush") == float64(n) })
	parked := g.resident()
	t.Logf("%d clients: %.1f KiB each with their connections; that they wait takes %.1f KiB of it", n,
		float64(parked-empty)/float64(n), float64(parked-connected)/float64(n))
	if most := 20<<10 + 5*n; parked-connected > most { // KiB
		t.Errorf("%d clients that wait take %d KiB", n, parked-connected)
	}
	for _, p := range buyers[:10] {
		p.claims(t, g)
		if status, reason := p.order(t, g); status != 200 {
			t.Errorf("number %d orders: %d %s", p.number, status, reason)
		}
	}
	over := time.Now().UnixMilli()
	waits.Wait()
	var took []int64
	for _, w := range waiters {
		took = append(took, w.heard-over)
	}
	slices.Sort(took)
	t.Logf("they have heard the end after %d ms (half of them), %d ms (99.9 %%), %d ms (all)", took[n/2], took[n*999/1000],
		took[n-1])
}

// atATime does it n times, some at a time.
func atATime(n int, it func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				it(i)
			}
		})
	}
	all.Wait()
}

// waiter is one who waits, with a connection that takes little memory.
type waiter struct {
	t            *testing.T
	g            *running
	user, ticket string
	from         net.IP // one address has a bounded number of connections
	conn         net.Conn
	in           *bufio.Reader
	heard        int64 // of the end, Unix ms
}

func (w *waiter) ask(method, what, header string) (s roomPlace) {
	if w.conn == nil {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: w.from}, Timeout: long}
		c, err := d.Dial("tcp", w.g.front)
		if err != nil {
			w.t.Error(err)
			return s
		}
		w.t.Cleanup(func() { c.Close() })
		w.conn, w.in = c, bufio.NewReaderSize(c, 512)
	}
	_ = w.conn.SetDeadline(time.Now().Add(2 * long))
	_, err := fmt.Fprintf(w.conn, "%s /.sluice/room/rush%s HTTP/1.1\r\nHost: shop\r\nCookie: uid=%s; sluice_room=%s\r\n"+
		"%sContent-Length: 0\r\n\r\n", method, what, w.user, w.ticket, header)
	if err != nil {
		w.t.Error(err)
		return s
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Error(err)
		return s
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || json.Unmarshal(text, &s) != nil {
		w.t.Errorf("%s %s: %d %s, %v", method, what, resp.StatusCode, text, err)
	}
	if s.Ticket != "" {
		w.ticket = s.Ticket
	}
	return s
}

// hearsTheEnd waits for news until it is the end. An answer without news is one that the time was up, or a fault.
func (w *waiter) hearsTheEnd() {
	for phase := "open"; phase != "over" && !w.t.Failed(); {
		asked := time.Now()
		s := w.ask("GET", "/me", "Prefer: wait=30\r\n")
		if s.Phase == phase && time.Since(asked) < 25*time.Second {
			w.t.Errorf("%s was answered without news after %v", w.user, time.Since(asked))
		}
		phase = s.Phase
	}
	w.heard = time.Now().UnixMilli()
}
